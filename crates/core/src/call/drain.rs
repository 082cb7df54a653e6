//! Step 1: a broker that shuts down begins no call.

use crate::Inner;
use crate::drain::Ticket;
use crate::errors::error::CoreError;
use crate::errors::failure;

impl Inner {
    /// Counts the call as in flight until the ticket is dropped.
    pub(super) fn enter(&self) -> Result<Ticket<'_>, Box<CoreError>> {
        let refused = || Box::new(failure::shutting_down().maybe_executed(false));
        self.drain.enter().ok_or_else(refused)
    }
}
