//! Answers requests by their route: the table of routes, and a file for the answers of each kind of route.

use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use broker_core::{Broker, RequestId};
use broker_model::CallCode;
use broker_surface::meta::similar_names;
use broker_surface::{CaughtPanic, contain};

mod health;
mod mcp;
mod meta;
mod table;
mod websocket;

pub(crate) use table::Routes;

use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{HttpReply, Refusal, body, check_query, respond};
use table::Route;

/// Handles one request, on a connection that may be over the limit. Dropped, with its call, when the
/// caller disconnects.
pub(crate) async fn handle(
    surface: Arc<HttpSurface<impl Broker>>,
    request: Request,
    caller: Caller,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let route = surface.routes.find(&parts).await;
    if let Route::Mcp(_) | Route::WebSocket(_) | Route::Sse(_) = route {
        let request = Request::from_parts(parts, body);
        // Boxed, so that the other routes have no room for it.
        return Box::pin(mcp::handle(&surface, route, request, &caller)).await;
    }
    let request_id = surface.ids.next();
    let mut body = Some(body);
    let outcome = {
        let answer = surface.answer(route, &parts, &mut body, request_id, &caller);
        match contain(pin!(answer)).await {
            Ok(outcome) => outcome,
            Err(CaughtPanic) => Err(surface.panicked(request_id)),
        }
    };
    if let Err(refusal) = &outcome {
        tracing::debug!(
            request_id = request_id.as_str(),
            code = refusal.code().as_str(),
            "refused"
        );
    }
    // The unread rest of a body would be read as the next request, so the connection is closed.
    let unread = body.filter(|body| !body.is_end_stream());
    let close = unread.is_some() || caller.is_refused() || surface.drain.is_draining();
    if let Some(unread) = unread {
        body::linger(unread);
    }
    let settings = surface.settings.load();
    let common = surface.common_headers(&settings);
    respond::respond(outcome, &common, request_id, close)
}

impl<B: Broker> HttpSurface<B> {
    /// Makes the checks in the order of `docs/api.md`: host and origin, route, caller, body; then calls
    /// core.
    async fn answer(
        &self,
        route: Route,
        parts: &Parts,
        body: &mut Option<Body>,
        request_id: RequestId,
        caller: &Caller,
    ) -> Result<HttpReply, Refusal> {
        let settings = self.settings.load_full();
        settings.hosts.check(&parts.uri, &parts.headers)?;
        match route {
            Route::Meta(tool) => {
                self.meta(tool, parts, body, request_id, (caller, &settings))
                    .await
            }
            Route::Health(report) => {
                check_query(parts.uri.query())?;
                self.health(report, parts, caller, &settings.callers).await
            }
            Route::ResourceMetadata => {
                let resource = settings.callers.resource.as_ref();
                let document = resource.ok_or_else(|| {
                    let message = "the broker has no `public_url`, so that it is not the resource of an issuer of tokens";
                    Refusal::new(CallCode::RouteNotFound, message)
                })?;
                Ok(HttpReply {
                    status: StatusCode::OK,
                    body: document.document().to_owned().into(),
                    etag: None,
                })
            }
            Route::WrongMethod(allow) => {
                let message = format!("the route allows {allow}");
                Err(Refusal::new(CallCode::MethodNotAllowed, message).allow(allow))
            }
            // An MCP request has its own reply.
            Route::Unknown | Route::Mcp(_) | Route::WebSocket(_) | Route::Sse(_) => {
                let close = similar_names(parts.uri.path(), table::paths(self.mcp.is_some()));
                let refusal = Refusal::new(CallCode::RouteNotFound, table::MESSAGE);
                Err(refusal.did_you_mean(close))
            }
        }
    }
}
