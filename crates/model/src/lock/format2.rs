//! Format version 2 of the lock: its members, and the refusal of unknown members.
//!
//! A member of version 2 is written only if it is used. A lock that uses none of them is written as
//! version 1, byte for byte as before; this program writes only version 1. Both versions are read. A lock
//! of version 2 with a member that the reader does not know is refused: the reviewer approved that member,
//! and a reader without it would serve something else.
//!
//! # Members
//!
//! All members of version 1 keep name and meaning, and the root digest covers all members except
//! `generator`, as before. Readers accept members in any order. Writers of version 2 use the order of
//! the lists below instead of sorting; objects from a server stay sorted.
//!
//! Top level, in addition to version 1:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `tokenizer_version` | integer: the tokenizer of the build's search index | an index is compiled in |
//!
//! A source, after `path` and before the members of version 1. These members repeat in plain text fields
//! that `config_digest` covers, so that a diff of the lock shows the change; `config_digest` still decides
//! whether a lock is stale:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `trust` | `trusted`, `verified` or `untrusted` | the config gives the source a level |
//! | `command` | the program and its arguments, one word per element, variables unexpanded | the source is a process |
//! | `url` | the URL, variables unexpanded | the source is an HTTP server |
//! | `header_names` | names of the configured headers, sorted; never a value | the source is an HTTP server with `headers` |
//! | `tool_filter` | patterns in the order of the config | the config has a filter |
//! | `path_aliases` | the server's names, each with its name in paths | the config has aliases |
//!
//! The package and its version are in `package`, as in version 1.
//!
//! A text that may be secret is replaced by the object `{"digest": …}`, the digest of the text before
//! variables are expanded. This covers a word of `command` that the redactor recognises as a secret, the
//! word after an option with a secret-looking name, and an absolute path outside the config's folder; in a
//! URL, the user part and values of the query.
//!
//! An item, which is an element of `exposed`:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `exposed_name` | as in version 1 | always |
//! | `summary` | the item's line in listings | always |
//! | `kind` | `resource`, `resource_template` or `prompt` | the item is not a tool |
//! | `upstream_name` | as in version 1; for a resource its URI, for a template its URI template | always |
//! | `search_hints` | phrases for the search besides the item's texts | there are hints |
//! | `raw` | as in version 1: the item as the server sent it | always |
//! | `digests` | as in version 1, with the members of the item's kind | always |
//!
//! An item begins with its name and ends with its digests. An element of `hidden` has `kind`, `name` and
//! `digest`. Names are unique among the items of one kind.

use serde_json::{Map, Value};

use crate::codes::DiagnosticCode;
use crate::diagnostic::Diagnostic;
use crate::json::child_pointer;
use crate::text::shown_line;

/// Maximum number of unknown members that a message names.
const MAX_REPORTED: usize = 20;
/// Known members of the top level.
const LOCK_KEYS: [&str; 6] = [
    "config_digest",
    "generator",
    "hash_model",
    "lock_version",
    "root_digest",
    "sources",
];
/// Known members of an element of `sources`.
const SOURCE_KEYS: [&str; 11] = [
    "backend",
    "capabilities",
    "config_digest",
    "exposed",
    "hidden",
    "instructions",
    "package",
    "path",
    "protocol_version",
    "server_info",
    "volatile",
];
/// Known members of an element of `exposed`.
const TOOL_KEYS: [&str; 4] = ["digests", "exposed_name", "raw", "upstream_name"];
/// Known members of an element of `hidden`.
const HIDDEN_KEYS: [&str; 2] = ["digest", "name"];

/// Refuses a lock of version 2 with unknown members, and names them.
pub(super) fn refuse_unknown_members(lock: &Map<String, Value>) -> Result<(), Vec<Diagnostic>> {
    let mut unknown = Unknown::default();
    unknown.look("", lock, &LOCK_KEYS);
    for (at, source) in elements(lock, "", "sources") {
        unknown.look(&at, source, &SOURCE_KEYS);
        for (at, tool) in elements(source, &at, "exposed") {
            unknown.look(&at, tool, &TOOL_KEYS);
        }
        for (at, tool) in elements(source, &at, "hidden") {
            unknown.look(&at, tool, &HIDDEN_KEYS);
        }
    }
    if unknown.0.is_empty() {
        return Ok(());
    }
    let writer = lock.get("generator").and_then(Value::as_str);
    let writer = shown_line(writer.unwrap_or("an unnamed program"), 40);
    let refused = |(pointer, name): (String, String)| {
        let message = format!(
            "the lock uses `{}` of format version 2, which mcp-broker and broker-gen {} do not support",
            shown_line(&name, 80),
            env!("CARGO_PKG_VERSION")
        );
        let help = format!(
            "It was written by {writer}: upgrade mcp-broker and broker-gen to that version, or make a new lock with this one."
        );
        Diagnostic::error(DiagnosticCode::LockVersion, message)
            .help(help)
            .at(pointer)
    };
    Err(unknown.0.into_iter().map(refused).collect())
}

/// The objects in the array `name`, each with its pointer.
fn elements<'a>(
    parent: &'a Map<String, Value>,
    pointer: &str,
    name: &str,
) -> impl Iterator<Item = (String, &'a Map<String, Value>)> {
    let list = parent.get(name).and_then(Value::as_array);
    let pointer = child_pointer(pointer, name);
    let elements = list.into_iter().flatten().enumerate();
    elements.filter_map(move |(index, element)| {
        Some((format!("{pointer}/{index}"), element.as_object()?))
    })
}

/// Pointers and names of unknown members; for each name only the first place.
#[derive(Default)]
struct Unknown(Vec<(String, String)>);

impl Unknown {
    fn look(&mut self, pointer: &str, members: &Map<String, Value>, known: &[&str]) {
        for name in members.keys() {
            let is_new = !known.contains(&name.as_str())
                && !self.0.iter().any(|(_, reported)| reported == name);
            if is_new && self.0.len() < MAX_REPORTED {
                self.0.push((child_pointer(pointer, name), name.clone()));
            }
        }
    }
}
