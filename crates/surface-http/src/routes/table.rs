//! The table of routes. No route takes a command, a file or an address.

use axum::http::Method;
use axum::http::request::Parts;
use broker_config::McpMode;
use broker_core::Via;
use broker_model::model_vendor::ModelVendor;
use broker_surface::meta::Listing;
use broker_surface_mcp::http::{METHODS, ModeRoute, SSE_MESSAGE, SSE_STREAM, SseRoute};

use super::health::HealthRoute;
use super::jobs::JobRoute;
use crate::listener_role::ListenerRole;
use crate::pipeline::{BasePaths, Credential, HttpSettings, WELL_KNOWN};

/// A route. The checks before its handler and the messages about routes come from these members.
#[derive(Debug)]
pub(crate) struct Row {
    /// Compared byte for byte.
    pub(crate) path: &'static str,
    /// The methods, as `Allow` has them.
    pub(crate) methods: &'static str,
    /// Whether `OPTIONS` of a browser is answered, without a credential.
    has_preflight: bool,
    /// Returns the reason if a setting turns the route off.
    pub(crate) off: fn(&HttpSettings) -> Option<&'static str>,
    pub(crate) credential: Credential,
    /// Returns the maximum bytes of the body of a `POST`.
    pub(crate) body_limit: fn(&HttpSettings) -> usize,
    /// It answers a request that passed the checks. Its kind decides the form of errors.
    pub(crate) handler: Handler,
    /// Whether the message about an unknown route names it.
    is_named: bool,
}

impl Row {
    /// Whether a listener has the route.
    #[inline]
    pub(super) const fn is_served_by(&self, role: ListenerRole) -> bool {
        match (role, self.handler) {
            (ListenerRole::Broker, _)
            | (ListenerRole::Metrics, Handler::Api(ApiRoute::Metrics)) => true,
            (
                ListenerRole::Metrics,
                Handler::Mcp(_)
                | Handler::JobSocket
                | Handler::Page(_)
                | Handler::Api(
                    ApiRoute::Meta(_)
                    | ApiRoute::Health(_)
                    | ApiRoute::Logs
                    | ApiRoute::Job(_)
                    | ApiRoute::ResourceMetadata,
                ),
            ) => false,
        }
    }
}

/// The code that answers a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// A route of the meta API. Errors are `{"error":…}`.
    Api(ApiRoute),
    /// A route of MCP clients. Errors are errors of JSON-RPC.
    Mcp(McpRoute),
    /// The events of a job over WebSocket. Errors are those of the meta API.
    JobSocket,
    /// The web page. Errors have the form of the meta API.
    Page(PageRoute),
}

