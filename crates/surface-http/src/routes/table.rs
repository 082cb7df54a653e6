//! The closed list of routes. No route takes a command, a file or an address.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use broker_config::McpMode;
use broker_model::model_vendor::ModelVendor;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use super::health::HealthRoute;
use broker_surface::meta::Listing;
use broker_surface_mcp::http::{ModeRoute, SSE_MESSAGE, SSE_STREAM, SseRoute};

/// Every path, for suggestions.
pub(crate) const PATHS: [&str; 20] = [
    "/meta_call",
    "/meta_tree",
    "/meta_desc",
    "/healthz",
    "/readyz",
    "/sources",
    METADATA_PATHS[0],
    METADATA_PATHS[1],
    MCP,
    "/mcp/meta",
    "/mcp/direct",
    "/mcp/direct/openai",
    "/mcp/direct/gemini",
    "/mcp/direct/anthropic",
    "/mcp/search",
    V1_MCP,
    WEBSOCKET,
    V1_WEBSOCKET,
    SSE_STREAM,
    SSE_MESSAGE,
];
/// The paths of the document for clients that need a token: for a resource at the root of its host, and for `/mcp`.
const METADATA_PATHS: [&str; 2] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
];
const MCP: &str = "/mcp";
const V1_MCP: &str = "/v1/mcp";
const WEBSOCKET: &str = "/ws/mcp";
const V1_WEBSOCKET: &str = "/v1/ws/mcp";
/// The number of paths that exist without MCP.
const OTHERS: usize = 8;

/// The paths that exist.
pub(crate) fn paths(mcp: bool) -> &'static [&'static str] {
    if mcp { &PATHS } else { &PATHS[..OTHERS] }
}

/// The message of an unknown route.
pub(crate) const MESSAGE: &str = "the routes are `POST /meta_tree`, `POST /meta_desc`, `POST /meta_call`, `GET /healthz`, `GET /readyz`, `GET /sources` and, unless MCP is turned off, `/mcp`, `/v1/mcp`, `/ws/mcp` and `/v1/ws/mcp`";

/// The meta-tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaTool {
    Call,
    List(Listing),
}

/// The route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A meta-tool.
    Meta(MetaTool),
    /// The broker's health. It needs no secret.
    Health(HealthRoute),
    /// The document for clients that need a token. It needs no credential.
    ResourceMetadata,
    /// The endpoint of MCP clients, with any method.
    Mcp(ModeRoute),
    /// The endpoint of MCP clients over WebSocket, with any method.
    WebSocket(ModeRoute),
    /// The transport HTTP+SSE, with any method.
    Sse(SseRoute),
    /// A route that allows only these methods.
    WrongMethod(&'static str),
    /// An unknown route.
    Unknown,
}

/// Methods with an own column in the table of routes.
const METHODS: [Method; 3] = [Method::POST, Method::GET, Method::HEAD];

/// The routes and their methods. The router is asked once for each pair of path and method, since one
/// pass through it costs a tenth of a call; it does not run a request, for the same reason.
#[derive(Debug)]
pub(crate) struct Routes {
    router: TowerToHyperService<Router>,
    /// The answers of the router for [`PATHS`] and [`METHODS`].
    known: [[OnceLock<Route>; METHODS.len()]; PATHS.len()],
}

impl Routes {
    /// Returns the routes; the routes of MCP clients only with `mcp`.
    pub(crate) fn new(mcp: bool) -> Self {
        let meta = |tool| post(Route::Meta(tool)).fallback(Route::WrongMethod("POST"));
        let report = |report| get(Route::Health(report)).fallback(Route::WrongMethod("GET, HEAD"));
        let mode = |mode| any(Route::Mcp(ModeRoute::Fixed(mode)));
        let vendor = |vendor| any(Route::Mcp(ModeRoute::Vendor(vendor)));
        let mut router = Router::new()
            .route("/meta_call", meta(MetaTool::Call))
            .route("/meta_tree", meta(MetaTool::List(Listing::Tree)))
            .route("/meta_desc", meta(MetaTool::List(Listing::Desc)))
            .route("/healthz", report(HealthRoute::Alive))
            .route("/readyz", report(HealthRoute::Ready))
            .route("/sources", report(HealthRoute::Sources))
            .fallback(Route::Unknown);
        for path in METADATA_PATHS {
            let only = Route::WrongMethod("GET, HEAD");
            router = router.route(path, get(Route::ResourceMetadata).fallback(only));
        }
        if mcp {
            router = router
                .route(MCP, any(Route::Mcp(ModeRoute::Configured)))
                .route("/mcp/meta", mode(McpMode::Meta))
                .route("/mcp/direct", mode(McpMode::Direct))
                .route("/mcp/direct/openai", vendor(ModelVendor::OpenAi))
                .route("/mcp/direct/gemini", vendor(ModelVendor::Gemini))
                .route("/mcp/direct/anthropic", vendor(ModelVendor::Anthropic))
                .route("/mcp/search", mode(McpMode::Search))
                .route(V1_MCP, any(Route::Mcp(ModeRoute::V1)))
                .route(WEBSOCKET, any(Route::WebSocket(ModeRoute::Configured)))
                .route(V1_WEBSOCKET, any(Route::WebSocket(ModeRoute::V1)))
                .route(SSE_STREAM, any(Route::Sse(SseRoute::Stream)))
                .route(SSE_MESSAGE, any(Route::Sse(SseRoute::Message)));
        }
        Self {
            router: TowerToHyperService::new(router),
            known: Default::default(),
        }
    }

