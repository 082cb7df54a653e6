//! Streams of the events and the state of a job, as Server-Sent Events.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use broker_core::{CoreError, Identity, JobDesk, JobView};
use broker_surface::job_json;
use bytes::Bytes;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::feed::Feed;
use super::query::Query;
use super::stream_ends::StreamEnds;
use crate::pipeline::Refusal;

/// The interval of comments on a silent stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b": keep-alive\n\n";
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

/// Streams the events of a job.
pub(super) fn events(mut feed: Feed, ends: StreamEnds) -> Body {
    let identity = feed.identity.clone();
    piped(move |output| async move {
        let written = write_events(&mut feed, &output);
        tokio::select! {
            () = written => {}
            () = ends.wait(&identity) => {}
            () = output.closed() => {}
        }
    })
}

async fn write_events(feed: &mut Feed, output: &mpsc::Sender<Bytes>) {
    let sent = send_events(feed, output).await;
    if let Err(error) = sent {
        // The caller may have left.
        drop(output.send(error_event(&error)).await);
    }
}

async fn send_events(feed: &mut Feed, output: &mpsc::Sender<Bytes>) -> Result<(), Box<CoreError>> {
    loop {
        let batch = {
            let mut reading = pin!(feed.next());
            loop {
                tokio::select! {
                    read = &mut reading => break read?,
                    () = sleep(KEEP_ALIVE_INTERVAL) => {
                        if output.send(Bytes::from_static(COMMENT)).await.is_err() {
                            return Ok(());
                        }
                    }
                }
            }
        };
        for event in &batch.events {
            let text = format!(
                "id: {}\nevent: {}\ndata: {}\n\n",
                event.number,
                event.kind.as_str(),
                event.body
            );
            if output.send(feed.charged(text)?).await.is_err() {
                return Ok(());
            }
        }
        if batch.is_end {
            return Ok(());
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
    let mut tick = job_json::simple_state(job);
    if let Some(progress) = &job.progress {
        tick["progress"] = progress["progress"].clone();
    }
    format!("data: {tick}\n\n").into()
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
