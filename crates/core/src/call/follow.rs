//! Waits for the result of a task that a server made of a call, if the session of the call cannot: it has ended, or it was the
//! session of an earlier run of the broker.

use std::time::Duration;

use broker_mcp::{CallFailure, CallTime, RawResult, RemoteTask, ServerCall};
use tokio::time::{Instant, sleep};

use super::Call;
use super::deadline::Deadline;
use super::recheck::AdmittedCall;
use crate::errors::error::CoreError;
use crate::sources::slot::SourceSlot;

/// The pause before a server that cannot be reached is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Call<'_> {
    /// Waits for the result of a task of the source in the slot, through as many sessions as it takes.
    pub(super) async fn follow(
        &self,
        admitted: &AdmittedCall<'_>,
        slot: &SourceSlot,
        server_call: ServerCall<'_>,
        task: RemoteTask,
        deadline: &Deadline,
    ) -> Result<Result<RawResult, CallFailure>, Box<CoreError>> {
        let extends = server_call
            .events
            .is_some_and(|events| events.wants().progress);
        let began = Instant::now();
        loop {
            let time = deadline.call_time(self.context.deadline);
            let left = match extends {
                true => time.total(),
                false => time.first(),
            };
            if left.is_zero() {
                return Ok(Err(CallFailure::Timeout {
                    after: began.elapsed(),
                    extended: extends,
                    maybe_executed: true,
                }));
            }
            let after_answer = time.after_progress();
            let time = CallTime::new(left.min(after_answer), after_answer, left);
            // This reference is held until the task has a result: a reload waits for it before it stops the source.
            let running = slot.load_full();
            let session = match running.upstream.ready() {
                Some(session) => Ok(session),
                None => running.upstream.session(time.first()).await,
            };
            if !self.is_admitted_in(admitted, slot, &running)? {
                continue;
            }
            let answer = match session {
                Ok(session) => session.follow(&task, server_call, time).await,
                Err(failure) => Err(failure),
            };
            match answer {
                Err(CallFailure::Task(_) | CallFailure::Unavailable { .. }) => {
                    sleep(RETRY_DELAY).await;
                }
                answer => return Ok(answer),
            }
        }
    }
}
