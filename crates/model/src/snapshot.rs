//! A snapshot of a source: the input of the lock and of every drift check.

use serde_json::{Map, Value};

use crate::json::estimate;

/// One complete listing of a source. Tools are raw, in the server's order, all pages joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// `serverInfo` as sent; an empty object if the server sent none.
    pub server_info: Value,
    /// The negotiated protocol revision.
    pub protocol_version: String,
    /// `capabilities` as sent.
    pub capabilities: Value,
    /// `instructions`, if sent.
    pub instructions: Option<String>,
    /// Every tool, whole; then the prompts, templates and resources whose lists were read, by their keys. Names are
    /// non-empty and unique (checked where the snapshot is made).
    pub tools: Vec<ListedTool>,
    /// The resources that the server lists now, if those are served; they are content and not compared.
    pub resources: Vec<ListedTool>,
}

/// A tool as the server listed it: its name and its JSON text. One tool at a time is parsed, when it is
/// needed, since a parsed tool can take a hundred times the memory of its text.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    name: String,
    text: Box<str>,
}

impl ListedTool {
    /// A tool of this name. `text` is one JSON object that the strict reader accepts.
    pub fn new(name: String, text: &str) -> Self {
        Self {
            name,
            text: text.into(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Maximum memory of its parsed members, estimated from the text.
    pub fn parsed_bytes(&self) -> u64 {
        estimate(self.text.as_bytes()).bytes
    }

    /// Its JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses its members; empty if the text does not meet the condition of [`ListedTool::new`].
    pub fn read(&self) -> Map<String, Value> {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for ListedTool {
    fn from(tool: Map<String, Value>) -> Self {
        let name = tool_name(&tool).to_owned();
        Self::new(name, &Value::Object(tool).to_string())
    }
}

/// The name of a raw tool; empty if the server sent none.
pub fn tool_name(tool: &Map<String, Value>) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or("")
}
