//! The surfaces. A surface authenticates callers, checks requests, and translates core's answers into its protocol; it
//! reaches servers only through `core`. The parts that several surfaces use are next to them: the meta-tools in `meta`,
//! the methods of MCP in `mcp`, whose transport over HTTP the listener of `http` carries.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use broker_config::{Config, Mcp, McpMode, Routing, Search};
use broker_model::address::AddressRange;
use broker_model::model_vendor::ModelVendor;
use tokio_util::sync::CancellationToken;

use crate::list_changed_exec::ListChangedExec;

pub(crate) mod http;
pub(crate) mod mcp;
mod meta;
mod request_id;
mod stream_state;

/// The part of a config for surfaces; a reload may replace it.
#[derive(Debug)]
pub(crate) struct SurfaceSettings {
    /// The allowed `Host` and `Origin` headers; without effect on requests without these headers.
    pub(crate) hosts: http::HostPolicy,
    /// `limits.body_bytes`
    pub(crate) body_bytes: usize,
    pub(crate) mcp: McpSettings,
    pub(crate) callers: CallerSettings,
}

/// The part of a config for recognising callers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSettings {
    /// Keys and issuers of tokens.
    pub(crate) identities: broker_identity::Settings,
    /// Whether the config names keys, a file of keys, or issuers. The file may be empty.
    pub(crate) has_identities: bool,
    /// Whether calls of a caller that loses its rights are cancelled.
    pub(crate) cancels_calls: bool,
    /// The resource that tokens are issued for.
    pub(crate) resource: Option<http::ProtectedResource>,
    /// The proxies whose `Forwarded` and `X-Forwarded-For` are believed.
    pub(crate) trusted_proxies: Vec<AddressRange>,
}

/// The part of a config for MCP clients.
#[derive(Clone, Debug)]
pub(crate) struct McpSettings {
    /// The view of clients at the route `/mcp`. A session keeps the view that it began with.
    pub(crate) view: ClientView,
    /// The command that runs after the list of a session has changed.
    pub(crate) list_changed_exec: Option<Arc<ListChangedExec>>,
    /// Whether simple clients are served at the routes below `/v1`.
    pub(crate) serves_v1: bool,
    /// Whether old clients are served at `/sse`.
    pub(crate) serves_sse: bool,
    /// The path before the routes, as callers see it; empty at the root of a host.
    pub(crate) base_path: String,
    /// How long a session over HTTP may have neither a request nor a stream.
    pub(crate) session_idle: Duration,
    /// The maximum bytes of a message over HTTP.
    pub(crate) body_bytes: usize,
}

/// The selection of tools that an MCP client lists and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientView {
    pub(crate) mode: McpMode,
    /// The routing of search mode.
    pub(crate) routing: Routing,
    /// The number of hits in search mode, unless a caller names another.
    pub(crate) top_k: usize,
    /// Whether calls go through three tools, by what a call may do.
    pub(crate) split_calls: bool,
    /// The vendor of models whose limits apply to tool lists.
    pub(crate) vendor: Option<ModelVendor>,
}

impl ClientView {
    /// The view of a config.
    pub(crate) fn of(config: &Config) -> Self {
        Self::of_sections(&config.mcp, &config.search)
    }

    fn of_sections(mcp: &Mcp, search: &Search) -> Self {
        Self {
            mode: mcp.mode,
            routing: mcp.routing,
            top_k: search.top_k,
            split_calls: mcp.split_calls,
            vendor: None,
        }
    }
}

/// The view of a config without the sections `mcp` and `search`.
impl Default for ClientView {
    fn default() -> Self {
        Self::of_sections(&Mcp::default(), &Search::default())
    }
}

/// A surface. The app starts, reloads and stops it. It belongs to a core, whose drain decides when to refuse calls and
/// when to end.
pub(crate) trait Surface: Send + Sync + 'static {
    /// The name of the surface, for messages.
    const NAME: &'static str;

    /// Whether the surface has one client. That client gets the reason of a refused start until it leaves.
    const EXPLAINS_REFUSAL: bool = false;

    /// The source of connections; `()` if it uses the pipes of the process.
    type Listener: Send;

    /// Applies other settings to later requests.
    fn apply(&self, settings: SurfaceSettings);

    /// Ends the rights of callers that these settings do not have, before the other settings are applied.
    fn end_rights(&self, _callers: &CallerSettings) {}

    /// Serves until the drain is finished, then until the last replies are sent.
    fn serve(
        self: Arc<Self>,
        listener: Self::Listener,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Cancelled once the only client has left. This ends the broker. Never cancelled by a surface with several
    /// clients.
    fn ended(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// Cancelled once the only client has left and all of its requests are answered.
    fn idle(&self) -> CancellationToken {
        CancellationToken::new()
    }
}
