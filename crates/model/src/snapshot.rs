//! What a source said of itself once: the input of the lock and of every drift check.

use serde_json::{Map, Value};

/// One complete answer of a source. Tools are raw, in the order the server gave, all pages joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// `serverInfo` as sent; an empty object where the server sent none.
    pub server_info: Value,
    /// The revision that was agreed on.
    pub protocol_version: String,
    /// `capabilities` as sent.
    pub capabilities: Value,
    /// `instructions`, where sent.
    pub instructions: Option<String>,
    /// Every tool, whole. Names are non-empty and unique (checked by whoever made the snapshot).
    pub tools: Vec<Map<String, Value>>,
}

/// The name of a raw tool; empty where the server sent none.
pub fn tool_name(tool: &Map<String, Value>) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or("")
}
