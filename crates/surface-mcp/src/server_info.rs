//! The name of the broker for MCP clients.

use serde_json::{Value, json};

/// The `serverInfo` of the broker.
pub(super) fn server_info() -> Value {
    json!({
        "name": "mcp-broker",
        "title": "MCP broker",
        "version": env!("CARGO_PKG_VERSION"),
    })
}
