//! Step 3: a source takes no call before it was compared with the lock.

use arc_swap::ArcSwap;
use broker_model::CallCode;

use super::resolve::Target;
use crate::Inner;
use crate::errors::error::CoreError;
use crate::errors::failure::SHORT_WAIT;
use crate::sources::seat::Seat;

/// The place of the process, or processes, of a source that take its calls.
pub(super) type Slot<'a> = &'a ArcSwap<Seat>;

impl Inner {
    /// The place of the tool's source, once calls may be sent to it.
    pub(super) fn pass_gate(&self, target: &Target) -> Result<Slot<'_>, Box<CoreError>> {
        let source = target.tool.source as usize;
        match self.seats.get() {
            Some(slots) if self.verdicts.gate.admits(source) => Ok(&slots[source]),
            _ => Err(Box::new(starting(target))),
        }
    }
}

/// The error of a call that comes too early.
fn starting(target: &Target) -> CoreError {
    let message = format!(
        "`{}` cannot be called yet: the sources are being compared with the lock",
        target.source
    );
    CoreError::new(CallCode::Starting, message)
        .path(target.path)
        .retry_after(SHORT_WAIT)
        .maybe_executed(false)
}
