//! Servers that a stranger describes: the entry of a registry, the manifest of a bundle.

use serde_json::Value;

/// Servers in the form of a client's file.
#[derive(Debug)]
pub(super) struct Foreign {
    /// An object with `mcpServers`.
    pub(super) servers: Value,
    /// Lines about the parts that were not taken.
    pub(super) notes: Vec<String>,
}

/// The text of the first of these members that is a text.
pub(super) fn text<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| value.get(*key)?.as_str())
}

/// A text that names no variable of this machine: a server would get the value of a variable that a stranger chose.
pub(super) fn literal(text: &str) -> Result<Value, String> {
    match text.contains("${") || text.contains('\0') {
        true => Err("a text has `${`, which would be a variable of this machine".to_owned()),
        false => Ok(text.into()),
    }
}
