//! The form of a reply to a request: one JSON message, or a stream of events.

use std::pin::Pin;

use axum::http::{Response, StatusCode};
use broker_core::Broker;
use broker_wire::write::Outgoing;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::headers::Accepted;
use super::reply::{self, ReplyBody, StreamReply};
use super::stream::{EventStream, KEEP_ALIVE_INTERVAL};
use crate::call_task::CallTask;

/// The maximum number of notifications of one request that wait to be written; further ones are dropped.
const MAX_WAITING_MESSAGES: usize = 64;

/// The answer to a request over HTTP.
pub(super) struct LastMessage {
    pub(super) status: StatusCode,
    pub(super) message: Outgoing,
}

/// Resolves to the answer, or to `None` if the request was cancelled.
pub(super) type Ending = Pin<Box<dyn Future<Output = Option<LastMessage>> + Send>>;

/// The reply to a request: one JSON message if it is answered soon and without notifications, a stream
/// otherwise, if the caller reads that form.
pub(super) async fn respond(
    accepted: Accepted,
    mut messages: Option<mpsc::Receiver<Outgoing>>,
    mut ending: Ending,
) -> Response<ReplyBody> {
    let first = async {
        match &mut messages {
            Some(messages) => messages.recv().await,
            None => None,
        }
    };
    let begun = tokio::select! {
        biased;
        Some(message) = first, if accepted.stream => Some(message),
        last = &mut ending => return last_at_once(accepted, messages, last),
        () = sleep(KEEP_ALIVE_INTERVAL), if accepted.stream => None,
    };
    let ending = Box::pin(async move { ending.await.map(|last| last.message) });
    let stream = EventStream::new(messages, ending);
    let stream = match begun {
        Some(message) => stream.starting_with(message),
        None => stream,
    };
    reply::stream(StreamReply::Answer, stream)
}

/// The reply to a request that was answered before any notification was read. Those that it sent come first.
fn last_at_once(
    accepted: Accepted,
    messages: Option<mpsc::Receiver<Outgoing>>,
    last: Option<LastMessage>,
) -> Response<ReplyBody> {
    let Some(last) = last else {
        return reply::empty(StatusCode::ACCEPTED);
    };
    let Some(mut messages) = messages else {
        return now(accepted, last.status, last.message);
    };
    match messages.try_recv() {
        Ok(first) => {
            let ending = Box::pin(std::future::ready(Some(last.message)));
            let stream = EventStream::new(Some(messages), ending).starting_with(first);
            reply::stream(StreamReply::Answer, stream)
        }
        Err(_) => now(accepted, last.status, last.message),
    }
}

/// A reply whose only message is ready.
pub(super) fn now(
    accepted: Accepted,
    status: StatusCode,
    message: Outgoing,
) -> Response<ReplyBody> {
    if accepted.json {
        return reply::message(status, message);
    }
    let ending = Box::pin(std::future::ready(None));
    let stream = EventStream::new(None, ending).starting_with(message);
    reply::stream(StreamReply::Answer, stream)
}

/// A channel for the notifications of a call, if its caller wants them and reads streams.
pub(super) fn channel(
    task: &CallTask<impl Broker>,
    accepted: Accepted,
) -> (
    Option<mpsc::Sender<Outgoing>>,
    Option<mpsc::Receiver<Outgoing>>,
) {
    if !accepted.stream || !task.wants_messages() {
        return (None, None);
    }
    let (sender, messages) = mpsc::channel(MAX_WAITING_MESSAGES);
    (Some(sender), Some(messages))
}
