//! Requests of MCP clients: the checks of the listener, in the order of the other routes, then the endpoint.
//! Refusals are JSON-RPC errors here.

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use broker_model::CallCode;
use broker_wire::RpcError;
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_REQUEST};
use serde_json::json;

use super::table::{McpRoute, Route};
use super::websocket::{self, Offer, OtherCredentials};
use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{Admitted, Refusal, respond};
use broker_core::{Broker, RequestId};
use broker_surface_mcp::McpSettings;
use broker_surface_mcp::http::{McpRequest, ModeRoute, ReplyBody, SseRoute, cors, discovery};

/// Handles one request of an MCP client. Dropped when the client disconnects. This cancels what belongs to the request
/// alone.
pub(crate) async fn handle(
    surface: &Arc<HttpSurface<impl Broker>>,
    (route, handler): (Route, McpRoute),
    request: Request,
    caller: &Caller,
) -> Response<Body> {
    let request_id = surface.ids.next();
    let (mut parts, body) = request.into_parts();
    let credentials = match handler {
        McpRoute::WebSocket(_) => websocket::take_key(&mut parts),
        McpRoute::Message(_) | McpRoute::Sse(_) => OtherCredentials::default(),
    };
    let mut body = Some(body);
    // Host and origin come before everything else, and decide whether a page may read the reply.
    let hosts = surface.check_hosts(&surface.settings.load(), &parts);
    let is_admitted = hosts.is_ok();
    let outcome = match hosts {
        Ok(()) => {
            let ids = (request_id, caller);
            let route = (route, handler);
            let answer = pin!(answer(
                surface,
                route,
                &mut parts,
                &mut body,
                credentials,
                ids
            ));
            surface.contain(request_id, answer).await
        }
        Err(refusal) => Err(refusal),
    };
    let must_close = surface.must_close(body, caller);
    let reply = outcome.unwrap_or_else(|refusal| {
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
    (route, handler): (Route, McpRoute),
    parts: &mut Parts,
    body: &mut Option<Body>,
    credentials: OtherCredentials,
    (request_id, caller): (RequestId, &Caller),
) -> Result<Response<ReplyBody>, Refusal> {
    let settings = surface.settings.load_full();
    surface.check_route(route, &settings)?;
    let is_discovery = match handler {
        McpRoute::Message(mode) => settings.mcp.serves_v1 && discovery::is_asked_for(mode, parts),
        McpRoute::WebSocket(_) | McpRoute::Sse(_) => false,
    };
    if parts.method == Method::OPTIONS && !is_discovery {
        return Ok(cors::preflight(parts, surface.auth.key_header()));
    }
    let offer = match handler {
        McpRoute::WebSocket(_) => websocket::read_offer(surface, parts, credentials)?,
        McpRoute::Message(_) | McpRoute::Sse(_) => Offer::default(),
    };
    let (admitted, body) = surface
        .check_caller(route.row, parts, body, (caller, &settings))
        .await?;
    let Some(endpoint) = surface.mcp.as_ref() else {
        return Err(Refusal::new(CallCode::RouteNotFound, "MCP is turned off"));
    };
    let (settings, ids) = (&settings.mcp, (request_id, caller));
    match handler {
        McpRoute::WebSocket(mode) => {
            websocket::answer(endpoint, (mode, offer), parts, admitted, settings, ids)
        }
        McpRoute::Message(mode) => {
            let request = admitted.request(parts, mode, settings, ids);
            match parts.method {
                _ if is_discovery => Ok(endpoint.discovery(&request).await?),
                Method::POST => Ok(endpoint.message(&request, body).await?),
                _ => Ok(endpoint.without_message(&request)),
            }
        }
        McpRoute::Sse(route) => {
            let request = admitted.request(parts, ModeRoute::Configured, settings, ids);
            match route {
                SseRoute::Stream => Ok(endpoint.open_sse(&request)),
                SseRoute::Message => Ok(endpoint.sse_message(&request, body).await?),
            }
        }
    }
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
            peer: caller.address,
            port: caller.port,
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

/// Returns a refusal of the listener as a JSON-RPC error. Its `data` is the error object of the meta API; for a body
/// over the limit it is `{"limit": BYTES}`, and a wrong method has none.
fn rpc_error(refusal: &Refusal, request_id: &str, body_limit: usize) -> RpcError {
    let error = refusal.error();
    let code = match respond::status_of(error.code) {
        status if status.is_server_error() => INTERNAL_ERROR,
        _ => INVALID_REQUEST,
    };
    let rpc_error = RpcError::new(code, error.message.clone());
    if error.code == CallCode::MethodNotAllowed {
        return rpc_error;
    }
    let is_body_limit = error.code == CallCode::BodyTooLarge && error.details.is_none();
    let data = match is_body_limit {
        true => json!({ "limit": body_limit }),
        false => serde_json::to_value(error.members(Some(request_id))).unwrap_or_default(),
    };
    rpc_error.data(data)
}
