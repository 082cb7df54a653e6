//! Step 6: sends the call to the process that serves the source, and once more if the config allows it.

use std::borrow::Cow;
use std::sync::Arc;

use broker_mcp::{CallFailure, CallRight, RawResult, ServerCall};
use broker_memory::Charge;
use broker_model::SourceCause;
use tokio::time::Instant;

use super::Call;
use super::baggage::{trace_without_baggage, without_baggage};
use super::deadline::Deadline;
use super::gate::too_many;
use super::operation::CheckedOperation;
use super::recheck::AdmittedCall;
use super::resolve::out_of_service;
use crate::call::arguments::memory_error_for_request;
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::sources::slot::{RunningSource, SourceSlot};

impl Call<'_> {
    /// Sends the call and waits for its result.
    #[inline]
    pub(super) async fn dispatch(
        &self,
        slot: &SourceSlot,
        operation: &CheckedOperation,
        deadline: &Deadline,
    ) -> Result<RawResult, Box<CoreError>> {
        let (context, target) = (self.context, self.target);
        // The line that is made from the arguments.
        let (mut line_charge, needed) = (Charge::default(), operation.text().len());
        line_charge
            .cover(&context.account, needed)
            .map_err(|charge_error| {
                let error = memory_error_for_request(charge_error, needed, &context.account);
                Box::new(error.path(target.path))
            })?;
        let meta = context.meta.as_deref();
        let meta = match deadline.settings.is_trusted {
            true => meta.map(Cow::Borrowed),
            false => meta.and_then(without_baggage),
        };
        let trace = context
            .trace
            .as_ref()
            .and_then(|trace| trace.to_server.as_ref());
        let bare_trace =
            trace.and_then(|trace| trace_without_baggage(deadline.settings.is_trusted, trace));
        let admitted = AdmittedCall::new(self, operation.text(), operation.uri());
        let changes = self.core.fleet.drift_state.tool_changes();
        let may_send = || admitted.is_admitted(&admitted.in_force());
        let right = CallRight {
            revoked: self.identity.revocation().map(|it| &it.revoked),
            changes: &changes,
            may_send: &may_send,
        };
        let server_call = ServerCall {
            operation: operation.to_server(target),
            meta: meta.as_deref(),
            trace: bare_trace.as_deref().or(trace),
            events: context.events.as_ref(),
            right: Some(&right),
            account: Some(&context.account),
        };
        let mut answer = match operation.task() {
            None => self.send(&admitted, slot, server_call, deadline).await?,
            Some(task) => Err(CallFailure::Task(Box::new(task.clone()))),
        };
        if let Err(CallFailure::Task(task)) = answer {
            // Boxed, so that other calls do not carry its size.
            let following = self.follow(&admitted, slot, server_call, *task, deadline);
            answer = Box::pin(following).await?;
        }
        let answered = match &context.record {
            Some(record) => record.answer(),
            None => Instant::now(),
        };
        if let Ok(_) | Err(CallFailure::Rpc { .. }) = &answer {
            slot.load().upstream.note_answer(answered);
        }
        if self.is_sent_again(&answer, deadline) {
            tracing::info!(
                source = target.source,
                path = target.path,
                "the session ended with a call, which is sent once more"
            );
            // If it could not be sent again, the first answer is more useful.
            match self.send(&admitted, slot, server_call, deadline).await {
                Ok(Err(unsent)) if !unsent.maybe_executed() => {}
                Ok(second) => answer = second,
                Err(_withdrawn) => {}
            }
        }
        answer.map_err(|failure| match failure.maybe_executed() {
            true => self.failed(failure, deadline),
            // It may have been given up for this reason.
            false => admitted
                .refusal(&admitted.in_force())
                .unwrap_or_else(|| self.failed(failure, deadline)),
        })
    }

    /// Whether a call whose session has ended is sent once more: if the config allows it, or if a server over HTTP
    /// ended the session and refused the call for that reason only.
    #[inline]
    fn is_sent_again(&self, answer: &Result<RawResult, CallFailure>, deadline: &Deadline) -> bool {
        let Err(CallFailure::Exited {
            failure,
            maybe_executed,
        }) = answer
        else {
            return false;
        };
        let was_refused = failure.cause == SourceCause::SessionEnded && !maybe_executed;
        (deadline.settings.retry || was_refused) && !self.core.fleet.shared.drain.is_closing()
    }

    /// Sends the call to the source in the slot, within its time. The error is final: a withdrawal, or the end of
    /// the caller's right.
    #[inline]
    async fn send(
        &self,
        admitted: &AdmittedCall<'_>,
        slot: &SourceSlot,
        server_call: ServerCall<'_>,
        deadline: &Deadline,
    ) -> Result<Result<RawResult, CallFailure>, Box<CoreError>> {
        let (core, target) = (self.core, self.target);
        let mut left = deadline.call_time(self.context.deadline);
        loop {
            // Held until the call ends: a reload waits for it before it stops the source.
            let running = slot.load_full();
            let session = match running.upstream.ready() {
                Some(session) => Ok(session),
                None => {
                    let source = target.item.source as usize;
                    let Some(_place) = core.waiting.enter(source, self.context.account.owner())
                    else {
                        return Err(Box::new(too_many(target)));
                    };
                    let began = Instant::now();
                    let session = running.upstream.session(left.first()).await;
                    left = left.less(began.elapsed());
                    session
                }
            };
            if !self.is_admitted_in(admitted, slot, &running)? {
                continue;
            }
            return Ok(match session {
                Ok(session) => {
                    if let Some(record) = &self.context.record {
                        record.send();
                        if server_call.trace.is_some() {
                            record.send_in(session.revision());
                        }
                    }
                    match session.call(server_call, left).await {
                        // Boxed, so that other calls do not carry its size.
                        Err(CallFailure::Task(task)) => {
                            let left = deadline.call_time(self.context.deadline);
                            Box::pin(session.follow(&task, server_call, left)).await
                        }
                        answer => answer,
                    }
                }
                Err(failure) => Err(failure),
            });
        }
    }

    /// Checks the call again now that its session is known: the session's verdict was stored before the session was handed
    /// out, and may have withdrawn the tool. False if the source is no longer in its slot: a reload puts a source there
    /// before its verdict is in the view, so that the view may not be about this source, and the call starts again.
    #[inline]
    pub(super) fn is_admitted_in(
        &self,
        admitted: &AdmittedCall<'_>,
        slot: &SourceSlot,
        running: &Arc<RunningSource>,
    ) -> Result<bool, Box<CoreError>> {
        let now = admitted.in_force();
        if !Arc::ptr_eq(&slot.load(), running) {
            return Ok(false);
        }
        if let Some(withdrawn) = now.view.withdrawn(self.target.at) {
            return Err(out_of_service(self.target, withdrawn));
        }
        if let Some(refusal) = admitted.refusal(&now) {
            return Err(refusal);
        }
        if let Some(uri) = admitted.uri() {
            self.check_listed(uri)?;
        }
        Ok(true)
    }

    fn failed(&self, failure: CallFailure, deadline: &Deadline) -> Box<CoreError> {
        let (path, source) = (self.target.path, self.target.source);
        let closing = self.core.fleet.shared.drain.is_closing();
        match failure {
            // The broker ended the process, so the caller gets `shutting_down` and not the exit of the
            // process.
            CallFailure::Exited { maybe_executed, .. } if closing => {
                self.note_cut();
                let error = failure::shutting_down().maybe_executed(maybe_executed);
                let retryable = !maybe_executed;
                Box::new(CoreError { retryable, ..error }.path(path))
            }
            // A call that waited for its source reports its whole timeout.
            CallFailure::Timeout {
                maybe_executed,
                extended,
                ..
            } => {
                let failure = CallFailure::Timeout {
                    after: if extended {
                        deadline.passed()
                    } else {
                        deadline.time
                    },
                    extended,
                    maybe_executed,
                };
                failure::from_call(failure, path, source)
            }
            failure => {
                if let CallFailure::Stopping = failure
                    && closing
                {
                    self.note_cut();
                }
                failure::from_call(failure, path, source)
            }
        }
    }

    /// Notes that the end of the broker is the end of the call.
    fn note_cut(&self) {
        let drain = &self.core.fleet.shared.drain;
        drain.note_cut(self.target.path, self.context.request_id);
    }
}
