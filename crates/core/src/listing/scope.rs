//! The catalog as one caller sees it at one moment. Listings and descriptions are the compiled bytes if
//! they apply, else they are composed from the same parts, with `withdrawn` added.

use std::collections::BTreeSet;
use std::ops::Range;

use broker_model::access::Decision;
use broker_model::digest::etag;

use crate::admission::{Caller, NarrowedArgs};
use crate::catalog::{Catalog, Entry, EntryKind, Span};
use crate::listing::entry::{EntryType, ListedEntry, WithdrawalNote};
use crate::sources::drift_state::DriftState;
use crate::view::View;

/// The catalog for one class of callers at one moment. Everything below an entry of a subtree is in it as well,
/// so that replies do not depend on the subtree, only whether an entry exists.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) catalog: &'static Catalog,
    pub(crate) heights: &'a [u8],
    /// The nodes whose compiled summary is the names of their tools.
    pub(crate) named: &'a BTreeSet<u32>,
    pub(crate) view: &'a View,
    pub(crate) caller: &'a Caller,
    pub(crate) drift_state: &'a DriftState,
}

/// Returns the number of levels of nodes below each entry, including the entry: 0 for a tool. A greater depth does not
/// change a reply.
pub(crate) fn heights(catalog: &Catalog) -> Box<[u8]> {
    let mut heights = vec![0u8; catalog.entries.len()].into_boxed_slice();
    // A child's path begins with its parent's, so it comes after it.
    for (at, entry) in catalog.entries.iter().enumerate().rev() {
        if let EntryKind::Node { children, .. } = entry.kind {
            let below = children.iter().map(|child| heights[*child as usize]).max();
            heights[at] = below.unwrap_or(0).saturating_add(1);
        }
    }
    heights
}

impl Scope<'_> {
    /// Whether an entry exists for the caller.
    pub(crate) fn admits(&self, at: u32) -> bool {
        self.caller.decide(self.view, self.catalog, at) != Decision::Absent
    }

    /// Whether lists of the caller have a tool, unless the vendor of a list refuses it.
    pub(crate) fn lists(&self, at: u32) -> bool {
        let tool = self.catalog.item(at);
        tool.listed.is_some() && self.view.is_served(at) && self.admits(tool.entry)
    }

    /// Returns the indices of the entries for suggestions.
    pub(crate) fn searched(&self) -> Range<u32> {
        match self.caller.subtree() {
            Some(subtree) => subtree.below(),
            None => 0..self.catalog.entries.len() as u32,
        }
    }

    /// Whether the compiled replies of a node apply: the entries directly below it are as compiled, all of
    /// them exist for the caller, and no summary differs.
    fn is_as_compiled(&self, at: u32, children: &[u32]) -> bool {
        !self.view.is_touched(at)
            && (!self.caller.needs_own_replies()
                || children.iter().all(|child| self.admits(*child)))
            && !self.has_own_summary(at)
            && !children.iter().any(|child| self.has_own_summary(*child))
    }

    /// Returns the compiled tree of depth 1 below a node, and its entity tag, if they apply.
    pub(crate) fn compiled_tree(&self, at: u32) -> Option<(Span, &'static str)> {
        match self.catalog.entry(at).kind {
            EntryKind::Node {
                tree,
                tree_etag,
                children,
            } if self.is_as_compiled(at, children) => Some((tree, tree_etag)),
            EntryKind::Node { .. } | EntryKind::Item(_) => None,
        }
    }

    /// Returns an entry with `depth` levels of entries below it.
    pub(crate) fn listed_entry(&self, at: u32, depth: u8) -> ListedEntry {
        let entry = self.catalog.entry(at);
        let (kind, withdrawn, children) = match entry.kind {
            EntryKind::Item(item) => (
                EntryType::Item(self.catalog.item(item).kind),
                self.view.withdrawn(item).cloned().map(WithdrawalNote),
                None,
            ),
            EntryKind::Node { children, .. } => (
                EntryType::Node,
                None,
                (depth > 0).then(|| self.listed_entries(children, depth - 1)),
            ),
        };
        ListedEntry {
            path: entry.path,
            kind,
            summary: self.summary(at),
            withdrawn,
            children,
        }
    }

    fn listed_entries(&self, entries: &[u32], depth: u8) -> Vec<ListedEntry> {
        let admitted = entries.iter().filter(|at| self.admits(**at));
        admitted.map(|at| self.listed_entry(*at, depth)).collect()
    }

    /// Returns the text of a node's description between its head and its children.
    pub(crate) fn node_members(&self, at: u32) -> &'static str {
        let entry = self.catalog.entry(at);
        let head = self.catalog.text(entry.desc_head);
        let compiled = self.catalog.text(entry.head);
        head.strip_prefix(compiled).unwrap_or_default()
    }

    /// Returns the description if it differs from the compiled one.
    pub(crate) fn changed_description(&self, at: u32, entry: &Entry) -> Option<String> {
        let head = self.catalog.text(entry.desc_head);
        match entry.kind {
            EntryKind::Node { children, .. } if self.is_as_compiled(at, children) => None,
            EntryKind::Node { .. } => {
                let mut out = String::with_capacity(1024);
                let node = self.listed_entry(at, 1);
                node.push_with(self.node_members(at), &mut out);
                Some(out)
            }
            EntryKind::Item(tool) => {
                let narrowed = self.caller.narrowed(tool);
                let withdrawn = self.view.withdrawn(tool);
                let listing = self.catalog.item(tool);
                let is_live = listing.is_live();
                if narrowed.is_none() && withdrawn.is_none() && !is_live {
                    return None;
                }
                let mut out = match &narrowed {
                    Some(narrowed) => self.narrowed_head(entry, tool, narrowed),
                    None => head.to_owned(),
                };
                if let Some(withdrawn) = withdrawn {
                    out.push(',');
                    out.push_str(&withdrawn.member);
                } else if is_live {
                    self.push_live(listing, &mut out);
                }
                out.push('}');
                Some(out)
            }
        }
    }

    /// Returns the path of a tool.
    pub(crate) fn path_of(&self, tool: u32) -> &'static str {
        self.catalog.entry(self.catalog.item(tool).entry).path
    }

    /// Returns the description of a tool, without its closing brace, with the schema that the caller must match.
    fn narrowed_head(&self, entry: &Entry, tool: u32, narrowed: &NarrowedArgs) -> String {
        let head = self.catalog.text(entry.desc_head);
        let schema = self.catalog.item(tool).args_schema;
        let at = (schema.at - entry.desc_head.at) as usize;
        let (before, after) = (&head[..at], &head[at + schema.len as usize..]);
        let schema = narrowed.apply(self.catalog.text(schema));
        format!("{before}{schema}{after},\"args_schema_narrowed\":true")
    }

    /// Returns the entity tag of a reply whose bytes have the tag `of_bytes`. Where callers may see different entries,
    /// it also depends on the catalog and on the admission class, so that equal tags do not say that two classes see
    /// the same.
    pub(crate) fn etag_of(&self, of_bytes: String) -> String {
        if !self.caller.needs_own_replies() {
            return of_bytes;
        }
        let digest = self.catalog.catalog_digest;
        let class = self.caller.class().text();
        etag(format!("{digest} {class} {of_bytes}").as_bytes())
    }
}
