//! One tool in the lock: its digests, and the form of its raw members.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::LockedTool;
use crate::digest::Digest;
use crate::json::{child_pointer, pointer_matches, remove_pointer};

/// Members with their own digest; `other` covers the rest.
const MEMBERS: [&str; 9] = [
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

/// The pointer of `volatile` that names the instructions of a source.
pub const VOLATILE_INSTRUCTIONS: &str = "/instructions";

/// The digests of a raw tool: `whole`, one for each member with its own digest, and `other`.
pub fn tool_digests(raw: &Map<String, Value>) -> BTreeMap<String, Digest> {
    let mut digests = BTreeMap::from([("whole".to_owned(), Digest::from_tool(raw))]);
    let mut other = Map::new();
    for (name, value) in raw {
        if MEMBERS.contains(&name.as_str()) {
            digests.insert(name.clone(), Digest::from_member(name, value));
        } else {
            other.insert(name.clone(), value.clone());
        }
    }
    if !other.is_empty() {
        let other = Digest::from_member("other", &Value::Object(other));
        digests.insert("other".to_owned(), other);
    }
    digests
}

/// Removes the members that `volatile` names (`/tools/KEY/…`, `*` for any token) from a raw tool, or another thing with
/// this key.
pub fn strip_volatile<'a>(
    key: &str,
    raw: &mut Map<String, Value>,
    volatile: impl IntoIterator<Item = &'a String>,
) {
    let here = child_pointer("/tools", key);
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

impl LockedTool {
    /// Returns the locked form of a tool, without volatile members.
    pub fn new(upstream_name: String, raw: Map<String, Value>, exposed_name: String) -> Self {
        Self {
            upstream_name,
            summary: None,
            exposed_name,
            search_hints: Vec::new(),
            digest: Digest::from_tool(&raw),
            raw,
            unvalidated: false,
        }
    }
}

/// A text as the list of its lines.
#[derive(Clone, Deserialize, Serialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("minItems" = 1))
)]
pub(super) struct Lines(pub(super) String);

impl From<Vec<String>> for Lines {
    fn from(lines: Vec<String>) -> Self {
        Self(lines.join("\n"))
    }
}

impl From<Lines> for Vec<String> {
    fn from(Lines(text): Lines) -> Self {
        text.split('\n').map(str::to_owned).collect()
    }
}

/// A raw tool in the lock: its description is a list of lines.
pub(super) mod raw_tool {
    use super::{Lines, Map, Value};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(in super::super) fn serialize<S: Serializer>(
        raw: &Map<String, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut raw = raw.clone();
        if let Some(description) = raw.get_mut("description")
            && let Some(text) = description.as_str()
        {
            *description = serde_json::json!(Lines(text.to_owned()));
        }
        raw.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Map<String, Value>, D::Error> {
        let mut raw = Map::deserialize(deserializer)?;
        // Null is kept as the server sent it.
        if let Some(description) = raw.get_mut("description").filter(|text| !text.is_null()) {
            let Lines(text) = Lines::deserialize(&*description)
                .map_err(|_| D::Error::custom("the description is not a list of lines"))?;
            *description = text.into();
        }
        Ok(raw)
    }
}
