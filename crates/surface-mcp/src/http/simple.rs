//! Requests of simple clients at `/v1/mcp`: without a handshake, a session and the headers of the specification.

use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::http::{Response, StatusCode};
use broker_wire::protocol::INVALID_REQUEST;
use broker_wire::write;
use broker_wire::{ClientLine, Id, Incoming, Raw, RpcError};

use super::headers::{PROTOCOL_VERSION, SESSION_ID};
use super::reply::{self, ReplyBody};
use super::{McpEndpoint, McpRequest, ModeRoute};
use crate::adapter::Dialect;
use crate::call_task::CallTask;
use crate::params::{self, Params};
use crate::protocol::{self, Action};
use crate::reply::{self as answers, Answer, failed, refusal};
use broker_core::{Broker, Charge};
use broker_surface::{CaughtPanic, contain};

/// A message as it was read; the error of one whose params cannot be read has the id of the request.
type ReadMessage = Result<ClientLine, (Id, RpcError)>;

/// Who answers a message.
pub(super) enum Taken {
    /// This module.
    Simple(ReadMessage),
    /// The other modules: it is one of the specification.
    Other(ReadMessage),
}

/// Takes a simple message at `/v1/mcp`: it names neither a session nor a protocol version. An `initialize` with params
/// is not simple, since it begins a session.
pub(super) fn taken(request: &McpRequest<'_>, message: ReadMessage) -> Taken {
    if request.route != ModeRoute::V1 {
        return Taken::Other(message);
    }
    let headers = &request.parts.headers;
    let names_none = !headers.contains_key(SESSION_ID) && !headers.contains_key(PROTOCOL_VERSION);
    let is_of_specification = match &message {
        Ok(ClientLine::One(Incoming::Request { method, params, .. })) => {
            let raw = params.as_ref().map_or(&b"{}"[..], |params| params.bytes());
            begins_session(method, raw) || describes_itself(params.as_ref())
        }
        _ => false,
    };
    match names_none && !is_of_specification {
        true => Taken::Simple(message),
        false => Taken::Other(message),
    }
}

fn begins_session(method: &str, params: &[u8]) -> bool {
    method == "initialize" && !params::is_empty_object(params)
}

fn describes_itself(params: Option<&Raw>) -> bool {
    let read = params.map(|params| Params::read(params.bytes()));
    read.is_some_and(|read| read.is_ok_and(|params| params.meta.describes_itself()))
}

/// The answer to a simple message: JSON with the status 200, errors included, and 202 for a notification. Boxed, so
/// that other requests do not carry its size.
pub(super) fn answer<'a>(
    endpoint: &'a McpEndpoint<impl Broker>,
    request: &'a McpRequest<'_>,
    message: ReadMessage,
) -> Pin<Box<dyn Future<Output = Response<ReplyBody>> + Send + 'a>> {
    Box::pin(answer_message(endpoint, request, message))
}

async fn answer_message(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    message: ReadMessage,
) -> Response<ReplyBody> {
    let (id, error) = match message {
        Ok(ClientLine::One(Incoming::Request { id, method, params })) => {
            let answer = answer_request(endpoint, request, &id, &method, params).await;
            return reply::message(StatusCode::OK, answers::answer(&id, answer));
        }
        Ok(ClientLine::One(Incoming::Notification { .. } | Incoming::Response { .. })) => {
            return reply::empty(StatusCode::ACCEPTED);
        }
        Ok(ClientLine::One(Incoming::Invalid { id, problem })) => (id, refusal(problem)),
        Ok(ClientLine::Batch(_)) => {
            let message = "batches are not part of this protocol version";
            (None, RpcError::new(INVALID_REQUEST, message))
        }
        Err((id, error)) => (Some(id), error),
    };
    tracing::debug!(code = error.code, "refused: {}", error.message);
    reply::message(StatusCode::OK, write::error(id.as_ref(), error))
}

async fn answer_request(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    id: &Id,
    method: &str,
    params: Option<Raw>,
) -> Answer {
    let raw = params.map_or_else(Params::none, Raw::into_bytes);
    let params = Params::read(&raw)?;
    let client = endpoint.client(request).map_err(|refused| refused.error)?;
    let client = client.with_dialect(Dialect::Simple);
    let call = match protocol::simple(&client, &request.account, method, &params)? {
        Action::Call(call) => call,
        Action::Answer(answer) => return answer,
        Action::Initialize { .. } | Action::SetLogLevel(_) | Action::Listen(_) => {
            return Err(failed());
        }
    };
    let task = CallTask {
        level: None,
        client: Arc::new(client),
        call,
        account: request.account.clone(),
        request_id: request.request_id,
        trace: request.trace_of_rpc(&endpoint.broker, Some(id), || None),
        waiting: Charge::default(),
    };
    // Dropped when the connection is closed. This cancels the call.
    let answer = contain(pin!(task.run(None))).await;
    answer.unwrap_or_else(|CaughtPanic| Err(failed()))
}