impl Handler {
    /// Returns the name of the surface in records of calls.
    #[inline]
    pub(crate) const fn via(self) -> Via {
        match self {
            Self::Api(_) | Self::Page(_) => Via::Http,
            Self::Mcp(McpRoute::Message(_) | McpRoute::Sse(_)) => Via::McpHttp,
            Self::Mcp(McpRoute::WebSocket(_)) | Self::JobSocket => Via::WebSocket,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ApiRoute {
    Meta(MetaTool),
    Health(HealthRoute),
    /// The metrics.
    Metrics,
    /// The last stderr lines of a source.
    Logs,
    /// Jobs of the caller.
    Job(JobRoute),
    /// The document for clients that need a token.
    ResourceMetadata,
}

/// The meta-tools.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetaTool {
    Call,
    List(Listing),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum McpRoute {
    Message(ModeRoute),
    WebSocket(ModeRoute),
    Sse(SseRoute),
}

/// A route of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageRoute {
    /// The root of the broker, from where a browser goes to the page.
    Root,
    /// The page.
    Page,
    /// A file of it.
    File,
}

/// Every route. Without MCP the routes of MCP clients are unknown.
pub(crate) const TABLE: &[Row] = &[
    named(meta("/meta_tree", MetaTool::List(Listing::Tree))),
    named(meta("/meta_desc", MetaTool::List(Listing::Desc))),
    named(meta("/meta_call", MetaTool::Call)),
    named(health("/healthz", HealthRoute::Alive, Credential::Optional)),
    named(health("/readyz", HealthRoute::Ready, Credential::Optional)),
    named(health(
        "/sources",
        HealthRoute::Sources,
        Credential::ValidIfGiven,
    )),
    named(Row {
        handler: Handler::Api(ApiRoute::Metrics),
        ..health("/metrics", HealthRoute::Sources, Credential::ValidIfGiven)
    }),
    named(Row {
        handler: Handler::Api(ApiRoute::Logs),
        ..health("/logs", HealthRoute::Sources, Credential::Needed)
    }),
    named(job("/jobs", JobRoute::List)),
    Row {
        methods: "GET, HEAD, DELETE",
        ..job("/jobs/{id}", JobRoute::Job)
    },
    job("/jobs/{id}/manifest", JobRoute::Manifest),
    job("/jobs/{id}/download", JobRoute::Download),
    job("/jobs/{id}/events", JobRoute::Events),
    v1(job("/v1/jobs", JobRoute::List)),
    v1(Row {
        methods: "GET, HEAD, DELETE",
        ..job("/v1/jobs/{id}", JobRoute::Job)
    }),
    v1(job("/v1/jobs/{id}/manifest", JobRoute::Manifest)),
    v1(job("/v1/jobs/{id}/download", JobRoute::Download)),
    v1(job("/v1/jobs/{id}/events", JobRoute::Events)),
    v1(job("/v1/mcp/progress/{id}", JobRoute::Progress)),
    job_socket("/ws/jobs/{id}"),
    v1(job_socket("/v1/ws/jobs/{id}")),
    // For a resource at the root of its host, and for the resource `/mcp`.
    metadata(WELL_KNOWN),
    metadata("/.well-known/oauth-protected-resource/mcp"),
    named(mcp("/mcp", ModeRoute::Configured)),
    mcp("/mcp/meta", ModeRoute::Fixed(McpMode::Meta)),
    mcp("/mcp/direct", ModeRoute::Fixed(McpMode::Direct)),
    mcp("/mcp/direct/openai", ModeRoute::Vendor(ModelVendor::OpenAi)),
    mcp("/mcp/direct/gemini", ModeRoute::Vendor(ModelVendor::Gemini)),
    mcp(
        "/mcp/direct/anthropic",
        ModeRoute::Vendor(ModelVendor::Anthropic),
    ),
    mcp("/mcp/search", ModeRoute::Fixed(McpMode::Search)),
    named(v1(mcp("/v1/mcp", ModeRoute::V1))),
    named(websocket("/ws/mcp", ModeRoute::Configured)),
    named(v1(websocket("/v1/ws/mcp", ModeRoute::V1))),
    sse(SSE_STREAM, "GET", SseRoute::Stream),
    sse(SSE_MESSAGE, "POST", SseRoute::Message),
    page(ROOT, PageRoute::Root),
    page("/ui", PageRoute::Page),
    page("/ui/{id}", PageRoute::File),
];

/// The path of the broker itself.
const ROOT: &str = "/";

const fn meta(path: &'static str, tool: MetaTool) -> Row {
    Row {
        path,
        methods: "POST",
        has_preflight: false,
        off: |_| None,
        credential: Credential::Needed,
        body_limit: |settings| settings.body_bytes,
        handler: Handler::Api(ApiRoute::Meta(tool)),
        is_named: false,
    }
}

const fn health(path: &'static str, route: HealthRoute, credential: Credential) -> Row {
    Row {
        methods: "GET, HEAD",
        credential,
        handler: Handler::Api(ApiRoute::Health(route)),
        ..meta(path, MetaTool::Call)
    }
}

const fn job(path: &'static str, route: JobRoute) -> Row {
    Row {
        handler: Handler::Api(ApiRoute::Job(route)),
        ..health(path, HealthRoute::Alive, Credential::Needed)
    }
}

const fn job_socket(path: &'static str) -> Row {
    Row {
        methods: "GET",
        handler: Handler::JobSocket,
        ..job(path, JobRoute::Events)
    }
}

const fn metadata(path: &'static str) -> Row {
    Row {
        handler: Handler::Api(ApiRoute::ResourceMetadata),
        ..health(path, HealthRoute::Alive, Credential::Ignored)
    }
}

const fn mcp(path: &'static str, mode: ModeRoute) -> Row {
    Row {
        methods: METHODS,
        has_preflight: true,
        body_limit: |settings| settings.mcp.body_bytes,
        handler: Handler::Mcp(McpRoute::Message(mode)),
        ..meta(path, MetaTool::Call)
    }
}

const fn websocket(path: &'static str, mode: ModeRoute) -> Row {
    Row {
        methods: "GET",
        has_preflight: false,
        handler: Handler::Mcp(McpRoute::WebSocket(mode)),
        ..mcp(path, mode)
    }
}

const fn sse(path: &'static str, methods: &'static str, route: SseRoute) -> Row {
    Row {
        methods,
        off: |settings| {
            (!settings.mcp.serves_sse).then_some("the transport HTTP+SSE is turned off: set `surfaces.sse` to `true`, or let the client use `/mcp`, the transport Streamable HTTP")
        },
        handler: Handler::Mcp(McpRoute::Sse(route)),
        ..mcp(path, ModeRoute::Configured)
    }
}

const fn page(path: &'static str, route: PageRoute) -> Row {
    Row {
        handler: Handler::Page(route),
        ..health(path, HealthRoute::Alive, Credential::Ignored)
    }
}

const fn v1(row: Row) -> Row {
    Row {
        off: |settings| {
            (!settings.mcp.serves_v1)
                .then_some("the routes below `/v1` are turned off: `surfaces.v1` is `false`")
        },
        ..row
    }
}

const fn named(row: Row) -> Row {
    Row {
        is_named: true,
        ..row
    }
}

impl Row {
    /// Whether requests with this method are answered.
    pub(crate) fn allows(&self, method: &Method) -> bool {
        // Most routes have one method, and a text is searched slowly.
        self.methods == method.as_str()
            || self
                .methods
                .split(',')
                .any(|name| name.trim_start() == method.as_str())
            || (self.has_preflight && method == Method::OPTIONS)
    }

    /// Whether a listener with these parts has the route.
    fn exists(&self, has_mcp: bool, has_page: impl FnOnce() -> bool) -> bool {
        match self.handler {
            Handler::Mcp(_) => has_mcp,
            Handler::Page(_) => has_page(),
            Handler::Api(_) | Handler::JobSocket => true,
        }
    }
}

/// Returns the message about an unknown route.
pub(crate) fn unknown_message() -> String {
    let (mut api, mut mcp) = (Vec::new(), Vec::new());
    for Row {
        path,
        methods,
        handler,
        ..
    } in TABLE.iter().filter(|row| row.is_named)
    {
        match handler {
            Handler::Api(_) => {
                let method = methods.split(", ").next().unwrap_or_default();
                api.push(format!("`{method} {path}`"));
            }
            Handler::Mcp(_) | Handler::JobSocket | Handler::Page(_) => {
                mcp.push(format!("`{path}`"));
            }
        }
    }
    let last = mcp.pop().unwrap_or_default();
    let (api, mcp) = (api.join(", "), mcp.join(", "));
    format!("the routes are {api} and, unless MCP is turned off, {mcp} and {last}")
}

/// The route of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) row: &'static Row,
    /// Whether the route has the method of the request.
    pub(crate) is_allowed: bool,
}

/// The segment of a row for which a path may have any text.
const PARAMETER: &str = "{id}";

/// Returns the row of a path. Only a path that equals the path of no row is compared by segments.
fn row_of(path: &str) -> Option<&'static Row> {
    let row = TABLE.iter().find(|row| row.path == path);
    row.or_else(|| TABLE.iter().find(|row| has_form(path, row.path)))
}

