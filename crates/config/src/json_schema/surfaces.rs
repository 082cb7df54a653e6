//! The sections `mcp` and `surfaces` of a config.

use schemars::JsonSchema;

use super::config::Command;

/// How MCP clients see the tools.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mcp {
    /// The tools that clients see: the meta-tools, by which they find and call the others; every tool under
    /// its flat name; or a tool that searches. Default: `meta`.
    mode: Option<McpMode>,
    /// In the mode `search`: the tool `call_tool` calls what was found, or the list of a session has the tools
    /// that it found. Default: `CALL_TOOL`.
    routing: Option<Routing>,
    /// Whether calls go through three tools, for tools that read, write and destroy. Default: false.
    split_calls: Option<bool>,
    /// A command that runs after the list of tools of a session has changed, with the rules of `command` of a
    /// source.
    list_changed_exec: Option<Command>,
    /// Maximum characters of a flat name. A change needs a new build. Default: 46.
    #[schemars(range(min = 24, max = 128))]
    max_name: Option<u64>,
    /// Seconds after which a session over HTTP without a request ends. Default: 1800.
    #[schemars(range(min = 1, max = 86400))]
    session_idle: Option<f64>,
}

/// The ways in that can be turned on and off.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Surfaces {
    /// Whether simple MCP clients are served at `/v1/mcp` and `/v1/ws/mcp`, with the discovery document. Default: true.
    v1: Option<bool>,
    /// Whether clients of the transport HTTP+SSE of MCP 2024-11-05 are served at `/sse`. Default: false.
    sse: Option<bool>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
enum McpMode {
    Meta,
    Direct,
    Search,
}

#[derive(JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Routing {
    CallTool,
    Dynamic,
}
