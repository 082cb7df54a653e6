//! Finds removed tools under another name or at another source, by name, members and text, since real
//! renames never keep all bytes. The tools count as gone in any case.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::class::Class;
use super::report::Report;
use super::rules::rule;
use super::tool::{Room, changes};
use super::words::{hash, shared, words};
use broker_model::digest::Digest;
use broker_model::lock::LockedTool;
use broker_model::snapshot::ListedTool;

/// Maximum number of tools on each side that are compared.
const MAX_TOOLS: usize = 300;
/// Bytes of a description whose words are compared.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// Maximum number of compared members of a schema.
const MAX_MEMBERS: usize = 1000;

/// The features of a tool that are compared.
struct Features {
    name: String,
    words: BTreeSet<u64>,
    members: BTreeSet<u64>,
    text: BTreeSet<u64>,
    schemas: [Option<Digest>; 2],
}

/// For each removed tool, the new tool that it probably is.
pub(super) fn successors<'a>(
    left: &[&'a LockedTool],
    listed: &BTreeMap<&'a str, &ListedTool>,
    read: impl Fn(&ListedTool) -> Map<String, Value>,
) -> BTreeMap<&'a str, &'a str> {
    let of = |name: &str, raw: &Map<String, Value>| Features::new(name, raw);
    let old: Vec<_> = left
        .iter()
        .take(MAX_TOOLS)
        .map(|tool| {
            (
                tool.upstream_name.as_str(),
                of(&tool.upstream_name, &tool.raw),
            )
        })
        .collect();
    // Without a removed tool no rename is possible.
    let new: Vec<_> = listed
        .iter()
        .take(if left.is_empty() { 0 } else { MAX_TOOLS })
        .map(|(name, tool)| (*name, of(name, &read(tool))))
        .collect();
    let mut pairs: Vec<(u32, &str, &str)> = Vec::new();
    for (from, before) in &old {
        for (to, after) in &new {
            if let Some(score) = before.likeness(after) {
                pairs.push((score, from, to));
            }
        }
    }
    pairs.sort_by(|a, b| b.cmp(a));
    let mut taken = BTreeSet::new();
    let mut found = BTreeMap::new();
    for (_, from, to) in pairs {
        if !found.contains_key(from) && taken.insert(to) {
            found.insert(from, to);
        }
    }
    found
}

/// The members by which the protocol names an item.
const NAMES: [&str; 3] = ["name", "uri", "uriTemplate"];

/// Classifies the differences of a reviewed tool and its successor, except for the name.
pub(super) fn class_but_for_the_name(tool: &LockedTool, mut live: Map<String, Value>) -> Class {
    for member in NAMES {
        match tool.raw.get(member) {
            Some(name) => live.insert(member.to_owned(), name.clone()),
            None => live.remove(member),
        };
    }
    if Digest::from_tool(&live) == tool.digest {
        return Class::Same;
    }
    let changes = changes(tool, &live, "", &mut Room::new());
    super::report::worst(&changes)
}

/// Names tools that moved from one source to another, over the reports of several sources: the same bytes,
/// or the same name.
pub fn name_moves(report: &mut Report) {
    let digest = |value: &Option<Value>| {
        value
            .as_ref()
            .and_then(|value| value.get("digest"))
            .cloned()
    };
    let added: Vec<_> = report
        .tools
        .iter()
        .filter(|tool| tool.class == Class::Added)
        .map(|tool| {
            let digest = tool.findings.first().and_then(|one| digest(&one.new));
            (
                tool.source.clone(),
                tool.tool.clone(),
                tool.path.clone(),
                digest,
            )
        })
        .collect();
    for tool in report
        .tools
        .iter_mut()
        .filter(|tool| tool.class == Class::Gone)
    {
        // A tool that was renamed has another finding: one of the same source is the better guess.
        let Some(found) = tool.findings.iter_mut().find(|one| one.rule == "tool-gone") else {
            continue;
        };
        let own = digest(&found.old);
        let elsewhere = || added.iter().filter(|(source, ..)| *source != tool.source);
        let same_bytes = elsewhere().find(|(.., digest)| digest.is_some() && *digest == own);
        let same_name = || elsewhere().find(|(_, name, ..)| *name == tool.tool);
        if let Some((source, _, path, _)) = same_bytes.or_else(same_name) {
            found.rule = rule("tool-moved").id;
            found.new = Some(json!({"source": source.as_str(), "path": path}));
            let how = if same_bytes.is_some() {
                "is"
            } else {
                "seems to be"
            };
            found.message = format!("{}; it {how} at `{path}` now", found.message);
        }
    }
}

impl Features {
    fn new(name: &str, raw: &Map<String, Value>) -> Self {
        let schema = |member: &str| {
            raw.get(member)
                .map(|schema| Digest::from_member(member, schema))
        };
        let properties = raw
            .get("inputSchema")
            .and_then(|schema| schema.get("properties"));
        let members = properties
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys);
        let text = raw
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Self {
            name: name
                .chars()
                .filter(|c| c.is_alphanumeric())
                .flat_map(char::to_lowercase)
                .collect(),
            words: words(name),
            members: members.take(MAX_MEMBERS).map(|name| hash(name)).collect(),
            text: words(&text[..text.floor_char_boundary(MAX_TEXT_BYTES)]),
            schemas: [schema("inputSchema"), schema("outputSchema")],
        }
    }

    /// The similarity of two tools in percent; `None` if they are not similar.
    fn likeness(&self, other: &Self) -> Option<u32> {
        let name = if self.name == other.name {
            100
        } else {
            shared(&self.words, &other.words)
        };
        let members = shared(&self.members, &other.members);
        let text = shared(&self.text, &other.text);
        let same_schemas = self.schemas == other.schemas && !self.members.is_empty();
        let alike = name == 100
            || (same_schemas && (name >= 25 || text >= 25))
            || (members >= 80 && (text >= 40 || name >= 40))
            || (members == 100 && self.members.len() > 1 && text >= 25)
            || (name >= 25 && text >= 70)
            || (name >= 50 && text >= 50);
        alike.then_some(name * 2 + members + text + u32::from(same_schemas) * 100)
    }
}
