//! Streams of the events and the state of a job, as Server-Sent Events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use broker_core::{CoreError, Identity, JobDesk, JobState, JobView, Services};
use bytes::Bytes;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::query::Query;
use crate::pipeline::Refusal;

/// The interval of comments on a silent stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b": keep-alive\n\n";
/// The number of events that are read at once.
const EVENTS_AT_ONCE: usize = 100;
/// The number of pieces that wait for a slow reader. The events stay in the store meanwhile.
const MAX_WAITING: usize = 8;

/// The interval of ticks, and the time after which their stream ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    interval: Duration,
    max: Duration,
}

impl Ticks {
    const INTERVAL: u64 = 200;
    const MIN_INTERVAL: u64 = 50;
    const MAX_INTERVAL: u64 = 10_000;
    const TIME: u64 = 10_000;
    const MAX_TIME: u64 = 600_000;

    /// Reads `interval_ms` and `max_ms`.
    pub(super) fn read(query: &Query) -> Result<Self, Refusal> {
        let interval = query.number("interval_ms", Self::MAX_INTERVAL)?;
        let max = query.number("max_ms", Self::MAX_TIME)?;
        let interval = interval.unwrap_or(Self::INTERVAL).max(Self::MIN_INTERVAL);
        Ok(Self {
            interval: Duration::from_millis(interval),
            max: Duration::from_millis(max.unwrap_or(Self::TIME)),
        })
    }
}

/// What ends a stream besides its job.
pub(super) struct StreamEnds {
    services: Services,
}

impl StreamEnds {
    pub(super) const fn new(services: Services) -> Self {
        Self { services }
    }

    /// Waits for the end of the caller's right, or for the drain.
    async fn wait(&self, identity: &Identity) {
        let draining = self.services.drain().draining();
        tokio::select! {
            () = self.services.right_ended(identity) => {}
            () = draining.cancelled() => {}
        }
    }
}

/// Streams the events of a job behind the event `after`.
pub(super) fn events(
    desk: Arc<dyn JobDesk>,
    identity: &Identity,
    id: &str,
    after: u64,
    ends: StreamEnds,
) -> Body {
    let (identity, id) = (identity.clone(), id.to_owned());
    piped(move |output| async move {
        let written = write_events(&*desk, (&identity, &id), after, &output);
        tokio::select! {
            () = written => {}
            () = ends.wait(&identity) => {}
            () = output.closed() => {}
        }
    })
}

async fn write_events(
    desk: &dyn JobDesk,
    (identity, id): (&Identity, &str),
    mut after: u64,
    output: &mpsc::Sender<Bytes>,
) {
    loop {
        let mut reading = desk.events(identity, id, after, EVENTS_AT_ONCE);
        let read = loop {
            tokio::select! {
                read = &mut reading => break read,
                () = sleep(KEEP_ALIVE_INTERVAL) => {
                    if output.send(Bytes::from_static(COMMENT)).await.is_err() {
                        return;
                    }
                }
            }
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                // The caller may have left.
                drop(output.send(error_event(&error)).await);
                return;
            }
        };
        for event in &read.events {
            after = event.number;
            let text = format!(
                "id: {}\nevent: {}\ndata: {}\n\n",
                event.number,
                event.kind.as_str(),
                event.body
            );
            if output.send(text.into()).await.is_err() {
                return;
            }
        }
        if read.is_end {
            return;
        }
    }
}

/// Streams the state of a job at intervals, until it has ended or the time is over.
pub(super) fn progress(
    desk: Arc<dyn JobDesk>,
    identity: &Identity,
    id: &str,
    ticks: Ticks,
    ends: StreamEnds,
) -> Body {
    let (identity, id) = (identity.clone(), id.to_owned());
    piped(move |output| async move {
        let written = write_ticks(&*desk, (&identity, &id), ticks, &output);
        tokio::select! {
            () = written => {}
            () = ends.wait(&identity) => {}
            () = output.closed() => {}
        }
    })
}

async fn write_ticks(
    desk: &dyn JobDesk,
    (identity, id): (&Identity, &str),
    ticks: Ticks,
    output: &mpsc::Sender<Bytes>,
) {
    let end = Instant::now() + ticks.max;
    loop {
        let next = Instant::now() + ticks.interval;
        let (piece, is_end) = match timeout_at(end, desk.show(identity, id)).await {
            Err(_) => return,
            Ok(Err(error)) => (error_event(&error), true),
            Ok(Ok(job)) => (tick(&job), job.state.is_finished()),
        };
        if output.send(piece).await.is_err() || is_end || next > end {
            return;
        }
        sleep_until(next).await;
    }
}

/// Returns a tick for simple clients: `{"job_id","status","exit_code","output_file"}`.
fn tick(job: &JobView) -> Bytes {
    let (status, exit_code) = simple_state(job);
    let output =
        (job.state == JobState::Succeeded).then(|| format!("/v1/jobs/{}/download", job.id));
    let mut tick = json!({
        "job_id": job.id,
        "status": status,
        "exit_code": exit_code,
        "output_file": output,
    });
    if let Some(progress) = &job.progress {
        tick["progress"] = progress["progress"].clone();
    }
    if let Some(maybe) = job.maybe_executed {
        tick["maybe_executed"] = json!(maybe);
    }
    format!("data: {tick}\n\n").into()
}

/// Returns the state of a job as simple clients know it, and the exit code that it stands for.
fn simple_state(job: &JobView) -> (&'static str, Option<u8>) {
    match job.state {
        JobState::Queued | JobState::Running | JobState::InputRequired => {
            (job.state.as_str(), None)
        }
        JobState::Succeeded if job.is_error == Some(true) => ("failed", Some(1)),
        JobState::Succeeded => ("succeeded", Some(0)),
        JobState::Failed | JobState::Lost => ("failed", Some(1)),
        JobState::Canceled => ("canceled", Some(1)),
    }
}

fn error_event(error: &CoreError) -> Bytes {
    let body = json!({ "error": error.members(None) });
    format!("event: error\ndata: {body}\n\n").into()
}

/// Returns a body that a task writes. Dropping the body ends the task.
fn piped<F: Future<Output = ()> + Send + 'static>(
    write: impl FnOnce(mpsc::Sender<Bytes>) -> F,
) -> Body {
    let (output, pieces) = mpsc::channel(MAX_WAITING);
    tokio::spawn(write(output));
    Body::new(Pieces(pieces))
}

/// The pieces of a stream.
struct Pieces(mpsc::Receiver<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.get_mut().0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
