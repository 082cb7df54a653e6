//! The transport HTTP+SSE of MCP 2024-11-05, for old clients: a stream of the client carries all messages to it, and
//! each message of the client is a separate request. The stream is the connection, as one over WebSocket is.
//!
//! `GET /sse` opens the stream. The first event of the stream, `endpoint`, has the URL for messages. The URL contains the
//! id of the stream. The reply to a message is 202; the answer to the message comes on the stream.

mod exchange;
mod table;

use std::sync::Arc;

use axum::http::{HeaderValue, Response, StatusCode, header};
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_REQUEST};
use broker_wire::{RpcError, read_client_line};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::post::read_checked;
use super::reply::{self, Refused, ReplyBody, StreamReply};
use super::session_id::SessionId;
use super::stream::EventStream;
use super::{McpEndpoint, McpRequest, headers};
use crate::reply::failed;
use broker_core::{Broker, CoreError, SMALL_BYTES};

use table::SseLine;
pub(super) use table::SseTable;

/// The path of the stream.
pub const STREAM: &str = "/sse";
/// The path of messages.
pub const MESSAGE: &str = "/sse/message";
/// The parameter of the query with the id of the stream.
const SESSION: &str = "session";
/// The maximum number of messages of a client that were not yet handled.
const MAX_WAITING_LINES: usize = 32;
/// The maximum number of messages for a client that wait to be written. Then no further message of it is handled.
const MAX_WAITING_MESSAGES: usize = 16;
/// `Retry-After` of a message that has no place, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// A route of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseRoute {
    /// The stream of a client.
    Stream,
    /// A message of a client.
    Message,
}

impl<B: Broker> McpEndpoint<B> {
    /// Opens the stream of a client.
    pub fn open_sse(&self, request: &McpRequest<'_>) -> Response<ReplyBody> {
        self.begin_sse(request)
            .unwrap_or_else(|refused| refused.reply(None))
    }

    fn begin_sse(&self, request: &McpRequest<'_>) -> Result<Response<ReplyBody>, Refused> {
        if !headers::accepted(&request.parts.headers).stream {
            return Err(Refused::not_acceptable("`text/event-stream`"));
        }
        let owned = self.begin_stream(request)?;
        let id = SessionId::random().map_err(|error| {
            tracing::error!(%error, "the system gives no random bytes for a stream");
            Refused::new(StatusCode::INTERNAL_SERVER_ERROR, failed())
        })?;
        let exec = request.settings.list_changed_exec.as_ref();
        let client = self
            .client(request)?
            .with_session_tools(exec, || id.hash())
            .with_task_feed();
        let (lines, received) = mpsc::channel(MAX_WAITING_LINES);
        let entry = self.sse.add(id, request.identity.clone(), lines);
        let (output, messages) = mpsc::channel(MAX_WAITING_MESSAGES);
        let (ended, end) = oneshot::channel::<()>();
        let account = (request.account.clone(), request.settings.event_bytes);
        let state = request.stream.clone();
        tokio::spawn(async move {
            exchange::run((Arc::new(client), state), account, received, output).await;
            drop((entry, owned, ended));
        });
        tracing::debug!(stream = ?id, "a stream of HTTP+SSE began");
        let end = Box::pin(async move {
            end.await.ok();
            None
        });
        // A relative reference: the broker does not know the host name that the client uses.
        let id = id.header();
        let id = id.to_str().unwrap_or_default();
        let base = &request.settings.base_path;
        let endpoint = format!("{base}{MESSAGE}?{SESSION}={id}");
        let stream = EventStream::new(Some(messages), end, request.event_limit())
            .starting_with_endpoint(&endpoint);
        Ok(reply::stream(StreamReply::Open, stream))
    }

    /// Takes a message of a client.
    pub async fn sse_message(
        &self,
        request: &McpRequest<'_>,
        body: Bytes,
    ) -> Result<Response<ReplyBody>, Box<CoreError>> {
        let Some(lines) = session_of(request.parts.uri.query())
            .and_then(|id| self.sse.lines(id, &request.identity))
        else {
            let message = "the stream is unknown or has ended: open another one with `GET /sse`";
            let error = RpcError::new(INVALID_REQUEST, message);
            return Ok(Refused::new(StatusCode::NOT_FOUND, error).reply(None));
        };
        let line = match body.len() {
            ..=SMALL_BYTES => Ok(read_client_line(&body)),
            _ => {
                let read = move || read_checked(&body);
                self.broker
                    .services()
                    .read_long(&request.account, read)
                    .await?
            }
        };
        let line = match line {
            Ok(line) => line,
            Err((id, error)) => return Ok(Refused::bad_request(error).reply(Some(&id))),
        };
        let trace = request.trace(&self.broker);
        Ok(match lines.try_send(SseLine { line, trace }) {
            Ok(()) => reply::empty(StatusCode::ACCEPTED),
            Err(_) => {
                let message = format!(
                    "the stream has {MAX_WAITING_LINES} messages that were not handled: read their answers first"
                );
                let error = RpcError::new(INTERNAL_ERROR, message);
                let mut reply = Refused::new(StatusCode::SERVICE_UNAVAILABLE, error).reply(None);
                reply.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
                reply
            }
        })
    }
}

/// Reads the id of the stream from the query. A query with another parameter has no id.
fn session_of(query: Option<&str>) -> Option<SessionId> {
    let value = query?.strip_prefix(SESSION)?.strip_prefix('=')?;
    SessionId::parse(&HeaderValue::from_str(value).ok()?)
}
