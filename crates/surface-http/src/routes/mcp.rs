//! Requests of MCP clients: the checks of the listener, in the order of the other routes, then the endpoint.
//! Refusals are JSON-RPC errors here.

use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use broker_model::CallCode;
use broker_wire::RpcError;
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_REQUEST};
use serde_json::json;

use super::table::{self, Route};
use super::websocket::{self, OtherCredentials};
use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{Admitted, Refusal, body, respond};
use broker_core::{Broker, RequestId};
use broker_surface::{CaughtPanic, contain};
use broker_surface_mcp::McpSettings;
use broker_surface_mcp::http::{
    McpRequest, ModeRoute, ReplyBody, SseRoute, cors, discovery, not_allowed,
};

/// Handles one request of an MCP client. Dropped when the client disconnects. This cancels what belongs to the request
/// alone.
pub(crate) async fn handle(
    surface: &Arc<HttpSurface<impl Broker>>,
    route: Route,
    request: Request,
    caller: &Caller,
) -> Response<Body> {
    let request_id = surface.ids.next();
    let (mut parts, body) = request.into_parts();
    let credentials = match route {
        Route::WebSocket(_) => websocket::take_key(&mut parts),
        _ => OtherCredentials::default(),
    };
    let mut body = Some(body);
    // Host and origin come before everything else, and decide whether a page may read the reply.
    let hosts = surface
        .settings
        .load()
        .hosts
        .check(&parts.uri, &parts.headers);
    let is_admitted = hosts.is_ok();
    let outcome = match hosts {
        Ok(()) => {
            let answer = pin!(answer(
                surface,
                route,
                &mut parts,
                &mut body,
                credentials,
                (request_id, caller),
            ));
            match contain(answer).await {
                Ok(outcome) => outcome,
                Err(CaughtPanic) => Err(surface.panicked(request_id)),
            }
        }
        Err(refusal) => Err(refusal),
    };
    let unread = body.filter(|body| !body.is_end_stream());
    let must_close = unread.is_some() || caller.is_refused() || surface.drain.is_draining();
    if let Some(unread) = unread {
        body::linger(unread);
    }
    let reply = outcome.unwrap_or_else(|refusal| {
        tracing::debug!(
            request_id = request_id.as_str(),
            code = refusal.code().as_str(),
            "refused"
        );
        let settings = surface.settings.load();
        respond::refused_message(
            &refusal,
            rpc_error(&refusal, request_id.as_str(), settings.mcp.body_bytes),
            settings.callers.resource.as_ref(),
        )
    });
    let (mut head, reply_body) = reply.into_parts();
    if is_admitted {
        cors::add_headers(&parts.headers, &mut head.headers);
    }
    let settings = surface.settings.load();
    let common = surface.common_headers(&settings);
    let close = must_close && head.status != StatusCode::SWITCHING_PROTOCOLS;
    common.add_to(&mut head.headers, request_id, close);
    Response::from_parts(head, Body::new(reply_body))
}