    /// Returns the route of a request, by its method and its path. The path is compared byte for byte. One slash at its
    /// end is ignored: servers of several frameworks redirect from one form to the other, so that clients have both.
    pub(crate) async fn find(&self, parts: &Parts) -> Route {
        let path = parts.uri.path();
        let path = path.strip_suffix('/').unwrap_or(path);
        let path = PATHS.iter().position(|known| *known == path);
        let method = METHODS.iter().position(|method| *method == parts.method);
        let known = path
            .zip(method)
            .map(|(path, method)| &self.known[path][method]);
        if let Some(route) = known.and_then(OnceLock::get) {
            return *route;
        }
        let route = match path {
            Some(path) => self.ask_router(&parts.method, PATHS[path]).await,
            None => Route::Unknown,
        };
        if let Some(known) = known {
            // Another request may have stored the same answer.
            known.set(route).ok();
        }
        route
    }

    async fn ask_router(&self, method: &Method, path: &'static str) -> Route {
        let mut head = Request::new(Body::empty());
        *head.method_mut() = method.clone();
        *head.uri_mut() = Uri::from_static(path);
        match self.router.call(head).await {
            Ok(mut found) => found.extensions_mut().remove().unwrap_or(Route::Unknown),
            Err(never) => match never {},
        }
    }
}

impl IntoResponse for Route {
    fn into_response(self) -> Response {
        let mut found = Response::new(Body::empty());
        found.extensions_mut().insert(self);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn find(method: &str, path: &str) -> Route {
        let request = Request::builder().method(method).uri(path);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let routes = Routes::new(true);
        let route = routes.find(&parts).await;
        assert_eq!(routes.find(&parts).await, route, "asked twice");
        route
    }

    #[tokio::test]
    async fn route_is_found_by_exact_path_and_method() {
        let tree = Route::Meta(MetaTool::List(Listing::Tree));
        assert_eq!(find("POST", "/meta_tree").await, tree);
        for path in PATHS {
            for method in ["POST", "GET", "DELETE"] {
                let with_slash = format!("{path}/");
                assert_eq!(
                    find(method, &with_slash).await,
                    find(method, path).await,
                    "{path}"
                );
            }
        }
        assert_eq!(find("POST", "/meta_tree?x=1").await, tree);
        for unknown in [
            "/",
            "/meta_tree//",
            "/META_TREE",
            "//meta_tree",
            "/meta%5ftree",
            "*",
        ] {
            assert_eq!(find("POST", unknown).await, Route::Unknown, "{unknown}");
        }
        for path in PATHS[..OTHERS].iter().copied() {
            let is_meta = path.starts_with("/meta_");
            let (wrong, allow) = if is_meta {
                ("GET", "POST")
            } else {
                ("POST", "GET, HEAD")
            };
            for method in [wrong, "PUT", "OPTIONS", "CONNECT", "BREW"] {
                let found = find(method, path).await;
                assert_eq!(found, Route::WrongMethod(allow), "{method} {path}");
            }
        }
        for method in ["POST", "GET", "DELETE", "OPTIONS", "PUT"] {
            let direct = Route::Mcp(ModeRoute::Fixed(McpMode::Direct));
            assert_eq!(find(method, "/mcp/direct").await, direct);
            assert_eq!(
                find(method, "/mcp").await,
                Route::Mcp(ModeRoute::Configured)
            );
        }
        let ready = Route::Health(HealthRoute::Ready);
        assert_eq!(find("GET", "/readyz").await, ready);
        assert_eq!(find("HEAD", "/readyz").await, ready);
    }
    #[tokio::test]
    async fn routes_of_mcp_clients_are_unknown_without_mcp() {
        let routes = Routes::new(false);
        for path in &PATHS[OTHERS..] {
            let request = Request::builder().method("POST").uri(*path);
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(routes.find(&parts).await, Route::Unknown, "{path}");
        }
    }
}
