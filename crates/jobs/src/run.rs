//! Runs one job: makes its call for its caller, keeps the events of its server, and stores its end.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use broker_core::{
    Args, Broker as _, CallCode, CallContext, CallEvent, CallEvents, CallRecord, CoreError,
    Identity, JobRequest, JobRun, LogLevel, Operation, Outcome, ReceivedEvents, Request, RequestId,
    Reserving, ResultForm, SendGate, SendGates, UnsentCall, WantedEvents,
};
use broker_model::text::shown_line;
use broker_store::{
    Claim, EventKind, Job, JobEnd, JobId, JobState, JobStore, MAX_ERROR_BYTES, NewEvent,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::errors;
use crate::keeper::Keeper;

/// The maximum number of events of a run that wait for the store.
const MAX_WAITING_EVENTS: usize = 64;
/// The maximum characters of the message in an error that is shortened.
const MAX_MESSAGE_CHARS: usize = 500;

/// Runs a claimed job.
pub(crate) async fn run(
    keeper: Arc<Keeper>,
    identity: Identity,
    claim: Claim,
    cancel: CancellationToken,
) {
    let Ok(store) = keeper.store() else {
        return;
    };
    let (events, received) = wanted_events(None);
    let id = claim.job.id.clone();
    let mut gates = SendGates::none();
    gates.push(SentGate {
        store: store.clone(),
        id: id.clone(),
        fence: claim.fence,
    });
    let account = keeper.account(claim.job.owner.as_deref());
    let job = request_of(&claim.job);
    let at = 0..claim.args.len();
    let request = Request {
        identity,
        context: CallContext {
            meta: claim.job.meta.map(Box::from),
            events: Some(events.clone()),
            gates,
            job: Some(Box::new(job)),
            ..CallContext::new(RequestId::new(&[id.as_str()]), account, ResultForm::Whole)
        },
        path: claim.job.path.into(),
        operation: Operation::CallTool(Args::Unread {
            body: claim.args,
            at,
        }),
    };
    let call = keeper.runner.call(request);
    let running = Running {
        events,
        received,
        cancel,
        record: None,
        is_adopted: false,
    };
    follow(&keeper, (&id, claim.fence), call, running).await;
}

/// Returns what names the job in the record of its call.
pub(crate) fn request_of(job: &Job) -> JobRequest {
    JobRequest {
        run: Some(JobRun {
            id: job.id.as_str().into(),
            made_in: job.trace.as_deref().map(Box::from),
        }),
        ..JobRequest::default()
    }
}

/// Returns what takes the events of a run, and its receiver. A caller that takes the events of its call gets them too.
pub(crate) fn wanted_events(of_caller: Option<CallEvents>) -> (CallEvents, ReceivedEvents) {
    CallEvents::for_job(
        MAX_WAITING_EVENTS,
        WantedEvents {
            progress: true,
            log: Some(LogLevel::Info),
        },
        of_caller,
    )
}

/// The parts of a run apart from its call: its events, its cancellation and its record.
pub(crate) struct Running {
    /// Takes the events of the call.
    pub(crate) events: CallEvents,
    /// The events that were taken.
    pub(crate) received: ReceivedEvents,
    /// Cancels the call.
    pub(crate) cancel: CancellationToken,
    /// The record of a call whose caller was answered before.
    pub(crate) record: Option<Arc<CallRecord>>,
    /// Whether an earlier run of the broker sent the call, and the server goes on with its task.
    pub(crate) is_adopted: bool,
}

/// Follows a call that is a job until its end, and stores the end.
pub(crate) async fn follow(
    keeper: &Keeper,
    (id, fence): (&JobId, u64),
    call: impl Future<Output = Result<Outcome, Box<CoreError>>>,
    running: Running,
) {
    let Ok(store) = keeper.store() else {
        return;
    };
    let Running {
        events,
        mut received,
        cancel,
        record,
        is_adopted,
    } = running;
    // Whether the next start of the broker can go on with the task that the server made of the call.
    let (mut is_task, mut is_adoptable) = (is_adopted, is_adopted);
    let end = {
        let mut call = pin!(call);
        loop {
            tokio::select! {
                biased;
                outcome = &mut call => break Some(outcome),
                () = cancel.cancelled() => {
                    if is_adoptable && keeper.stopping.is_cancelled() {
                        events.leave_task();
                    }
                    break None;
                }
                (task, survives) = events.task(), if !is_task => {
                    is_task = true;
                    let stored = store.set_upstream(id, fence, task.to_text(), survives).await;
                    note_failure(id, stored.clone().map(drop));
                    is_adoptable = survives && keeper.is_durable() && stored == Ok(true);
                }
                event = received.recv() => keep(store, (id, fence), &mut received, event).await,
            }
        }
    };
    while let Some(event) = received.try_recv() {
        keep(store, (id, fence), &mut received, event).await;
    }
    let is_left = is_adoptable && is_stopped(keeper, end.as_ref());
    if !is_left {
        finish(keeper, store, (id, fence), end, record.as_deref()).await;
    }
    keeper.end_run(id);
}

/// Whether a run ended because the broker ends.
fn is_stopped(keeper: &Keeper, end: Option<&Result<Outcome, Box<CoreError>>>) -> bool {
    match end {
        None => keeper.stopping.is_cancelled(),
        Some(Err(error)) => error.code == CallCode::ShuttingDown,
        Some(Ok(_)) => false,
    }
}

/// Stores the end of a run: its outcome, or that its call was cancelled.
async fn finish(
    keeper: &Keeper,
    store: &JobStore,
    (id, fence): (&JobId, u64),
    end: Option<Result<Outcome, Box<CoreError>>>,
    record: Option<&CallRecord>,
) {
    let (is_sent, is_cancelled) = match store.get(id).await {
        Ok(Some(job)) => (job.sent, job.cancel_asked),
        Ok(None) | Err(_) => (true, false),
    };
    let stopped = is_stopped(keeper, end.as_ref());
    if stopped && !is_sent && !is_cancelled {
        // The next start of the broker runs it.
        note_failure(id, store.requeue(id, fence).await.map(drop));
        return;
    }
    let end = match end {
        // Cancelled after it was claimed, before its call was sent: the error is that it was not sent.
        Some(Err(_)) if is_cancelled && !is_sent => canceled(),
        Some(Ok(outcome)) => JobEnd {
            state: JobState::Succeeded,
            is_error: outcome.is_error,
            result: Some(outcome.result),
            error: None,
        },
        Some(Err(error)) => failed(&error),
        None if stopped && is_sent => lost(),
        None => canceled(),
    };
    note_failure(id, keeper.end((id, fence), end, record).await);
}

/// Logs that the store has no end of a job. The next start of the broker ends it.
pub(crate) fn note_failure(id: &JobId, stored: Result<(), broker_store::StoreError>) {
    match stored {
        Ok(()) => {}
        Err(error) => tracing::error!(job = id.as_str(), %error, "the end of a job was not stored"),
    }
}

/// Returns the end of a job that was cancelled.
const fn canceled() -> JobEnd {
    JobEnd {
        state: JobState::Canceled,
        result: None,
        is_error: false,
        error: None,
    }
}

/// Returns the end of a job with this error.
pub(crate) fn failed(error: &CoreError) -> JobEnd {
    JobEnd {
        state: match error.code == CallCode::JobLost {
            true => JobState::Lost,
            false => JobState::Failed,
        },
        result: None,
        is_error: false,
        error: Some(error_text(error)),
    }
}

/// Returns the end of a job whose outcome is not known.
pub(crate) fn lost() -> JobEnd {
    let message = "the broker ended while the call of the job was under way";
    failed(&CoreError::new(CallCode::JobLost, message).maybe_executed(true))
}

/// Returns the error object of a job, shortened to what the store keeps.
pub(crate) fn error_text(error: &CoreError) -> String {
    let text = |error: &CoreError| serde_json::to_string(&error.members(None)).unwrap_or_default();
    let whole = text(error);
    if whole.len() <= MAX_ERROR_BYTES {
        return whole;
    }
    let mut short = CoreError::new(error.code, shown_line(&error.message, MAX_MESSAGE_CHARS));
    short.path = error
        .path
        .clone()
        .filter(|path| path.len() <= MAX_MESSAGE_CHARS);
    short.retryable = error.retryable;
    short.maybe_executed = error.maybe_executed;
    text(&short)
}

/// Keeps an event, and those that wait behind it.
async fn keep(
    store: &JobStore,
    (id, fence): (&JobId, u64),
    received: &mut ReceivedEvents,
    first: CallEvent,
) {
    let mut events = vec![new_event(first)];
    while let Some(event) = received.try_recv() {
        events.push(new_event(event));
    }
    if let Err(error) = store.append(id, fence, events).await {
        tracing::debug!(job = id.as_str(), %error, "events of a job were not stored");
    }
}

fn new_event(event: CallEvent) -> NewEvent {
    let (kind, body) = match event {
        CallEvent::Progress(progress) => {
            let mut body = json!({ "progress": progress.progress });
            if let Some(total) = progress.total {
                body["total"] = Value::Number(total);
            }
            if let Some(message) = progress.message {
                body["message"] = Value::String(message);
            }
            (EventKind::Progress, body)
        }
        CallEvent::Log(message) => {
            let mut body = json!({ "level": message.level.as_str() });
            if let Some(logger) = message.logger {
                body["logger"] = Value::String(logger);
            }
            body["data"] = serde_json::from_str(message.data.get()).unwrap_or_default();
            (EventKind::Stdout, body)
        }
        CallEvent::Stderr(line) => {
            let mut body = json!({ "text": line.text });
            if line.dropped > 0 {
                body["dropped"] = json!(line.dropped);
            }
            (EventKind::Stderr, body)
        }
    };
    NewEvent {
        kind,
        body: body.to_string().into(),
    }
}

/// Marks a job as sent before its server gets the call.
struct SentGate {
    store: JobStore,
    id: JobId,
    fence: u64,
}

impl fmt::Debug for SentGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentGate")
    }
}

impl SendGate for SentGate {
    fn reserve<'a>(&'a self, _: UnsentCall<'a>) -> Reserving<'a> {
        Reserving::Waiting(Box::pin(async move {
            match self.store.mark_sent(&self.id, self.fence).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(errors::finished(JobState::Canceled)),
                Err(error) => Err(errors::store_error(&error)),
            }
        }))
    }
}
