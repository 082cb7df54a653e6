//! A snapshot of a source: the input of the lock and of every drift check.

use serde_json::{Map, Value, json};

use crate::item::ItemKind;
use crate::json::{self, estimate};
use crate::left_out::LeftOut;

/// One complete listing of a source. Tools are raw, in the server's order, all pages joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// `serverInfo` as sent; an empty object if the server did not send it.
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
    /// What the server listed and could not be used, in its order.
    pub left_out: Vec<LeftOut>,
    /// Warnings about the listing that did not change it, each in one printable line.
    pub warnings: Vec<String>,
}

impl Snapshot {
    /// Returns the listing of a server without tools, items and instructions.
    pub fn empty() -> Self {
        Self {
            server_info: json!({}),
            protocol_version: "2025-11-25".to_owned(),
            capabilities: json!({}),
            instructions: None,
            tools: Vec::new(),
            resources: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A tool as the server listed it: its name and its JSON text. One tool at a time is parsed, when it is
/// needed, since a parsed tool can take a hundred times the memory of its text.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    name: String,
    text: Box<str>,
    /// Whether the text replaces one that cannot be read.
    is_unread: bool,
}

/// The member of a stand-in with the digest of the text as sent.
const UNREAD: &str = "mcp-broker:unread";

impl ListedTool {
    /// A tool of this name. `text` is one JSON object that the strict reader accepts.
    pub fn new(name: String, text: &str) -> Self {
        Self {
            name,
            text: text.into(),
            is_unread: false,
        }
    }

    /// A hidden tool whose text cannot be read: its name and the digest of the text are all that is known of it.
    pub fn unread(kind: ItemKind, key: String, text: &str) -> Self {
        let id = ItemKind::parse_key(&key).1;
        let digest = LeftOut::digest_of(text);
        let text = serde_json::json!({ kind.member(): id, UNREAD: digest.as_str() }).to_string();
        Self {
            name: key,
            text: text.into(),
            is_unread: true,
        }
    }

    /// Whether its text cannot be read, so that it can only be hidden.
    pub const fn is_unread(&self) -> bool {
        self.is_unread
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
        match json::parse(&self.text) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Map::new(),
        }
    }
}

impl From<Map<String, Value>> for ListedTool {
    fn from(tool: Map<String, Value>) -> Self {
        let name = tool_name(&tool).to_owned();
        Self::new(name, &json::to_text(&tool))
    }
}

/// Returns the name of a raw tool; empty if the server did not send a name.
pub fn tool_name(tool: &Map<String, Value>) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or("")
}
