//! Format version 2 of the lock: its members, and the refusal of members that this program does not know.
//!
//! A member of version 2 is left out while it is not used. A lock that uses none of them is written as
//! version 1, with the bytes that version 1 has always had; so far this program writes no other. Both
//! versions are read. A lock of version 2 that uses a member unknown to the reader is refused: what the
//! reader would leave out, a reviewer has seen and a caller would rely on.
//!
//! # Members
//!
//! Everything of version 1 keeps its name and its meaning, and the root digest covers all members but
//! `generator`, as before. Readers accept members in any order. Writers of version 2 put them in the order
//! of the lists below instead of sorting them; objects that came from a server stay sorted.
//!
//! At the top, beside those of version 1:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `tokenizer_version` | integer: the tokenizer that the search index of the build splits words with | an index is compiled in |
//!
//! Of a source, after `path` and before the members of version 1. They repeat in clear what
//! `config_digest` covers, so that a changed lock shows what changed; `config_digest` still decides whether
//! a lock is stale:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `trust` | `trusted`, `verified` or `untrusted` | the config gives the source a level |
//! | `command` | the program and its arguments, one word an element, variables unexpanded | the source is a process |
//! | `url` | the URL, variables unexpanded | the source is an HTTP server |
//! | `header_names` | names of the headers that are sent, sorted; never a value | the same, with `headers` |
//! | `tool_filter` | patterns in the order of the config | the config has a filter |
//! | `path_aliases` | names of the server to names in paths | the config has aliases |
//!
//! The package and its version stand in `package`, as in version 1.
//!
//! A text that may be secret is replaced by the object `{"digest": …}`, with the digest of the text before
//! variables are expanded: a word of `command` that the redactor takes for a secret, the word after an option
//! whose name sounds like one, and an absolute path outside of the config's folder. In a URL the same
//! holds for the user part and for values of the query.
//!
//! Of an item, which is an element of `exposed`:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `exposed_name` | as in version 1 | always |
//! | `summary` | the line that listings show of the item | always |
//! | `kind` | `resource`, `resource_template` or `prompt` | the item is no tool |
//! | `upstream_name` | as in version 1; of a resource its URI, of a template its URI template | always |
//! | `search_hints` | phrases that a search reads beside the item's own texts | there are hints |
//! | `raw` | as in version 1: the item as the server sent it | always |
//! | `digests` | as in version 1, with the members of the item's kind | always |
//!
//! So the block of an item begins with what it is and ends with its digests. An element of `hidden` has
//! `kind`, `name` and `digest`. Names are unique among the items of one kind.

use serde_json::{Map, Value};

use super::file;
use crate::codes::DiagnosticCode;
use crate::diagnostic::Diagnostic;
use crate::json::child_pointer;
use crate::text::shown_line;

/// Members that are reported of one lock.
const MAX_REPORTED: usize = 20;
/// Members of an element of `exposed` that this program knows.
const TOOL_KEYS: [&str; 4] = ["digests", "exposed_name", "raw", "upstream_name"];
/// Members of an element of `hidden` that this program knows.
const HIDDEN_KEYS: [&str; 2] = ["digest", "name"];

/// Refuses a lock of version 2 that has members unknown to this program, and names them.
pub(super) fn refuse_unknown_members(lock: &Map<String, Value>) -> Result<(), Vec<Diagnostic>> {
    let mut unknown = Unknown::default();
    unknown.look("", lock, &file::KEYS);
    for (at, source) in elements(lock, "", "sources") {
        unknown.look(&at, source, &super::source::KEYS);
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
            "the lock uses `{}` of format version 2, which mcp-broker and broker-gen {} are too old to know",
            shown_line(&name, 80),
            env!("CARGO_PKG_VERSION")
        );
        let help = format!(
            "It was written by {writer}: upgrade mcp-broker and broker-gen to that version, or lock anew with this one."
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

/// Pointers and names of unknown members; of each name the first place, since all have one cause.
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
