//! `mcpServers` in the format of other clients: one node with a source for each entry.

use std::collections::HashMap;

use super::findings::{Cursor, Findings};
use super::template::unescape;
use super::tree::Paths;
use super::{Node, fields, source};
use crate::codes::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::path::NodePath;
use crate::text::shown_line;

/// The key of the entries.
pub(super) const KEY: &str = "mcpServers";

/// Reads the entries. The result is `/` with a node for each entry that is not disabled.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>, types: bool) -> Node {
    let mut root = Node::bare(NodePath::root(), cursor.pointer());
    let mut names: HashMap<NodePath, (&str, usize)> = HashMap::new();
    let mut paths = Paths::default();
    for member in fields::object(findings, cursor, "an object of servers").unwrap_or_default() {
        let entry = cursor.member(member);
        if is_disabled(findings, &entry) {
            let name = shown_line(&member.key, 80);
            let message = format!("`{name}` is disabled and is left out");
            findings.add_key(&entry, Diagnostic::warning(Code::KeyIgnored, message));
            continue;
        }
        let Some(path) = path_of(findings, &entry, &member.key) else {
            // Its keys are checked as well.
            source::read(
                findings,
                &entry,
                &NodePath::root(),
                types,
                source::Form::Entry,
            );
            continue;
        };
        match names.get(&path) {
            Some((other, first)) if *other != member.key => {
                let diagnostic = name_clash(other, &member.key, &path);
                findings.add_also(&entry, diagnostic, *first);
            }
            Some(_) => {}
            None => {
                names.insert(path.clone(), (&member.key, member.at));
                paths.add(findings, &entry, &path);
            }
        }
        let mut node = Node::bare(path.clone(), entry.pointer());
        node.source = source::read(findings, &entry, &path, types, source::Form::Entry);
        root.children.push(node);
    }
    root
}

/// `disabled: true`, or `enabled: false` in the format of some clients.
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

fn path_of(findings: &mut Findings<'_>, entry: &Cursor<'_>, name: &str) -> Option<NodePath> {
    if let Err(at) = unescape(name) {
        let diagnostic = fields::unexpanded(&name[at..], "the name of a server");
        findings.add_key(entry, diagnostic);
        return None;
    }
    match path_of_name(name) {
        Ok(path) => Some(path),
        Err(diagnostic) => {
            findings.add_key(entry, *diagnostic);
            None
        }
    }
}

/// The path of the node for the server of this name: characters outside the grammar of paths become `-`.
pub fn path_of_name(name: &str) -> Result<NodePath, Box<Diagnostic>> {
    let segment: String = name
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') => c,
            _ => '-',
        })
        .collect();
    NodePath::root().join(&segment).map_err(|error| {
        let message = format!(
            "the name `{}` cannot be a path segment: {error}",
            shown_line(name, 80)
        );
        Box::new(Diagnostic::error(Code::PathInvalid, message))
    })
}

/// The error for two names of servers that give the same path.
pub fn name_clash(first: &str, second: &str, path: &NodePath) -> Diagnostic {
    let message = format!(
        "`{}` and `{}` both give the path `{path}`",
        shown_line(first, 80),
        shown_line(second, 80)
    );
    Diagnostic::error(Code::NameClash, message)
}
