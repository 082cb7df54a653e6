//! The catalog as one caller sees it at one moment. Listings and descriptions are the compiled bytes if
//! they apply, else they are composed from the same parts, with `withdrawn` added.

use std::collections::BTreeSet;
use std::ops::Range;

use broker_model::access::Decision;
use broker_model::digest::etag;
use bytes::Bytes;
use serde::Serialize;

use crate::Reply;
use crate::admission::{Caller, NarrowedArgs};
use crate::catalog::{Catalog, Entry, EntryKind};
use crate::errors::error::{CoreError, ErrorMembers};
use crate::listing::view::View;
use crate::sources::drift_state::DriftState;

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

/// The element for an entry that cannot be described.
#[derive(Serialize)]
struct UndescribedEntry<'a> {
    path: &'a str,
    error: ErrorMembers<'a>,
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

    /// Returns the tree below a node.
    pub(crate) fn tree(&self, at: u32, depth: u8) -> Reply {
        let entry = self.catalog.entry(at);
        if let EntryKind::Node {
            tree,
            tree_etag,
            children,
        } = entry.kind
            && depth == 1
            && self.is_as_compiled(at, children)
        {
            return self.compiled(tree, tree_etag);
        }
        let depth = depth.min(self.heights[at as usize]);
        self.view
            .cached((at, depth, self.caller.class().clone()), || {
                let mut out = String::with_capacity(1024);
                self.push_tree(&mut out, at, depth);
                self.composed(out)
            })
    }

    /// Returns the description of one entry.
    pub(crate) fn description(&self, at: u32) -> Reply {
        let entry = self.catalog.entry(at);
        match self.changed_description(at, entry) {
            Some(text) => self.composed(text),
            None => self.compiled(entry.desc, entry.desc_etag),
        }
    }

    /// Returns the descriptions of several entries, in the order of `paths`; `found` has the index of each, or the
    /// error.
    pub(crate) fn descriptions(
        &self,
        paths: &[String],
        found: impl Iterator<Item = Result<u32, Box<CoreError>>>,
    ) -> Reply {
        let mut out = "{\"entries\":[".to_owned();
        for (index, (path, found)) in paths.iter().zip(found).enumerate() {
            if index > 0 {
                out.push(',');
            }
            match found {
                Ok(at) => self.push_description(&mut out, at),
                Err(error) => push_json(
                    &mut out,
                    &UndescribedEntry {
                        path,
                        error: error.members(None),
                    },
                ),
            }
        }
        out.push_str("]}");
        self.composed(out)
    }

    fn push_description(&self, out: &mut String, at: u32) {
        let entry = self.catalog.entry(at);
        match self.changed_description(at, entry) {
            Some(text) => out.push_str(&text),
            None => out.push_str(self.catalog.text(entry.desc)),
        }
    }

    /// Returns the description if it differs from the compiled one.
    fn changed_description(&self, at: u32, entry: &Entry) -> Option<String> {
        let head = self.catalog.text(entry.desc_head);
        match entry.kind {
            EntryKind::Node { children, .. } if self.is_as_compiled(at, children) => None,
            EntryKind::Node { children, .. } => {
                let compiled = self.catalog.text(entry.head);
                let rest = head.strip_prefix(compiled).unwrap_or_default();
                let mut out = format!("{}{rest}", self.head(at));
                self.push_children(&mut out, children, 0);
                out.push('}');
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

    fn push_tree(&self, out: &mut String, at: u32, depth: u8) {
        self.push_head(out, at);
        if let EntryKind::Node { children, .. } = self.catalog.entry(at).kind
            && depth > 0
        {
            self.push_children(out, children, depth - 1);
        }
        out.push('}');
    }

    /// Returns the path of a tool.
    pub(crate) fn path_of(&self, tool: u32) -> &'static str {
        self.catalog.entry(self.catalog.item(tool).entry).path
    }

    /// Appends a tool as listings show it, without the closing brace.
    pub(crate) fn push_found_tool(&self, out: &mut String, tool: u32) {
        self.push_head(out, self.catalog.item(tool).entry);
    }

    /// Appends a node as listings show it, without its children.
    pub(crate) fn push_found_node(&self, out: &mut String, node: u32) {
        self.push_head(out, node);
        out.push('}');
    }

    /// Appends an entry without its children and the closing brace.
    fn push_head(&self, out: &mut String, at: u32) {
        out.push_str(&self.head(at));
        if let EntryKind::Item(tool) = self.catalog.entry(at).kind
            && let Some(withdrawn) = self.view.withdrawn(tool)
        {
            out.push(',');
            out.push_str(&withdrawn.member);
        }
    }

    fn push_children(&self, out: &mut String, children: &[u32], depth: u8) {
        out.push_str(",\"children\":[");
        let before = out.len();
        for child in children.iter().filter(|child| self.admits(**child)) {
            if out.len() > before {
                out.push(',');
            }
            self.push_tree(out, *child, depth);
        }
        out.push(']');
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

    fn compiled(&self, span: crate::catalog::Span, etag: &str) -> Reply {
        Reply {
            body: Bytes::from_static(self.catalog.text(span).as_bytes()),
            etag: Some(self.etag_of(etag.to_owned())),
        }
    }

    /// Returns a reply whose entity tag is computed from its bytes.
    fn composed(&self, text: String) -> Reply {
        Reply {
            etag: Some(self.etag_of(etag(text.as_bytes()))),
            body: Bytes::from(text),
        }
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

fn push_json(out: &mut String, value: &impl Serialize) {
    out.push_str(&serde_json::to_string(value).expect("strings and JSON values always serialize"));
}
