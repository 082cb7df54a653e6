//! Step 1: a broker that shuts down begins no call.

use crate::drain::{Drain, Ticket};
use crate::errors::error::CoreError;
use crate::errors::failure;

/// Counts the call as in flight until the ticket is dropped.
pub(super) fn enter(drain: &Drain) -> Result<Ticket<'_>, Box<CoreError>> {
    let refused = || Box::new(failure::shutting_down().maybe_executed(false));
    drain.enter().ok_or_else(refused)
}
