//! The transport over HTTP; revisions from 2025-03-26 on call it Streamable HTTP. `post` reads messages and handles
//! messages of the modern era, `legacy` handles messages of a session; `sessions` and `session` hold what legacy
//! clients leave open between messages. `sse` is the older transport with a stream for all messages.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use broker_config::{LegacySessions, McpMode, Routing};
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, MODERN};
use broker_wire::{Id, RpcError};
use bytes::Bytes;

pub mod cors;
pub mod discovery;
mod headers;
mod legacy;
mod post;
mod reply;
mod respond;
mod session;
mod session_id;
mod sessions;
mod simple;
mod sse;
mod stream;
mod target;

pub use super::websocket::{PushFrame, PushSocket, WebSocketClient};
pub use headers::trace_header;
pub use reply::{ReplyBody, StreamReply, empty as empty_reply, error_reply};
pub use sse::{MESSAGE as SSE_MESSAGE, STREAM as SSE_STREAM, SseRoute};
pub use target::ModeRoute;

use super::adapter::Dialect;
use super::answer_limit::{AnswerLimit, Way};
use super::websocket::{JobFollowers, MAX_MESSAGE_BYTES};
use super::{Client, adapter, result};
use crate::{ClientView, McpSettings};
use broker_core::{Account, Broker, CallTrace, CoreError, Identity, RequestId};
use broker_surface::RequestIds;
use broker_surface::{CallerShare, ClientPlace, StreamState, trace_of, trace_of_rpc};
use reply::Refused;
use session::SessionUse;
use session_id::SessionId;
use sessions::{OwnedStream, Sessions};
use sse::SseTable;
use stream::EventLimit;

/// The methods of the endpoint.
pub const METHODS: &str = "POST, GET, DELETE, OPTIONS";
/// The methods that requests of the modern era may use.
const MODERN_METHODS: &str = "POST";

/// The endpoint of MCP clients on a listener.
#[derive(Debug)]
pub struct McpEndpoint<B> {
    broker: B,
    ids: Arc<RequestIds>,
    sessions: Arc<Sessions<B>>,
    /// The streams of the transport HTTP+SSE.
    sse: Arc<SseTable>,
}

/// A request that passed the checks of the listener.
#[derive(Debug)]
pub struct McpRequest<'a> {
    pub parts: &'a Parts,
    pub route: ModeRoute,
    /// The settings of the endpoint; the route may have another mode.
    pub settings: &'a McpSettings,
    pub identity: Identity,
    /// The account that is charged for the message and its answer.
    pub account: Account,
    /// The address of the client; a trusted proxy may have named it.
    pub address: IpAddr,
    /// The address and the port of the other end of the connection.
    pub peer: IpAddr,
    pub port: Option<u16>,
    pub request_id: RequestId,
    /// The state of the stream that the connection may become.
    pub stream: Option<Arc<StreamState>>,
}

impl McpRequest<'_> {
    /// Returns the limit of the events of a stream that answers the request.
    fn event_limit(&self) -> EventLimit {
        EventLimit {
            messages: AnswerLimit {
                way: Way::Event,
                bytes: self.settings.event_bytes,
            },
            request_id: self.request_id,
        }
    }

    /// Returns the trace context of its headers, if calls are traced.
    fn trace(&self, broker: &impl Broker) -> Option<Box<CallTrace>> {
        let client = ClientPlace {
            address: self.address,
            peer: self.peer,
            port: self.port,
        };
        trace_of(broker, client, |name| {
            headers::trace_header(&self.parts.headers, name)
        })
    }

    /// Returns the same for a request of JSON-RPC in its body, whose client uses this revision.
    fn trace_of_rpc(
        &self,
        broker: &impl Broker,
        id: Option<&Id>,
        revision: impl FnOnce() -> Option<&'static str>,
    ) -> Option<Box<CallTrace>> {
        // Most brokers trace no calls.
        if !broker.traces_calls() {
            return None;
        }
        trace_of_rpc(broker, self.trace(broker).as_deref(), id, revision)
    }
}

