//! The form of a reply to a request: one JSON message, or a stream of events.

use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::http::{Response, StatusCode};
use broker_core::{Broker, Charge};
use broker_surface::{CaughtPanic, contain};
use broker_wire::protocol::{MISSING_CAPABILITY, MODERN};
use broker_wire::write::Outgoing;
use broker_wire::{Era, Id};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::headers::{self, Accepted};
use super::reply::{self, ReplyBody, StreamReply};
use super::stream::{EventStream, KEEP_ALIVE_INTERVAL};
use super::{McpEndpoint, McpRequest};
use crate::Client;
use crate::call::ToolCall;
use crate::call_task::CallTask;
use crate::params::Params;
use crate::reply::{answer, failed};

/// The maximum number of notifications of one request that wait to be written; further ones are dropped.
const MAX_WAITING_MESSAGES: usize = 64;

/// A request of JSON-RPC, and the forms of a reply that its client reads.
#[derive(Clone, Copy)]
pub(super) struct RpcRequest<'a> {
    pub(super) accepted: Accepted,
    pub(super) id: &'a Id,
    pub(super) method: &'a str,
    pub(super) params: &'a Params<'a>,
}

/// The answer to a request over HTTP.
pub(super) struct LastMessage {
    pub(super) status: StatusCode,
    pub(super) message: Outgoing,
}

/// Resolves to the answer, or to `None` if the request was cancelled.
pub(super) type Ending = Pin<Box<dyn Future<Output = Option<LastMessage>> + Send>>;

/// A request that was begun.
pub(super) struct Begun {
    /// Its notifications, if its caller gets any.
    pub(super) messages: Option<mpsc::Receiver<Outgoing>>,
    pub(super) ending: Ending,
}

impl Begun {
    /// A request that was answered at once.
    pub(super) fn answered(message: Outgoing) -> Self {
        let last = LastMessage {
            status: StatusCode::OK,
            message,
        };
        Self {
            messages: None,
            ending: Box::pin(std::future::ready(Some(last))),
        }
    }
}

/// Begins a call that belongs to its connection.
pub(super) fn begin_call<B: Broker>(
    endpoint: &McpEndpoint<B>,
    request: &McpRequest<'_>,
    client: Client<B>,
    accepted: Accepted,
    id: &Id,
    call: ToolCall,
) -> Begun {
    let era = call.era;
    let task = CallTask {
        level: call.meta.log_level,
        client: Arc::new(client),
        call: call.for_reader_of(request.settings.event_bytes),
        account: request.account.clone(),
        request_id: request.request_id,
        trace: request.trace_of_rpc(&endpoint.broker, Some(id), || match era {
            Era::Modern => Some(MODERN),
            Era::Legacy => headers::legacy_revision(&request.parts.headers),
        }),
        waiting: Charge::default(),
    };
    let (sender, messages) = channel(&task, accepted);
    let id = id.clone();
    // Dropped when the connection is closed. This cancels the call.
    let ending = Box::pin(async move {
        let outcome = contain(pin!(task.run(sender))).await;
        let outcome = outcome.unwrap_or_else(|CaughtPanic| Err(failed()));
        let status = match &outcome {
            Err(error) if error.code == MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        };
        let message = answer(&id, outcome);
        Some(LastMessage { status, message })
    });
    Begun { messages, ending }
}

/// The reply to a request: one JSON message if it is answered soon and without notifications, a stream
/// otherwise, if the caller reads that form.
pub(super) async fn respond(
    request: &McpRequest<'_>,
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
        last = &mut ending => return last_at_once(request, accepted, messages, last),
        () = sleep(KEEP_ALIVE_INTERVAL), if accepted.stream => None,
    };
    let ending = Box::pin(async move { ending.await.map(|last| last.message) });
    let stream = EventStream::new(messages, ending, request.event_limit());
    let stream = match begun {
        Some(message) => stream.starting_with(message),
        None => stream,
    };
    reply::stream(StreamReply::Answer, stream)
}

/// The reply to a request that was answered before any notification was read. Those that it sent come first; they are
/// dropped if the answer is too long for an event.
fn last_at_once(
    request: &McpRequest<'_>,
    accepted: Accepted,
    messages: Option<mpsc::Receiver<Outgoing>>,
    last: Option<LastMessage>,
) -> Response<ReplyBody> {
    let Some(last) = last else {
        return reply::empty(StatusCode::ACCEPTED);
    };
    let Some(mut messages) = messages else {
        return now(request, accepted, last.status, last.message);
    };
    let must_be_json = accepted.json && last.message.size() > request.settings.event_bytes;
    match messages.try_recv() {
        Ok(first) if !must_be_json => {
            let ending = Box::pin(std::future::ready(Some(last.message)));
            let limit = request.event_limit();
            let stream = EventStream::new(Some(messages), ending, limit).starting_with(first);
            reply::stream(StreamReply::Answer, stream)
        }
        _ => now(request, accepted, last.status, last.message),
    }
}

/// A reply whose only message is ready.
pub(super) fn now(
    request: &McpRequest<'_>,
    accepted: Accepted,
    status: StatusCode,
    message: Outgoing,
) -> Response<ReplyBody> {
    if accepted.json {
        return reply::message(status, message);
    }
    let ending = Box::pin(std::future::ready(None));
    let limit = request.event_limit();
    let stream = EventStream::new(None, ending, limit).starting_with(message);
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
