//! `mcpServers` in the format of other clients: one node with a source for each entry.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::findings::{Cursor, Findings};
use super::template::unescape;
use super::tree::Paths;
use super::{Node, Source, entry_source, fields, source};
use broker_model::alias::{self, Named, Wanted};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::path::{NodePath, check_segment};
use broker_model::text::shown_line;

/// The key of the entries.
pub(super) const KEY: &str = "mcpServers";

/// Reads the entries. The result is `/` with a node for each entry that is not disabled; the paths of the others are
/// added to `disabled`.
pub(super) fn read(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    types: bool,
    disabled: &mut Vec<NodePath>,
) -> Node {
    let mut root = Node::bare(NodePath::root(), cursor.pointer());
    let mut enabled = Vec::new();
    for member in fields::object(findings, cursor, "an object of servers").unwrap_or_default() {
        let entry = cursor.member(member);
        if is_disabled(findings, &entry) {
            let name = shown_line(&member.key, 80);
            let message = format!("`{name}` is disabled and is left out");
            findings.add_key(&entry, Diagnostic::warning(Code::KeyIgnored, message));
            disabled.extend(paths_of(&[&member.key]));
            continue;
        }
        if let Err(at) = unescape(&member.key) {
            let diagnostic = fields::unexpanded(&member.key[at..], "the name of a server");
            findings.add_key(&entry, diagnostic);
            // Its keys are checked as well.
            let root = NodePath::root();
            read_source(findings, &entry, &root, types);
            continue;
        }
        enabled.push((member, entry));
    }
    let names: BTreeSet<&str> = enabled.iter().map(|(one, _)| one.key.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let by_name: HashMap<&str, NodePath> = names.iter().copied().zip(paths_of(&names)).collect();
    let mut first: HashMap<String, (&str, usize)> = HashMap::new();
    let mut known = HashSet::new();
    let mut paths = Paths::default();
    for (member, entry) in &enabled {
        let Some(path) = by_name.get(member.key.as_str()) else {
            continue;
        };
        // A name that is there twice was already reported.
        if known.insert(&member.key) {
            let short = short_segment(&member.key);
            if let Some((other, at)) = first.get(&short) {
                let diagnostic = name_clash(other, &member.key, &short, path);
                findings.add_also(entry, diagnostic, *at);
            }
            first.entry(short).or_insert((&member.key, member.at));
            paths.add(findings, entry, path);
        }
        let mut node = Node::bare(path.clone(), entry.pointer());
        node.source = read_source(findings, entry, path, types);
        root.children.push(node);
    }
    root
}

/// Reads an entry.
fn read_source(
    findings: &mut Findings<'_>,
    entry: &Cursor<'_>,
    path: &NodePath,
    types: bool,
) -> Option<Source> {
    let value = entry_source::as_source(findings, entry);
    source::read(findings, &entry.with_value(&value), path, types)
}

/// `disabled: true` as in every source, or `enabled: false` in the format of some clients.
fn is_disabled(findings: &mut Findings<'_>, entry: &Cursor<'_>) -> bool {
    let mut said = |key: &str| {
        entry
            .get(key)
            .and_then(|value| fields::boolean(findings, &value))
    };
    let disabled = said("disabled") == Some(true);
    said("enabled") == Some(false) || disabled
}

/// Whether [`read`] leaves out a raw entry.
pub(super) fn is_left_out(entry: &serde_json::Value) -> bool {
    entry["disabled"] == true || entry["enabled"] == false
}

/// The paths of the nodes for the servers of these different names, in their order: `/` and the name with `-` in place
/// of every character but ASCII letters, digits, `_`, `.` and `-`. Names that would then be equal, and a name that is
/// not a segment then, get a segment by the rule of [`alias`].
pub fn paths_of(names: &[&str]) -> Vec<NodePath> {
    let entries: Vec<Named<'_>> = names
        .iter()
        .map(|name| {
            let short = short_segment(name);
            let wanted = match check_segment(&short) {
                Ok(()) => Wanted::Short(short),
                Err(_) => Wanted::Unique,
            };
            let key = name;
            Named { name, key, wanted }
        })
        .collect();
    let segments = alias::segments(&entries).into_iter();
    segments
        .map(|segment| {
            let path = NodePath::root().join(&segment);
            // The rule gives segments only.
            path.unwrap_or_else(|_| NodePath::root())
        })
        .collect()
}

fn short_segment(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let chars = name.chars();
    chars.map(|c| if allowed(c) { c } else { '-' }).collect()
}

/// Returns the warning about two names of servers with the same short segment. `path` is the path of the second one.
fn name_clash(first: &str, second: &str, short: &str, path: &NodePath) -> Diagnostic {
    let message = format!(
        "`{}` and `{}` would both have the path `/{}`; the second one has `{path}`",
        shown_line(first, 80),
        shown_line(second, 80),
        shown_line(short, 80),
    );
    Diagnostic::warning(Code::NameClash, message)
}
