//! The kinds of things that a server offers besides tools, and their keys in lock and catalog.

use serde_json::{Map, Value, json};

use crate::alias::{self, Named, Wanted};
use crate::path::check_segment;

/// Maximum length of the leaf that is made of a name, in characters.
const MAX_LEAF_CHARS: usize = 64;

/// The identifier of the entry for the resources that a source lists while it runs; no URI is like it.
pub const LIVE: &str = "*";

/// The raw form of the entry for the resources that a source lists while it runs.
const LIVE_RESOURCES: &str = r#"{"name":"resources","uri":"*","description":"Reads a resource that the server lists now, or one of a template. Its `meta_desc` lists the URIs. Names and descriptions of resources are the text of the server and not reviewed.","inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"The URI to read"}},"required":["uri"],"additionalProperties":false}}"#;

/// The key and the text of the entry for the resources that a source lists while it runs.
pub fn live_resources() -> (String, &'static str) {
    (ItemKind::Resource.key(LIVE), LIVE_RESOURCES)
}

/// Whether a key belongs to the entry for the resources that a source lists while it runs.
pub fn is_live(key: &str) -> bool {
    ItemKind::parse_key(key) == (ItemKind::Resource, LIVE)
}

/// A kind of thing that a server lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A function that is called.
    Tool,
    /// A text with arguments for a model.
    Prompt,
    /// A pattern of URIs that are read (RFC 6570).
    Template,
    /// A URI that is read.
    Resource,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Template, Self::Resource];
    /// All kinds except tools: their keys have a prefix.
    pub const PREFIXED: [Self; 3] = [Self::Prompt, Self::Template, Self::Resource];

    /// The name in replies and configs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Template => "template",
            Self::Resource => "resource",
        }
    }

    /// The member of a listed object that identifies it.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Template => "uriTemplate",
            Self::Resource => "uri",
        }
    }

    /// Returns the key of the thing with this identifier: for a tool its name, else the kind, a colon and the
    /// identifier.
    pub fn key(self, id: &str) -> String {
        match self {
            Self::Tool => id.to_owned(),
            Self::Prompt | Self::Template | Self::Resource => format!("{}:{id}", self.as_str()),
        }
    }

    /// The kind and the identifier of a key.
    pub fn parse_key(key: &str) -> (Self, &str) {
        let prefixed = Self::PREFIXED.iter().find_map(|kind| {
            let id = key.strip_prefix(kind.as_str())?.strip_prefix(':')?;
            Some((*kind, id))
        });
        prefixed.unwrap_or((Self::Tool, key))
    }
}

/// Whether the name of a tool looks like the key of another kind.
pub fn is_ambiguous(tool: &str) -> bool {
    ItemKind::parse_key(tool).0 != ItemKind::Tool
}

/// Returns the identifier of a listed object; empty without one.
pub fn id_of(kind: ItemKind, raw: &Map<String, Value>) -> &str {
    raw.get(kind.member()).and_then(Value::as_str).unwrap_or("")
}

/// The leaf without an alias of a prompt, template or resource with this name: the name if it is a segment, else the
/// name with `_` in place of every character but ASCII letters, digits, `_`, `.` and `-`.
pub fn leaf(name: &str) -> Wanted {
    if check_segment(name).is_ok() && name.chars().count() <= MAX_LEAF_CHARS {
        return Wanted::Short(name.to_owned());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let leaf: String = name
        .chars()
        .take(MAX_LEAF_CHARS)
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    match leaf.as_str() {
        "." | ".." => Wanted::Short("_".to_owned()),
        "" => Wanted::Unique,
        _ => Wanted::Short(leaf),
    }
}

/// The leaf that a tool or another thing of this key gets if no alias and no other entry has it.
pub fn derived_leaf(key: &str, raw: &Map<String, Value>) -> String {
    let (name, wanted) = match ItemKind::parse_key(key) {
        (ItemKind::Tool, name) => (name, Wanted::Unique),
        (ItemKind::Prompt | ItemKind::Template | ItemKind::Resource, _) => {
            let name = raw.get("name").and_then(Value::as_str).unwrap_or_default();
            (name, leaf(name))
        }
    };
    let named = Named { name, key, wanted };
    alias::segments(&[named]).pop().unwrap_or_default()
}

/// Returns the schema of the arguments of a prompt, from its `arguments`: all are strings, and some are required.
pub fn prompt_schema(raw: &Map<String, Value>) -> Value {
    let arguments = raw.get("arguments").and_then(Value::as_array);
    let arguments = arguments.map(Vec::as_slice).unwrap_or_default();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments {
        let Some(name) = argument.get("name").and_then(Value::as_str) else {
            continue;
        };
        let mut schema = json!({ "type": "string" });
        for member in ["title", "description"] {
            if let Some(text) = argument.get(member).filter(|text| text.is_string()) {
                schema[member] = text.clone();
            }
        }
        properties.insert(name.to_owned(), schema);
        if argument.get("required") == Some(&Value::Bool(true)) {
            required.push(json!(name));
        }
    }
    object_schema(properties, required)
}

/// The schema of an object with these members and no other ones.
pub fn object_schema(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}

/// Returns the path of the entry with this key without the digits of its derived alias; see
/// [`alias::readable_path`].
pub fn readable_path(path: &str, key: &str) -> Option<String> {
    alias::readable_path(path, ItemKind::parse_key(key).1, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_the_kind_of_everything_but_a_tool() {
        for (kind, id, key) in [
            (ItemKind::Tool, "a.b", "a.b"),
            (ItemKind::Prompt, "review", "prompt:review"),
            (ItemKind::Template, "x://{id}", "template:x://{id}"),
            (ItemKind::Resource, "x://a", "resource:x://a"),
        ] {
            assert_eq!(kind.key(id), key);
            assert_eq!(ItemKind::parse_key(key), (kind, id));
        }
        let prefixed: Vec<_> = ItemKind::ALL
            .into_iter()
            .filter(|kind| *kind != ItemKind::Tool)
            .collect();
        assert_eq!(prefixed, ItemKind::PREFIXED);
        assert!(is_ambiguous("prompt:x") && !is_ambiguous("prompts:x"));
    }

    #[test]
    fn leaf_is_a_path_segment() {
        let long = "x".repeat(200);
        for (name, expected) in [
            ("Watch me", "Watch_me"),
            ("a/b.c", "a_b.c"),
            ("..", "_"),
            ("查询", "查询"),
            ("é!", "__"),
            (&long, &long[..MAX_LEAF_CHARS]),
        ] {
            assert_eq!(leaf(name), Wanted::Short(expected.to_owned()), "{name}");
        }
        assert_eq!(leaf(""), Wanted::Unique);
    }

    #[test]
    fn schema_of_a_prompt_has_its_arguments() {
        let raw = json!({"name": "p", "arguments": [
            {"name": "a", "description": "d", "required": true}, {"name": "b"}, {"title": "no name"},
        ]});
        let expected = json!({
            "type": "object",
            "properties": {"a": {"type": "string", "description": "d"}, "b": {"type": "string"}},
            "additionalProperties": false,
            "required": ["a"],
        });
        assert_eq!(prompt_schema(raw.as_object().expect("an object")), expected);
    }
}
