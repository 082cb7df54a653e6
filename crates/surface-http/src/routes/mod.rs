//! Answers requests by their route: the table of routes, and a file for the answers of each kind of route.

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use broker_core::{Broker, RequestId};
use broker_model::CallCode;
use broker_surface::meta::similar_names;
use bytes::Bytes;

mod health;
pub(crate) mod jobs;
mod logs;
mod mcp;
mod meta;
mod metrics;
mod page;
pub(crate) mod table;
mod websocket;

use crate::HttpSurface;
use crate::listener::Caller;
use crate::listener_role::ListenerRole;
use crate::pipeline::{self, Admitted, HttpReply, HttpSettings, JSON, Refusal, respond};
use table::{ApiRoute, Handler, Route, Row};

/// The end of the message about a path that a proxy may have passed on with its own path.
const UNKNOWN_BASE: &str = "; a proxy that passes a path before these on needs `public_url` with that path in the config, or `--base-path`";

/// Handles one request, on a connection that may be over the limit. Dropped, with its call, when the
/// caller disconnects.
pub(crate) async fn handle(
    surface: Arc<HttpSurface<impl Broker>>,
    request: Request,
    caller: Caller,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let base_paths = || surface.settings.load().base_paths.clone();
    let has_page = || surface.settings.load().serves_page(surface.exposed);
    let route = table::find(&parts, surface.mcp.is_some(), has_page, base_paths);
    let route = route.filter(|route| route.row.is_served_by(caller.role));
    // Boxed, so that the other routes have no room for them.
    match route.map(|route| (route, route.row.handler)) {
        Some((route, Handler::Mcp(handler))) => {
            let request = Request::from_parts(parts, body);
            return Box::pin(mcp::handle(&surface, (route, handler), request, &caller)).await;
        }
        Some((route, Handler::JobSocket)) => {
            let request = Request::from_parts(parts, body);
            return Box::pin(jobs::socket::handle(&surface, route, request, &caller)).await;
        }
        Some((route, Handler::Page(handler))) => {
            let request = Request::from_parts(parts, body);
            return Box::pin(page::handle(&surface, (route, handler), request, &caller)).await;
        }
        Some((_, Handler::Api(_))) | None => {}
    }
    let request_id = surface.ids.next();
    let mut body = Some(body);
    let outcome = {
        let answer = pin!(surface.answer(route, &parts, &mut body, request_id, &caller));
        surface.contain(request_id, answer).await
    };
    let close = surface.must_close(body, &caller);
    let settings = surface.settings.load();
    let common = surface.common_headers(&settings);
    respond::respond(outcome, &common, request_id, close)
}

impl<B: Broker> HttpSurface<B> {
    /// Makes the checks in the order of `docs/api.md`: host and origin, route, caller, body; then calls
    /// core.
    async fn answer(
        &self,
        route: Option<Route>,
        parts: &Parts,
        body: &mut Option<Body>,
        request_id: RequestId,
        caller: &Caller,
    ) -> Result<HttpReply, Refusal> {
        let settings = self.settings.load_full();
        self.check_hosts(&settings, parts)?;
        // An MCP request has its own reply.
        let Some((route, Handler::Api(handler))) = route.map(|route| (route, route.row.handler))
        else {
            let refusal = self.unknown_route(parts.uri.path(), &settings, caller.role);
            self.count_refused(&refusal);
            return Err(refusal);
        };
        self.check_route(route, &settings)?;
        let (admitted, body) = self
            .check_caller(route.row, parts, body, (caller, &settings))
            .await?;
        match handler {
            ApiRoute::Meta(tool) => {
                let request = (parts, &admitted, caller);
                self.meta(tool, body, request, request_id).await
            }
            ApiRoute::Health(report) => self.health(report, &admitted.identity),
            ApiRoute::Metrics => self.metrics(parts, &admitted).await,
            ApiRoute::Logs => self.logs(parts, &admitted),
            // Boxed, so that other requests do not carry its size.
            ApiRoute::Job(route) => Box::pin(self.jobs(route, parts, &admitted)).await,
            ApiRoute::ResourceMetadata => resource_metadata(&settings),
        }
    }

    fn unknown_route(&self, path: &str, settings: &HttpSettings, role: ListenerRole) -> Refusal {
        let code = CallCode::RouteNotFound;
        match role {
            ListenerRole::Broker => {
                let path = settings.base_paths.below(path).next().unwrap_or(path);
                let close = similar_names(path, &table::paths(self.mcp.is_some()));
                let mut message = table::unknown_message();
                if table::ends_with_a_route(path) {
                    message.push_str(UNKNOWN_BASE);
                }
                Refusal::new(code, message).did_you_mean(close)
            }
            ListenerRole::Metrics => {
                Refusal::new(code, "this listener has the route `GET /metrics` only")
            }
        }
    }

    fn check_route(&self, route: Route, settings: &HttpSettings) -> Result<(), Refusal> {
        check_route(route, settings).inspect_err(|refusal| self.count_refused(refusal))
    }

    /// Checks the caller and the body of a request as the row of its route says.
    async fn check_caller(
        &self,
        row: &Row,
        parts: &Parts,
        body: &mut Option<Body>,
        (caller, settings): (&Caller, &HttpSettings),
    ) -> Result<(Admitted, Bytes), Refusal> {
        // In place: a caller is a large value, and each move of it is a copy.
        let admitted = self.admit(row.credential, parts, caller, &settings.callers);
        let mut admitted = match admitted.await {
            Ok(admitted) => admitted,
            Err(refusal) => {
                self.count_refused(&refusal);
                return Err(refusal);
            }
        };
        let peer = Some(admitted.address);
        admitted.identity.set_origin(row.handler.via(), peer);
        let bytes = match parts.method == Method::POST {
            true => {
                let limit = (row.body_limit)(settings);
                let taken = pipeline::take(&parts.headers, body, limit, &admitted.account);
                match taken.await {
                    Ok(bytes) => bytes,
                    Err(refusal) => {
                        self.count_refused(&refusal);
                        return Err(refusal);
                    }
                }
            }
            false => Bytes::new(),
        };
        Ok((admitted, bytes))
    }
}

/// Refuses a route that is turned off, and a method that it does not have.
fn check_route(route: Route, settings: &HttpSettings) -> Result<(), Refusal> {
    let Route { row, is_allowed } = route;
    if let Some(message) = (row.off)(settings) {
        return Err(Refusal::new(CallCode::RouteNotFound, message));
    }
    if !is_allowed {
        let message = format!("the route allows {}", row.methods);
        return Err(Refusal::new(CallCode::MethodNotAllowed, message).allow(row.methods));
    }
    Ok(())
}

fn resource_metadata(settings: &HttpSettings) -> Result<HttpReply, Refusal> {
    let resource = settings.callers.resource.as_ref();
    let resource = resource.ok_or_else(|| {
        let message =
            "the broker has no `public_url`, so that it is not the resource of an issuer of tokens";
        Refusal::new(CallCode::RouteNotFound, message)
    })?;
    Ok(HttpReply {
        status: StatusCode::OK,
        body: resource.document().to_owned().into(),
        media: JSON,
        etag: None,
    })
}
