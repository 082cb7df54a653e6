//! The subjects of audits: each exposed tool of a lock, and the texts of a source itself.

use broker_model::digest::Digest;
use broker_model::json::to_review_text;
use broker_model::lock::{Lock, LockedSource, LockedTool};
use broker_model::text::shown_line;
use serde_json::{Map, Value};

/// A tool, or a source itself.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub source: &'a LockedSource,
    /// `None` for the source itself.
    pub tool: Option<&'a LockedTool>,
    /// The digest that an audit is bound to.
    pub digest: Digest,
}

/// Every subject of a lock: each exposed tool, and each source with instructions. In the lock's order, a
/// source before its tools.
pub fn subjects(lock: &Lock) -> Vec<Subject<'_>> {
    let mut out = Vec::new();
    for source in &lock.sources {
        // A server without instructions has no text for models.
        out.extend(
            source
                .instructions
                .as_ref()
                .map(|_| Subject::itself(source)),
        );
        let tools = source.exposed.iter();
        out.extend(tools.map(|tool| Subject::tool(source, tool)));
    }
    out
}

impl<'a> Subject<'a> {
    /// The source itself.
    pub fn itself(source: &'a LockedSource) -> Self {
        Self {
            source,
            tool: None,
            digest: source_digest(source),
        }
    }

    /// One of its tools.
    pub fn tool(source: &'a LockedSource, tool: &'a LockedTool) -> Self {
        Self {
            source,
            tool: Some(tool),
            digest: tool.digest.clone(),
        }
    }

    /// The server's name of the tool.
    pub fn tool_name(&self) -> Option<&'a str> {
        self.tool.map(|tool| tool.upstream_name.as_str())
    }

    /// Its name for people: the path of a tool, or the source. Safe to show.
    pub fn shown(&self) -> String {
        let path = &self.source.path;
        let shown = match self.tool {
            None => format!("source {path}"),
            Some(tool) => path.join(&tool.exposed_name).map_or_else(
                |_| format!("{path}/{}", tool.exposed_name),
                |path| path.to_string(),
            ),
        };
        shown_line(&shown, 200)
    }

    /// The text to review: its content in the lock.
    pub fn review_text(&self) -> String {
        to_review_text(&Value::Object(self.reviewed()))
    }

    /// The text by member, with long texts as lists of lines.
    pub fn reviewed(&self) -> Map<String, Value> {
        match self.tool {
            None => words(self.source, lines),
            Some(tool) => {
                let mut raw = tool.raw.clone();
                if let Some(Value::String(text)) = raw.get("description") {
                    let text = lines(text);
                    raw.insert("description".to_owned(), text);
                }
                raw
            }
        }
    }
}

/// Returns the digest that an audit of a source itself is bound to: over its name and its instructions.
pub(super) fn source_digest(source: &LockedSource) -> Digest {
    source.own_digest()
}

/// The texts of a source itself: its name and its instructions.
fn words(source: &LockedSource, text: impl Fn(&str) -> Value) -> Map<String, Value> {
    let name = source.server_info.get("name").cloned();
    let instructions = source.instructions.as_deref().map(text);
    let members = [("name", name), ("instructions", instructions)];
    members
        .into_iter()
        .filter_map(|(member, value)| Some((member.to_owned(), value?)))
        .collect()
}

fn lines(text: &str) -> Value {
    text.split('\n').map(Value::from).collect()
}
