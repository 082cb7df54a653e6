//! The part of a config for MCP clients.

use std::sync::Arc;
use std::time::Duration;

use broker_config::{Config, LegacySessions, Mcp, McpMode, Routing, Search};
use broker_model::model_vendor::ModelVendor;
use broker_observe::ListChangedExec;

/// The settings of the endpoint of MCP clients over HTTP.
#[derive(Clone, Debug)]
pub struct McpSettings {
    /// The view of clients at the route `/mcp`. A session keeps the view that it began with.
    pub view: ClientView,
    /// The command that runs after the list of a session has changed.
    pub list_changed_exec: Option<Arc<ListChangedExec>>,
    /// Whether simple clients are served at the routes below `/v1`.
    pub serves_v1: bool,
    /// Whether old clients are served at `/sse`.
    pub serves_sse: bool,
    /// The path before the routes, as callers see it; empty at the root of a host.
    pub base_path: String,
    /// Whether clients of the legacy era get sessions.
    pub legacy_sessions: LegacySessions,
    /// How long a session over HTTP may have neither a request nor a stream.
    pub session_idle: Duration,
    /// The maximum bytes of a message over HTTP.
    pub body_bytes: usize,
    /// The maximum bytes of a message to a client on an event stream or over WebSocket.
    pub event_bytes: usize,
}

/// The selection of tools that an MCP client lists and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientView {
    pub mode: McpMode,
    /// The routing of search mode.
    pub routing: Routing,
    /// The number of hits in search mode, unless a caller names another.
    pub top_k: usize,
    /// Whether calls go through three tools, by what a call may do.
    pub split_calls: bool,
    /// The vendor of models whose limits apply to tool lists.
    pub vendor: Option<ModelVendor>,
}

impl ClientView {
    /// Makes the view of a config.
    pub fn from_config(config: &Config) -> Self {
        Self::from_sections(&config.mcp, &config.search)
    }

    fn from_sections(mcp: &Mcp, search: &Search) -> Self {
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
        Self::from_sections(&Mcp::default(), &Search::default())
    }
}
