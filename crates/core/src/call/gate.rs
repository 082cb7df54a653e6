//! Step 3: a source takes no call before it was compared with the lock.

use broker_model::CallCode;

use super::resolve::Target;
use crate::Inner;
use crate::errors::error::CoreError;
use crate::errors::failure::SHORT_RETRY_DELAY;
use crate::sources::slot::SourceSlot;

impl Inner {
    /// The slot of the tool's source, if calls may be sent to it.
    pub(super) fn pass_gate(&self, target: &Target) -> Result<&SourceSlot, Box<CoreError>> {
        let source = target.tool.source as usize;
        match self.slots.get() {
            Some(slots) if self.drift_state.gate.admits(source) => Ok(&slots[source]),
            _ => Err(Box::new(starting(target))),
        }
    }
}

/// The error of a call that arrives before the comparison with the lock.
fn starting(target: &Target) -> CoreError {
    let message = format!(
        "`{}` cannot be called yet: the sources are being compared with the lock",
        target.source
    );
    CoreError::new(CallCode::Starting, message)
        .path(target.path)
        .retry_after(SHORT_RETRY_DELAY)
        .maybe_executed(false)
}