async fn answer(
    surface: &HttpSurface<impl Broker>,
    route: Route,
    parts: &mut Parts,
    body: &mut Option<Body>,
    credentials: OtherCredentials,
    (request_id, caller): (RequestId, &Caller),
) -> Result<Response<ReplyBody>, Refusal> {
    let settings = surface.settings.load_full();
    let (route, is_websocket) = match route {
        Route::WebSocket(route) => (route, true),
        Route::Mcp(route) => (route, false),
        Route::Sse(route) => return sse(surface, route, parts, body, (request_id, caller)).await,
        _ => return Err(Refusal::new(CallCode::RouteNotFound, table::MESSAGE)),
    };
    if route == ModeRoute::V1 && !settings.mcp.serves_v1 {
        let message = "the routes below `/v1` are turned off: `surfaces.v1` is `false`";
        return Err(Refusal::new(CallCode::RouteNotFound, message));
    }
    if is_websocket {
        return websocket::answer(surface, route, parts, credentials, request_id, caller).await;
    }
    let is_discovery = settings.mcp.serves_v1 && discovery::is_asked_for(route, parts);
    let has_message = match parts.method {
        _ if is_discovery => false,
        Method::OPTIONS => return Ok(cors::preflight(parts, surface.auth.key_header())),
        Method::POST => true,
        Method::GET | Method::DELETE => false,
        _ => return Ok(not_allowed(broker_surface_mcp::http::METHODS)),
    };
    let admitted = surface.admit(parts, caller, &settings.callers).await?;
    let request = admitted.request(parts, route, &settings.mcp, (request_id, caller));
    let Some(endpoint) = surface.mcp.as_ref() else {
        return Err(Refusal::new(CallCode::RouteNotFound, "MCP is turned off"));
    };
    if is_discovery {
        return Ok(endpoint.discovery(&request).await?);
    }
    if !has_message {
        return Ok(endpoint.without_message(&request));
    }
    body::check_type(&parts.headers)?;
    let bytes = body::read(body, settings.mcp.body_bytes, &request.account).await?;
    Ok(endpoint.message(&request, bytes).await?)
}

impl Admitted {
    /// The request of an MCP client that this caller sends.
    pub(crate) fn request<'a>(
        self,
        parts: &'a Parts,
        route: ModeRoute,
        settings: &'a McpSettings,
        (request_id, caller): (RequestId, &Caller),
    ) -> McpRequest<'a> {
        McpRequest {
            parts,
            route,
            settings,
            identity: self.identity,
            account: self.account,
            address: self.address,
            request_id,
            stream: caller.stream(),
        }
    }
}

/// Handles a request of the transport HTTP+SSE.
async fn sse(
    surface: &HttpSurface<impl Broker>,
    route: SseRoute,
    parts: &Parts,
    body: &mut Option<Body>,
    (request_id, caller): (RequestId, &Caller),
) -> Result<Response<ReplyBody>, Refusal> {
    let settings = surface.settings.load_full();
    let Some(endpoint) = surface.mcp.as_ref().filter(|_| settings.mcp.serves_sse) else {
        let message = "the transport HTTP+SSE is turned off: set `surfaces.sse` to `true`, or let the client use `/mcp`, the transport Streamable HTTP";
        return Err(Refusal::new(CallCode::RouteNotFound, message));
    };
    if parts.method == Method::OPTIONS {
        return Ok(cors::preflight(parts, surface.auth.key_header()));
    }
    if parts.method != route.method() {
        return Ok(not_allowed(route.method()));
    }
    let admitted = surface.admit(parts, caller, &settings.callers).await?;
    let mode = ModeRoute::Configured;
    let request = admitted.request(parts, mode, &settings.mcp, (request_id, caller));
    match route {
        SseRoute::Stream => Ok(endpoint.open_sse(&request)),
        SseRoute::Message => {
            body::check_type(&parts.headers)?;
            let bytes = body::read(body, settings.mcp.body_bytes, &request.account).await?;
            Ok(endpoint.sse_message(&request, bytes).await?)
        }
    }
}

/// Returns a refusal of the listener as a JSON-RPC error. Its `data` is the error object of the meta API; for a body
/// over the limit it is `{"limit": BYTES}`.
fn rpc_error(refusal: &Refusal, request_id: &str, body_limit: usize) -> RpcError {
    let error = refusal.error();
    let code = match respond::status_of(error.code) {
        status if status.is_server_error() => INTERNAL_ERROR,
        _ => INVALID_REQUEST,
    };
    let is_body_limit = error.code == CallCode::BodyTooLarge && error.details.is_none();
    let data = match is_body_limit {
        true => json!({ "limit": body_limit }),
        false => serde_json::to_value(error.members(Some(request_id))).unwrap_or_default(),
    };
    RpcError::new(code, error.message.clone()).data(data)
}
