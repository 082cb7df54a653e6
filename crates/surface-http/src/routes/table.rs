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
}

impl Handler {
    /// Returns the name of the surface in records of calls.
    #[inline]
    pub(crate) const fn via(self) -> Via {
        match self {
            Self::Api(_) => Via::Http,
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
];

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

    /// Whether a listener with or without MCP has the route.
    const fn exists(&self, has_mcp: bool) -> bool {
        has_mcp || !matches!(self.handler, Handler::Mcp(_))
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
            Handler::Mcp(_) | Handler::JobSocket => mcp.push(format!("`{path}`")),
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

/// Returns the route of a request, by its method and its path; `None` if it is unknown. Few paths have a parameter, so that
/// the table is searched: a pass through a router costs a tenth of a call. One slash at the end of the path is ignored:
/// servers of several frameworks redirect from one form to the other, so that clients have both. `base_paths` is called
/// only if the path is not in the table.
pub(crate) fn find(
    parts: &Parts,
    has_mcp: bool,
    base_paths: impl FnOnce() -> BasePaths,
) -> Option<Route> {
    let path = parts.uri.path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let row = row_of(path).or_else(|| below_a_base(path, &base_paths()))?;
    if !row.exists(has_mcp) {
        return None;
    }
    let is_allowed = row.allows(&parts.method);
    Some(Route { row, is_allowed })
}

/// Returns the row of a path that has the path of a proxy before it. A well-known document has that path behind it
/// (RFC 9728, section 3.1), and then the route of the resource.
fn below_a_base(path: &str, base_paths: &BasePaths) -> Option<&'static Row> {
    if let Some(row) = base_paths.below(path).find_map(row_of) {
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
    TABLE.iter().any(|row| path.ends_with(row.path))
}

/// Returns every path, for suggestions.
pub(crate) fn paths(has_mcp: bool) -> Vec<&'static str> {
    let rows = TABLE.iter().filter(|row| row.exists(has_mcp));
    rows.map(|row| row.path).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn find(method: &str, path: &str, has_mcp: bool) -> Option<(&'static str, bool)> {
        let request = Request::builder().method(method).uri(path);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let no_base = BasePaths::default;
        super::find(&parts, has_mcp, no_base).map(|route| (route.row.path, route.is_allowed))
    }

    #[test]
    fn route_is_found_below_each_base_path_and_without_one() {
        let base_paths = || BasePaths::new(["/gateway", "/a/b"].map(str::to_owned));
        let find = |path: &str| {
            let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
            super::find(&parts, true, base_paths).map(|route| route.row.path)
        };
        for row in TABLE {
            for base in ["", "/gateway", "/a/b"] {
                let path = format!("{base}{}", row.path);
                assert_eq!(find(&path), Some(row.path), "{path}");
                assert_eq!(find(&format!("{path}/")), Some(row.path), "{path}/");
            }
        }
        for route in [
            "",
            "/mcp",
            "/mcp/direct/openai",
            "/v1/mcp",
            "/ws/mcp",
            "/sse",
        ] {
            for base in ["", "/gateway", "/a/b"] {
                let path = format!("{WELL_KNOWN}{base}{route}");
                assert!(
                    find(&path).is_some_and(|row| row.starts_with(WELL_KNOWN)),
                    "{path}"
                );
            }
        }
        for unknown in [
            "/gateway",
            "/gatewayx/mcp",
            "/gateway/gateway/mcp",
            "/a/mcp",
            "/gateway//mcp",
            "/Gateway/mcp",
            "/.well-known/oauth-protected-resource/gatewayx/mcp",
            "/.well-known/oauth-protected-resource/gateway/healthz",
            "/.well-known/oauth-protected-resourcex",
        ] {
            assert_eq!(find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn route_is_found_by_exact_path_and_method() {
        for row in TABLE {
            let allowed: Vec<&str> = row.methods.split(", ").collect();
            for method in ["POST", "GET", "HEAD", "DELETE", "PUT", "CONNECT", "BREW"] {
                let expected = Some((row.path, allowed.contains(&method)));
                let with_slash = format!("{}/", row.path);
                assert_eq!(find(method, row.path, true), expected, "{method}");
                assert_eq!(find(method, &with_slash, true), expected, "{method}");
                let is_api = !matches!(row.handler, Handler::Mcp(_));
                assert_eq!(
                    find(method, row.path, false).is_some(),
                    is_api,
                    "{}",
                    row.path
                );
            }
        }
        assert_eq!(
            find("POST", "/meta_tree?x=1", true),
            Some(("/meta_tree", true))
        );
        for unknown in [
            "/",
            "/meta_tree//",
            "/META_TREE",
            "//meta_tree",
            "/meta%5ftree",
            "*",
        ] {
            assert_eq!(find("POST", unknown, true), None, "{unknown}");
        }
    }

    #[test]
    fn message_about_an_unknown_route_names_routes_of_the_table() {
        assert_eq!(
            unknown_message(),
            "the routes are `POST /meta_tree`, `POST /meta_desc`, `POST /meta_call`, `GET /healthz`, `GET /readyz`, `GET /sources`, `GET /metrics`, `GET /logs`, `GET /jobs` and, unless MCP is turned off, `/mcp`, `/v1/mcp`, `/ws/mcp` and `/v1/ws/mcp`"
        );
    }
}
