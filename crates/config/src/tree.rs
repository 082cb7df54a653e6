//! The nodes of `tree`: keys, paths, and the rules between paths.

use std::collections::HashMap;

use super::findings::{Cursor, Findings};
use super::keys::{self, Level};
use super::spanned::Data;
use super::{Node, fields, source};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::path::NodePath;
use broker_model::text::shown_line;

/// Every path so far, and its byte offset.
#[derive(Debug, Default)]
pub(super) struct Paths {
    exact: HashMap<NodePath, usize>,
    folded: HashMap<String, (NodePath, usize)>,
    /// The nodes of disabled sources.
    disabled: Vec<NodePath>,
}

/// Reads `tree`, a list of nodes or the root itself. The result is always `/`. The nodes of disabled sources are added
/// to `disabled`.
pub(super) fn read(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    types: bool,
    disabled: &mut Vec<NodePath>,
) -> Node {
    let mut paths = Paths::default();
    let mut nodes = Vec::new();
    match &cursor.value.data {
        Data::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let item = cursor.item(index, item);
                nodes.extend(node(findings, &item, None, &mut paths, types));
            }
        }
        Data::Object(_) => nodes.extend(node(findings, cursor, None, &mut paths, types)),
        _ => fields::wrong_type(findings, cursor, "a list of nodes, or the root node"),
    }
    disabled.append(&mut paths.disabled);
    let mut root = Node::bare(NodePath::root(), cursor.pointer());
    for node in nodes {
        if node.path.is_root() {
            let beside = std::mem::replace(&mut root, node).children;
            root.children.splice(0..0, beside);
        } else {
            root.children.push(node);
        }
    }
    root
}

/// Reads one node and the nodes below it. A node without a valid path is dropped after its keys are checked.
fn node(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    parent: Option<&NodePath>,
    paths: &mut Paths,
    types: bool,
) -> Option<Node> {
    let members = fields::object(findings, cursor, "an object, a node")?;
    let path = path(findings, cursor, parent, paths);
    // Below a node without a path, only the grammar of paths is checked.
    let here = path.clone().unwrap_or_else(NodePath::root);
    let mut out = Node::bare(here.clone(), cursor.pointer());
    let mut is_off = false;
    for member in members {
        let value = cursor.member(member);
        match member.key.as_str() {
            "path" => {}
            "type" => node_type(findings, &value),
            "summary" => out.summary = fields::text(findings, &value, "a summary"),
            "description" => {
                out.description = fields::text(findings, &value, "a description");
            }
            "children" => {
                let items = fields::list(findings, &value, "a list of nodes").unwrap_or_default();
                for (index, item) in items.iter().enumerate() {
                    let item = value.item(index, item);
                    let child = node(findings, &item, Some(&here), paths, types);
                    out.children.extend(child);
                }
            }
            "source" => {
                let source = source::read(findings, &value, &here, types);
                match is_disabled(&value) {
                    true => is_off = true,
                    false => out.source = source,
                }
            }
            unknown => keys::unknown(findings, &value, unknown, Level::Node),
        }
    }
    if is_off {
        let message = format!("the source of `{here}` is disabled and is left out");
        let help = "None: it comes back without `disabled`.";
        findings.add_key(
            cursor,
            Diagnostic::warning(Code::KeyIgnored, message).help(help),
        );
        paths.disabled.extend(path.clone());
    }
    // A node without anything below it would be a promise that no call can keep.
    path.filter(|_| !is_off || !out.children.is_empty())
        .map(|_| out)
}

/// Whether a source has `"disabled": true`; another type of the value was reported.
fn is_disabled(source: &Cursor<'_>) -> bool {
    let value = source.get("disabled");
    value.is_some_and(|value| matches!(value.value.data, Data::Bool(true)))
}

fn node_type(findings: &mut Findings<'_>, cursor: &Cursor<'_>) {
    if fields::string(findings, cursor).is_some_and(|text| text != "node") {
        let message = "expected `node`; tools come from the source".to_owned();
        fields::out_of_range(findings, cursor, message);
    }
}

fn path(
    findings: &mut Findings<'_>,
    cursor: &Cursor<'_>,
    parent: Option<&NodePath>,
    paths: &mut Paths,
) -> Option<NodePath> {
    let Some(value) = cursor.get("path") else {
        let diagnostic = Diagnostic::error(Code::PathInvalid, "the node has no `path`");
        findings.add(cursor, diagnostic);
        return None;
    };
    let text = &fields::text(findings, &value, "a path")?;
    let path = match NodePath::parse(text) {
        Ok(path) => path,
        Err(error) => {
            let message = format!("the path `{}`: {error}", shown_line(text, 80));
            findings.add(&value, Diagnostic::error(Code::PathInvalid, message));
            return None;
        }
    };
    if let Some(parent) = parent
        && !path.is_below(parent)
    {
        let message = format!("`{path}` is not below the path of its parent `{parent}`");
        let mut diagnostic = Diagnostic::error(Code::PathParent, message);
        if let Ok(better) = parent.join(path.leaf()) {
            diagnostic = diagnostic.help(format!("write `{better}`, or move the node"));
        }
        findings.add(&value, diagnostic);
    }
    paths.add(findings, &value, &path);
    Some(path)
}

impl Paths {
    /// Records a path; reports a duplicate, and one that differs from another only in case.
    pub(super) fn add(&mut self, findings: &mut Findings<'_>, at: &Cursor<'_>, path: &NodePath) {
        if let Some(first) = self.exact.get(path) {
            let message = format!("two nodes have the path `{path}`");
            findings.add_also(at, Diagnostic::error(Code::PathDup, message), *first);
            return;
        }
        self.exact.insert(path.clone(), at.value.at);
        let folded = path.as_str().to_lowercase();
        match self.folded.get(&folded) {
            Some((other, first)) => {
                let message = format!("`{path}` and `{other}` differ only in case");
                findings.add_also(at, Diagnostic::warning(Code::PathCase, message), *first);
            }
            None => {
                self.folded.insert(folded, (path.clone(), at.value.at));
            }
        }
    }
}
