//! Format version 2 of the lock: its members, and the refusal of unknown members.
//!
//! `broker-gen lock` writes version 2. It leaves a lock of version 1 as it is while all members of version 1 are
//! unchanged. Both versions are read. A lock of version 2 with a member that the reader does not know is refused: the
//! reviewer approved that member, and a reader without it would serve something else. A lock of version 1 with a member
//! of version 2 is damaged.
//!
//! # Members
//!
//! All members of version 1 keep name and meaning, and the root digest covers all members except
//! `generator`, as before. Readers accept members in any order. Writers of version 2 use the order of
//! the lists below instead of sorting; objects from a server stay sorted.
//!
//! The members marked with † are reserved: they are not written yet, and the reader refuses them.
//!
//! Top level, in addition to version 1:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `tokenizer_version` † | integer: the tokenizer of the build's search index | an index is compiled in |
//!
//! A source, after `path` and before the members of version 1. These members repeat in plain text fields
//! that `config_digest` covers, so that a diff of the lock shows the change; `config_digest` still decides
//! whether a lock is stale:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `trust` | `trusted`, `verified` or `untrusted` | it is not the default level of the transport |
//! | `command` | the program and its arguments, one word per element, variables unexpanded; `{"shell": [word, …]}` if a shell runs it, with operators and line ends as words | the source is a process |
//! | `url` | the URL, variables unexpanded, without values of its query that have a secret-looking name | the source is an HTTP server |
//! | `header_names` | names of the configured headers in lower case, sorted; never a value | the source is an HTTP server with `headers` |
//! | `tool_filter` | patterns, sorted: their order has no meaning | the config has a filter |
//! | `path_aliases` | the server's names, each with its name in paths | the config has aliases |
//!
//! The package and its version are in `package`, as in version 1.
//!
//! A text that may be secret is replaced by the object `{"digest": …}`, the digest of the text before variables are
//! expanded, in the domain `mcp-broker:config_text:1`. This covers a word of `command` with a literal secret
//! (`--token=x`, `API_KEY=x`, `Authorization: x`, a literal value of the config's `env`), the word after an option with
//! a secret-looking name, and an absolute path; in a URL of a command, the user part and values of the query with a
//! secret-looking name. The member `url` omits such values, so that another value leaves the lock as it is. If only a
//! part of a word is replaced, the word is the list of its parts: `["https://", {"digest": …}, "@host/x"]`. A `${NAME}`
//! is not a secret and stays as written; a literal default of one may be a secret. Only the text of the config decides,
//! so that the bytes do not depend on the machine.
//!
//! An item, an element of `exposed`:
//!
//! | member | value | used when |
//! |---|---|---|
//! | `exposed_name` | as in version 1 | always |
//! | `summary` | the item's line in listings when it was locked | always |
//! | `kind` † | `resource`, `resource_template` or `prompt` | the item is not a tool |
//! | `upstream_name` | as in version 1; for a resource its URI, for a template its URI template | always |
//! | `search_hints` | phrases of the config by which a search finds the item besides its texts | there are hints |
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
/// The members of an object of the lock.
struct Keys {
    version_1: &'static [&'static str],
    /// In addition in version 2.
    version_2: &'static [&'static str],
    /// In addition in version 3.
    version_3: &'static [&'static str],
}

const LOCK: Keys = Keys {
    version_1: &[
        "config_digest",
        "generator",
        "hash_model",
        "lock_version",
        "root_digest",
        "sources",
    ],
    version_2: &[],
    version_3: &["access_digest", "left_out"],
};
/// An element of `sources`.
const SOURCE: Keys = Keys {
    version_1: &[
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
    ],
    version_2: &[
        "command",
        "header_names",
        "path_aliases",
        "tool_filter",
        "trust",
        "url",
    ],
    version_3: &[
        "kept",
        "left_out",
        "more_left_out",
        "sensitive_words",
        "url_path",
    ],
};
/// An element of `exposed`.
const TOOL: Keys = Keys {
    version_1: &["digests", "exposed_name", "raw", "upstream_name"],
    version_2: &["search_hints", "summary"],
    version_3: &["unvalidated"],
};
/// An element of `hidden`.
const HIDDEN: Keys = Keys {
    version_1: &["digest", "name"],
    version_2: &[],
    version_3: &[],
};

/// Refuses a lock with members that this version of the format does not have, and names them. Other unknown
/// members of version 1 are left to the reader of single members.
pub(super) fn refuse_unknown_members(
    lock: &Map<String, Value>,
    version: u64,
) -> Result<(), Vec<Diagnostic>> {
    let mut unknown = Unknown {
        version,
        found: Vec::new(),
    };
    unknown.look("", lock, &LOCK);
    for (at, source) in elements(lock, "", "sources") {
        unknown.look(&at, source, &SOURCE);
        for (at, tool) in elements(source, &at, "exposed") {
            unknown.look(&at, tool, &TOOL);
        }
        for (at, tool) in elements(source, &at, "hidden") {
            unknown.look(&at, tool, &HIDDEN);
        }
    }
    if unknown.found.is_empty() {
        return Ok(());
    }
    let writer = lock.get("generator").and_then(Value::as_str);
    let writer = shown_line(writer.unwrap_or("an unnamed program"), 40);
    let refused = |(pointer, name): (String, String)| {
        let name = shown_line(&name, 80);
        if version == 1 {
            let message = format!(
                "unknown field `{name}`: a later version of the format has it, and the lock has version 1"
            );
            return Diagnostic::error(DiagnosticCode::LockCorrupt, message).at(pointer);
        }
        let message = format!(
            "the lock uses `{name}` of format version {version}, which mcp-broker and broker-gen {} do not support",
            env!("CARGO_PKG_VERSION")
        );
        let help = format!(
            "It was written by {writer}: upgrade mcp-broker and broker-gen to that version, or make a new lock with this one."
        );
        Diagnostic::error(DiagnosticCode::LockVersion, message)
            .help(help)
            .at(pointer)
    };
    Err(unknown.found.into_iter().map(refused).collect())
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
struct Unknown {
    version: u64,
    found: Vec<(String, String)>,
}

impl Unknown {
    fn look(&mut self, pointer: &str, members: &Map<String, Value>, known: &Keys) {
        for name in members.keys() {
            let has = |list: &[&str]| list.contains(&name.as_str());
            let (of_2, of_3) = (has(known.version_2), has(known.version_3));
            let is_unknown = match self.version {
                1 => of_2 || of_3,
                2 => !of_2 && !has(known.version_1),
                _ => !of_3 && !of_2 && !has(known.version_1),
            };
            let is_new = is_unknown && !self.found.iter().any(|(_, reported)| reported == name);
            if is_new && self.found.len() < MAX_REPORTED {
                self.found
                    .push((child_pointer(pointer, name), name.clone()));
            }
        }
    }
}
