//! The summaries of entries as a caller sees them. A node without a summary has the names of its tools as its summary;
//! the compiled one has all of them, so for a caller that may see fewer it is made again.

use std::borrow::Cow;
use std::collections::BTreeSet;

use broker_model::tool_names;
use broker_wire::valid_string;

use crate::catalog::{Catalog, EntryKind};
use crate::listing::scope::Scope;

const SUMMARY: &str = "\"summary\":";

/// Returns the nodes whose compiled summary is the names of their tools.
pub(crate) fn nodes_with_tool_names(catalog: &Catalog) -> BTreeSet<u32> {
    let nodes = catalog.sources.iter();
    let nodes = nodes.filter_map(|source| catalog.find(source.path));
    nodes
        .filter(|at| {
            let names = tool_names::summary(tools_of(catalog, *at).map(|(_, name)| name));
            names.is_some_and(|names| compiled_summary(catalog, *at) == names)
        })
        .collect()
}

/// Returns the tools directly below a node, with the last segments of their paths.
fn tools_of(catalog: &Catalog, at: u32) -> impl Iterator<Item = (u32, &'static str)> {
    let children = match catalog.entry(at).kind {
        EntryKind::Node { children, .. } => children,
        EntryKind::Item(_) => &[],
    };
    let entries = children.iter().map(|child| (*child, catalog.entry(*child)));
    entries
        .filter(|(_, entry)| matches!(entry.kind, EntryKind::Item(_)))
        .map(|(child, entry)| (child, leaf(entry.path)))
}

fn leaf(path: &'static str) -> &'static str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the summary of an entry in the catalog, as plain text.
fn compiled_summary(catalog: &Catalog, at: u32) -> Cow<'static, str> {
    summary_in(catalog.text(catalog.entry(at).head))
}

/// Returns the summary in the head of an entry, as plain text.
pub(super) fn summary_in(head: &'static str) -> Cow<'static, str> {
    // A path has no quotes, so the first match is the member. It is the last one.
    let summary = head.split_once(SUMMARY).map_or("", |(_, json)| json);
    valid_string(summary).unwrap_or_default()
}

impl Scope<'_> {
    /// Whether every entry below a visible one is visible.
    fn has_all_tools(&self) -> bool {
        self.view.hidden().is_empty() && !self.caller.needs_own_replies()
    }

    /// Whether the compiled summary of an entry names tools that do not exist for the caller.
    pub(crate) fn has_own_summary(&self, at: u32) -> bool {
        !self.has_all_tools()
            && self.named.contains(&at)
            && tools_of(self.catalog, at).any(|(tool, _)| !self.admits(tool))
    }

    /// Returns the summary of an entry if it is not the compiled one.
    pub(crate) fn own_summary(&self, at: u32) -> Option<String> {
        if !self.has_own_summary(at) {
            return None;
        }
        let tools = tools_of(self.catalog, at).filter(|(tool, _)| self.admits(*tool));
        let names = tool_names::summary(tools.map(|(_, name)| name));
        // Without tools a build uses the name of the node.
        Some(names.unwrap_or_else(|| leaf(self.catalog.entry(at).path).to_owned()))
    }

    /// Returns the summary of an entry as plain text.
    pub(crate) fn summary(&self, at: u32) -> Cow<'static, str> {
        match self.own_summary(at) {
            None => compiled_summary(self.catalog, at),
            Some(summary) => Cow::Owned(summary),
        }
    }
}
