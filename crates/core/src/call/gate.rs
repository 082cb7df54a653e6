//! Step 3: a source takes no call before it was compared with the lock, none after a refused start, and
//! none for a withdrawn tool.

use std::time::Duration;

use broker_model::CallCode;

use super::resolve::{Target, out_of_service};
use crate::Inner;
use crate::errors::error::CoreError;
use crate::errors::failure::{self, SHORT_RETRY_DELAY};
use crate::identity::Identity;
use crate::sources::slot::SourceSlot;
use crate::sources::startup_gate::GateState;

impl Inner {
    /// The slot of the tool's source, if calls of the tool may be sent to it. Before the end of a plain
    /// start a withdrawal is not an answer yet: the start will be refused.
    pub(super) async fn pass_gate(
        &self,
        identity: &Identity,
        target: &Target,
    ) -> Result<&SourceSlot, Box<CoreError>> {
        let slot = self.pass_source(identity, target).await?;
        match self.drift_state.view.load().withdrawn(target.at) {
            Some(withdrawn) => Err(out_of_service(target, withdrawn)),
            None => Ok(slot),
        }
    }

    /// The slot of the tool's source, if it was compared with the lock.
    async fn pass_source(
        &self,
        identity: &Identity,
        target: &Target,
    ) -> Result<&SourceSlot, Box<CoreError>> {
        let source = target.tool.source as usize;
        let Some(slots) = self.slots.get() else {
            return Err(Box::new(starting(target)));
        };
        let slot = &slots[source];
        match self.drift_state.gate.state(source) {
            GateState::Open => Ok(slot),
            GateState::Closed => match self.start_refusal(identity) {
                Some(refusal) => Err(Box::new(refusal.path(target.path))),
                None => Err(Box::new(starting(target))),
            },
            // The start did not wait for it, so a call does not either.
            GateState::Unreached => {
                let running = slot.load_full();
                match running.upstream.session(Duration::ZERO).await {
                    Ok(_compared) => Ok(slot),
                    Err(failure) => Err(failure::from_call(failure, target.path, target.source)),
                }
            }
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
