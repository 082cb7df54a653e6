//! Step 4: a source takes no call before it was compared with the lock, after a refused start, or for a withdrawn tool.
//! Where drift only withdraws tools, a call waits for its source.

use std::time::Duration;

use broker_model::CallCode;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Call;
use super::deadline::Deadline;
use super::recheck::AdmittedCall;
use super::resolve::{Target, out_of_service};
use super::revoked;
use super::waiting::MAX_STARTING_CALLS;
use crate::errors::error::CoreError;
use crate::errors::failure::{self, SHORT_RETRY_DELAY, shutting_down};
use crate::snapshot::InForce;
use crate::sources::slot::SourceSlot;
use crate::sources::startup_gate::GateState;
use crate::view::View;

/// The part of its time that a call keeps after the wait for its source, to be made or to report the wait.
const CALL_RESERVE: Duration = Duration::from_secs(1);
/// The retry delay of a call that waited for its source in vain.
const STARTING_RETRY_DELAY: Duration = Duration::from_secs(5);

impl<'a> Call<'a> {
    /// Returns the slot of the tool's source, if calls of the tool may be sent to it. Before the end of a plain start a
    /// withdrawal is not an answer yet: the start will be refused. `view` is the one as the call begins. After a wait,
    /// `deadline` has the settings that a reload may have changed.
    #[inline]
    pub(super) async fn pass_gate(
        &self,
        view: &View,
        args: &[u8],
        deadline: &mut Deadline,
    ) -> Result<&'a SourceSlot, Box<CoreError>> {
        let (target, fleet) = (self.target, &self.core.fleet);
        let source = target.item.source as usize;
        // The sources are launched one after another, so a call may arrive when no slot is filled yet.
        let slot = || match fleet.slots.get() {
            Some(slots) => Ok(&slots[source]),
            None => Err(Box::new(starting(target))),
        };
        let after_wait;
        let mut view = view;
        match fleet.drift_state.gate.state(source) {
            GateState::Open => {}
            GateState::Awaited => {
                // Boxed, so that other calls do not carry its size.
                after_wait = Box::pin(self.await_source(args, deadline)).await?;
                let began = Some(deadline.began());
                let (terms, end) = (&after_wait.terms, self.context.deadline);
                *deadline = Deadline::new(terms, target, began, end);
                view = &after_wait.view;
            }
            GateState::Closed => {
                let refusal = self.core.start_refusal(self.identity);
                return Err(refusal.map_or_else(
                    || Box::new(starting(target)),
                    |refusal| Box::new(refusal.path(target.path)),
                ));
            }
            // The start did not wait for it, so a call does not either.
            GateState::Unreached => {
                let running = slot()?.load_full();
                let session = running.upstream.session(Duration::ZERO).await;
                session
                    .map_err(|failure| failure::from_call(failure, target.path, target.source))?;
            }
        }
        match view.withdrawn(target.at) {
            Some(withdrawn) => Err(out_of_service(target, withdrawn)),
            None => slot(),
        }
    }

    /// Waits until the source of a call was checked or failed, at most `start_wait` and no longer than the
    /// time of the call allows. A call whose caller may not make it any longer ends at once.
    async fn await_source(
        &self,
        args: &[u8],
        deadline: &Deadline,
    ) -> Result<InForce, Box<CoreError>> {
        let (identity, target, core) = (self.identity, self.target, self.core);
        let (source, drift_state) = (target.item.source as usize, &core.fleet.drift_state);
        let gate = &drift_state.gate;
        let Some(_place) = core.waiting.enter(source, self.context.account.owner()) else {
            return Err(Box::new(too_many(target)));
        };
        let admitted = AdmittedCall::new(self, args, None);
        let (mut outcomes, mut rules) = (gate.changes(), drift_state.tool_changes());
        let draining = core.fleet.shared.drain.draining();
        let revoked = async {
            match identity.revocation() {
                Some(revocation) => revocation.revoked.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let began = Instant::now();
        let time = deadline
            .settings
            .start_wait
            .min(deadline.left().saturating_sub(CALL_RESERVE));
        let (mut revoked, mut end) = (std::pin::pin!(revoked), std::pin::pin!(sleep(time)));
        loop {
            if gate.state(source) == GateState::Open {
                return Ok(admitted.in_force());
            }
            if let Some(refusal) = core.start_refusal(identity) {
                return Err(Box::new(refusal.path(target.path)));
            }
            tokio::select! {
                // In this order: an outcome at the end of the wait counts.
                biased;
                () = &mut revoked => return Err(revoked::error(false)),
                () = draining.cancelled() => {
                    return Err(Box::new(shutting_down().path(target.path).maybe_executed(false)));
                }
                // The senders live as long as the core.
                _ = outcomes.changed() => {}
                _ = rules.changed() => {
                    if let Some(refusal) = admitted.refusal(&admitted.in_force()) {
                        return Err(refusal);
                    }
                }
                () = &mut end => {
                    return Err(admitted
                        .refusal(&admitted.in_force())
                        .unwrap_or_else(|| Box::new(still_starting(target, began.elapsed()))));
                }
            }
        }
    }
}

/// Returns the error of a call that arrives before the comparison with the lock.
fn starting(target: &Target) -> CoreError {
    let message = format!(
        "`{}` cannot be called yet: the sources are being compared with the lock",
        target.source
    );
    CoreError::new(CallCode::Starting, message)
        .path(target.path)
        .details(json!({"retry_after_s": SHORT_RETRY_DELAY.as_secs()}))
        .retry_after(SHORT_RETRY_DELAY)
        .maybe_executed(false)
}

/// Returns the error of a call whose source did not start within the wait.
fn still_starting(target: &Target, waited: Duration) -> CoreError {
    // Tenths of a second.
    let waited_s = (waited.as_millis() / 100) as f64 / 10.0;
    let message = format!(
        "`{}` is still starting; the call waited {waited_s} s for it",
        target.source
    );
    CoreError::new(CallCode::Starting, message)
        .path(target.path)
        .details(json!({
            "waited_s": waited_s,
            "retry_after_s": STARTING_RETRY_DELAY.as_secs(),
        }))
        .waited()
        .retry_after(STARTING_RETRY_DELAY)
        .maybe_executed(false)
}

/// Returns the error of a call that does not find a place to wait.
pub(super) fn too_many(target: &Target) -> CoreError {
    let message = format!(
        "`{}` is still starting, and too many calls wait for it",
        target.source
    );
    CoreError::new(CallCode::Starting, message)
        .path(target.path)
        .details(json!({"limit": MAX_STARTING_CALLS}))
        .retry_after(STARTING_RETRY_DELAY)
        .maybe_executed(false)
}