impl<B: Broker> McpEndpoint<B> {
    pub fn new(broker: B) -> Self {
        Self {
            broker,
            ids: Arc::new(RequestIds::random()),
            sessions: Arc::default(),
            sse: Arc::default(),
        }
    }

    /// Ends idle sessions for as long as it runs.
    pub async fn keep_swept(&self, idle: impl Fn() -> Duration) {
        self.sessions.keep_swept(idle).await;
    }

    /// The number of legacy sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.count()
    }

    /// The number of streams that only their clients end.
    pub fn stream_count(&self) -> usize {
        self.sessions.stream_count()
    }

    /// A request without a message: it opens the stream of a legacy session, or ends the session.
    pub fn without_message(&self, request: &McpRequest<'_>) -> Response<ReplyBody> {
        if is_modern(request.parts) || !self.has_sessions(request) {
            return not_allowed(MODERN_METHODS);
        }
        let reply = self.session(request).and_then(|used| {
            if request.parts.method != Method::DELETE {
                return legacy::open_stream(self, request, used);
            }
            let id = used.session.id();
            self.sessions.end(id);
            tracing::debug!(session = ?id, "a session was deleted by its client");
            Ok(reply::empty(StatusCode::NO_CONTENT))
        });
        reply.unwrap_or_else(|refused| refused.reply(None))
    }

    /// The discovery document, for a request without a message.
    pub async fn discovery(
        &self,
        request: &McpRequest<'_>,
    ) -> Result<Response<ReplyBody>, Box<CoreError>> {
        let client = match self.client(request) {
            Ok(client) => client,
            Err(refused) => return Ok(refused.reply(None)),
        };
        let document =
            adapter::document(&client.broker, &client.identity, &request.account).await?;
        Ok(discovery::reply(&request.parts.headers, document))
    }

    /// The client of a connection that is upgraded to WebSocket. `is_simple` says that the client offered no
    /// subprotocol.
    pub fn websocket(
        &self,
        request: &McpRequest<'_>,
        is_simple: bool,
    ) -> Result<WebSocketClient<B>, Box<Response<ReplyBody>>> {
        let client = self.begin_websocket(request, is_simple);
        client.map_err(|refused| Box::new(refused.reply(None)))
    }

    fn begin_websocket(
        &self,
        request: &McpRequest<'_>,
        is_simple: bool,
    ) -> Result<WebSocketClient<B>, Refused> {
        let owned = self.begin_stream(request)?;
        let is_greeted = is_simple && request.route == ModeRoute::V1;
        let client = self.client(request)?;
        let (client, followers) = match is_greeted {
            true => {
                let (followers, following) = JobFollowers::new();
                let mut client = client.with_dialect(Dialect::Simple);
                client.following = Some(following);
                (client, Some(followers))
            }
            false => (client, None),
        };
        let exec = request.settings.list_changed_exec.as_ref();
        // The connection is the session; its name is the id of the request that opened it.
        let client = client
            .with_session_tools(exec, || request.request_id.to_string())
            .with_task_feed();
        Ok(WebSocketClient {
            client: Arc::new(client),
            account: request.account.clone(),
            trace: request.trace(&self.broker),
            message_bytes: request.settings.body_bytes.min(MAX_MESSAGE_BYTES),
            answer_limit: AnswerLimit {
                way: Way::Frame,
                bytes: request.settings.event_bytes,
            },
            is_greeted,
            followers,
            owned: Box::new(owned),
            state: request.stream.clone(),
        })
    }

    /// A request with a message. An error of the broker is returned if the message cannot be read now.
    pub async fn message(
        &self,
        request: &McpRequest<'_>,
        body: Bytes,
    ) -> Result<Response<ReplyBody>, Box<CoreError>> {
        post::message(self, request, body).await
    }

    /// Whether legacy clients of the route have sessions. Without them, the list of a client cannot depend on its searches.
    fn has_sessions(&self, request: &McpRequest<'_>) -> bool {
        if request.settings.legacy_sessions == LegacySessions::Kept {
            return true;
        }
        let view = request.settings.view;
        request.route.mode(view.mode) == McpMode::Search && view.routing == Routing::Dynamic
    }

    /// The session that the request names. A session of another caller is unknown.
    fn session(&self, request: &McpRequest<'_>) -> Result<SessionUse<B>, Refused> {
        self.named_session(request)?.ok_or_else(session_required)
    }

    /// As [`Self::session`]; `None` if the request does not name a session.
    fn named_session(&self, request: &McpRequest<'_>) -> Result<Option<SessionUse<B>>, Refused> {
        let mut values = request.parts.headers.get_all(headers::SESSION_ID).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let only = values.next().is_none();
        let id = SessionId::parse(value).filter(|_| only);
        let used = id.and_then(|id| self.sessions.use_session(id, &request.identity));
        let used = used.ok_or_else(|| {
            let message = "the session is unknown or has ended: send `initialize` without `Mcp-Session-Id` to begin another";
            Refused::new(
                StatusCode::NOT_FOUND,
                RpcError::new(INVALID_REQUEST, message),
            )
        })?;
        legacy::check_version(request.parts)?;
        Ok(Some(used))
    }

    /// Counts a stream of the caller that ends only with its connection.
    fn begin_stream(&self, request: &McpRequest<'_>) -> Result<OwnedStream<B>, Refused> {
        let owner = CallerShare::new(&request.identity, request.address);
        self.sessions.begin_stream(owner).map_err(|_full| {
            let error = RpcError::new(INTERNAL_ERROR, "this caller has too many open streams");
            Refused::new(StatusCode::TOO_MANY_REQUESTS, error)
        })
    }

    /// The client of a request that belongs to no session: its mode and its part of the tree come from the
    /// URL.
    fn client(&self, request: &McpRequest<'_>) -> Result<Client<B>, Refused> {
        let under = target::under(request.parts.uri.query())
            .map_err(|message| Refused::bad_request(RpcError::new(INVALID_REQUEST, message)))?;
        let identity = match under {
            None => request.identity.clone(),
            Some(path) => self
                .broker
                .services()
                .within(&request.identity, &path)
                .map_err(|error| {
                    let object = result::error_object(&error, request.request_id.as_str());
                    let error = RpcError::new(INVALID_PARAMS, error.message.clone()).data(object);
                    Refused::new(StatusCode::NOT_FOUND, error)
                })?,
        };
        let configured = request.settings.view;
        let view = ClientView {
            mode: request.route.mode(configured.mode),
            // By the route and the key alone: a list must not depend on what a client says about itself.
            vendor: request.route.vendor().or(request.identity.vendor()),
            ..configured
        };
        let client = Client::new(self.broker.clone(), identity, view, Arc::clone(&self.ids));
        Ok(client.with_dialect(request.route.dialect()))
    }
}

/// Whether the request says in a header that it is of the modern era.
fn is_modern(parts: &Parts) -> bool {
    parts
        .headers
        .get(headers::PROTOCOL_VERSION)
        .is_some_and(|version| version.as_bytes().trim_ascii() == MODERN.as_bytes())
}

/// Returns the refusal of a request that needs a session and does not name one.
fn session_required() -> Refused {
    let message = "session required: send `initialize` first and its `Mcp-Session-Id` with every later request, or requests that describe themselves in `_meta`";
    Refused::bad_request(RpcError::new(INVALID_REQUEST, message))
}

/// The refusal of a method of HTTP.
fn not_allowed(methods: &'static str) -> Response<ReplyBody> {
    let error = RpcError::new(INVALID_REQUEST, format!("the route allows {methods}"));
    let mut response = error_reply(StatusCode::METHOD_NOT_ALLOWED, error);
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(methods));
    response
}