/// Whether a path has the segments of a row's path with a parameter.
fn has_form(path: &str, form: &str) -> bool {
    form.contains(PARAMETER)
        && path.split('/').count() == form.split('/').count()
        && path
            .split('/')
            .zip(form.split('/'))
            .all(|(segment, of_form)| match of_form {
                PARAMETER => !segment.is_empty(),
                text => segment == text,
            })
}

/// Returns a path without one slash at its end. The root remains.
fn without_slash(path: &str) -> &str {
    match path.strip_suffix('/') {
        None | Some("") => path,
        Some(rest) => rest,
    }
}

/// Returns the route of a request, by its method and its path; `None` if it is unknown. Few paths have a parameter, so that
/// the table is searched: a pass through a router costs a tenth of a call. One slash at the end of the path is ignored:
/// servers of several frameworks redirect from one form to the other, so that clients have both. `base_paths` is called
/// only if the path is not in the table, `has_page` only for a route of the page.
pub(crate) fn find(
    parts: &Parts,
    has_mcp: bool,
    has_page: impl FnOnce() -> bool,
    base_paths: impl FnOnce() -> BasePaths,
) -> Option<Route> {
    let path = without_slash(parts.uri.path());
    let row = row_of(path).or_else(|| below_a_base(path, &base_paths()))?;
    if !row.exists(has_mcp, has_page) {
        return None;
    }
    let is_allowed = row.allows(&parts.method);
    Some(Route { row, is_allowed })
}

/// Returns the row of a path that has the path of a proxy before it. A well-known document has that path behind it
/// (RFC 9728, section 3.1), and then the route of the resource.
fn below_a_base(path: &str, base_paths: &BasePaths) -> Option<&'static Row> {
    let of_broker = |rest: &str| row_of(if rest.is_empty() { ROOT } else { rest });
    if let Some(row) = base_paths.below(path).find_map(of_broker) {
        return Some(row);
    }
    let behind = path.strip_prefix(WELL_KNOWN)?;
    let is_resource = |route: &str| {
        route.is_empty() || row_of(route).is_some_and(|row| matches!(row.handler, Handler::Mcp(_)))
    };
    let mut routes = std::iter::once(behind).chain(base_paths.below(behind));
    routes
        .any(is_resource)
        .then(|| row_of(WELL_KNOWN))
        .flatten()
}

/// Whether a path ends with the path of a route.
pub(crate) fn ends_with_a_route(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut rows = TABLE.iter().filter(|row| row.exists(true, || false));
    rows.any(|row| path.ends_with(row.path))
}

/// Returns every path of a client's route, for suggestions.
pub(crate) fn paths(has_mcp: bool) -> Vec<&'static str> {
    let rows = TABLE.iter().filter(|row| row.exists(has_mcp, || false));
    rows.map(|row| row.path).collect()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
