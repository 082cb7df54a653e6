//! One tool in the lock: `{"digests", "exposed_name", "raw", "upstream_name"}`.

use serde_json::{Map, Value, json};

use super::LockedTool;
use crate::digest::Digest;
use crate::json::{child_pointer, pointer_matches, remove_pointer};

/// Members with their own digest; `other` covers the rest.
pub const MEMBERS: [&str; 9] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "icons",
    "_meta",
    "execution",
];

/// The digests of a tool: `whole`, one for each such member, and `other`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDigests(pub Vec<(&'static str, Digest)>);

impl ToolDigests {
    /// The digests of a raw tool.
    pub fn of(raw: &Map<String, Value>) -> Self {
        let mut digests = vec![("whole", Digest::of_tool(raw))];
        for member in MEMBERS {
            if let Some(value) = raw.get(member) {
                digests.push((member, Digest::of_member(member, value)));
            }
        }
        let other: Map<_, _> = raw
            .iter()
            .filter(|(key, _)| !MEMBERS.contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if !other.is_empty() {
            digests.push(("other", Digest::of_member("other", &Value::Object(other))));
        }
        Self(digests)
    }

    fn to_json(&self) -> Value {
        self.0
            .iter()
            .map(|(name, digest)| ((*name).to_owned(), Value::from(digest.as_str())))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// Removes the members that `volatile` names (`/tools/NAME/…`, `*` for any token) from a raw tool.
pub fn strip_volatile<'a>(
    raw: &mut Map<String, Value>,
    volatile: impl IntoIterator<Item = &'a String>,
) {
    let name = crate::snapshot::tool_name(raw).to_owned();
    let here = child_pointer("/tools", &name);
    for pattern in volatile {
        // The first two tokens name the tool; the rest is a pattern within it.
        let Some(at) = pattern.match_indices('/').nth(2).map(|(at, _)| at) else {
            continue;
        };
        if pointer_matches(&pattern[..at], &here) {
            let mut value = Value::Object(std::mem::take(raw));
            remove_pointer(&mut value, &pattern[at..]);
            if let Value::Object(members) = value {
                *raw = members;
            }
        }
    }
}

/// The handling of a tool's digests while reading.
#[derive(Clone, Copy)]
pub(super) enum Digests {
    /// They are computed again; a difference is an error.
    Verify,
    /// They are accepted as written.
    Trust,
}

impl LockedTool {
    pub(super) fn new(raw: Map<String, Value>, exposed_name: String) -> Self {
        Self {
            upstream_name: crate::snapshot::tool_name(&raw).to_owned(),
            exposed_name,
            digest: Digest::of_tool(&raw),
            raw,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut raw = self.raw.clone();
        if let Some(Value::String(text)) = raw.get("description") {
            let lines = to_lines(text);
            raw.insert("description".to_owned(), lines);
        }
        json!({
            "digests": ToolDigests::of(&self.raw).to_json(),
            "exposed_name": self.exposed_name,
            "raw": raw,
            "upstream_name": self.upstream_name,
        })
    }

    /// Reads one tool. The error is a pointer below the tool and a message.
    pub(super) fn from_json(value: &Value, digests: Digests) -> Result<Self, (String, String)> {
        let wrong = |pointer: &str, message: &str| (pointer.to_owned(), message.to_owned());
        let Some(mut raw) = value.get("raw").and_then(Value::as_object).cloned() else {
            return Err(wrong("/raw", "a tool is missing"));
        };
        if let Some(lines) = raw.get("description") {
            let text = from_lines(lines).ok_or_else(|| {
                wrong("/raw/description", "the description is not a list of lines")
            })?;
            raw.insert("description".to_owned(), text.into());
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let exposed_name =
            text("exposed_name").ok_or_else(|| wrong("/exposed_name", "the name is missing"))?;
        let trusted = match digests {
            Digests::Verify => None,
            Digests::Trust => value.pointer("/digests/whole").and_then(Value::as_str),
        };
        let trusted = trusted.and_then(Digest::from_written);
        let verified = trusted.is_some();
        let tool = Self {
            upstream_name: crate::snapshot::tool_name(&raw).to_owned(),
            exposed_name,
            digest: trusted.unwrap_or_else(|| Digest::of_tool(&raw)),
            raw,
        };
        if text("upstream_name").as_deref() != Some(&tool.upstream_name) {
            return Err(wrong("/upstream_name", "the name differs from the tool's"));
        }
        if verified {
            return Ok(tool);
        }
        let expected = ToolDigests::of(&tool.raw).to_json();
        if value.get("digests") != Some(&expected) {
            let member = expected
                .as_object()
                .and_then(|digests| {
                    digests.iter().find(|(name, digest)| {
                        value.pointer(&format!("/digests/{name}")) != Some(digest)
                    })
                })
                .map_or("whole", |(name, _)| name.as_str());
            return Err((
                format!("/digests/{member}"),
                format!(
                    "the digest of `{}` does not match the tool",
                    tool.upstream_name
                ),
            ));
        }
        Ok(tool)
    }
}

/// A text as the list of its lines; joining them with newlines restores it.
pub(super) fn to_lines(text: &str) -> Value {
    text.split('\n').map(Value::from).collect()
}

pub(super) fn from_lines(lines: &Value) -> Option<String> {
    let lines: Option<Vec<&str>> = lines.as_array()?.iter().map(Value::as_str).collect();
    lines
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join("\n"))
}
