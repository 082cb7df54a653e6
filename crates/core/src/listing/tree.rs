//! The tree below a node as a value. It carries its rendered form where the build compiled it in, or the view keeps it.

use broker_model::CallCode;
use broker_model::digest::etag;
use bytes::Bytes;

use crate::MAX_DEPTH;
use crate::catalog::EntryKind;
use crate::errors::error::CoreError;
use crate::listing::entry::ListedEntry;
use crate::listing::paths;
use crate::snapshot::Snapshot;
use crate::types::Reply;

/// The tree below a node, as one caller sees it.
#[derive(Debug)]
pub struct Listing(Tree);

#[derive(Debug)]
enum Tree {
    /// A node of the catalog, with this depth.
    Catalog(Snapshot, u32, u8),
    /// A tree that a layer changed.
    Changed(ListedEntry),
}

impl From<ListedEntry> for Listing {
    /// Makes the listing of a tree that a layer changed.
    fn from(node: ListedEntry) -> Self {
        Self(Tree::Changed(node))
    }
}

impl Listing {
    /// Returns the tree below `path`, `depth` levels deep.
    pub(crate) fn new(snapshot: Snapshot, path: &str, depth: u8) -> Result<Self, Box<CoreError>> {
        if !(1..=MAX_DEPTH).contains(&depth) {
            let message = format!("`depth` is {depth}, but must be from 1 to {MAX_DEPTH}");
            return Err(Box::new(CoreError::new(CallCode::FieldInvalid, message)));
        }
        let at = paths::resolve(snapshot.scope(), path)?;
        let entry = snapshot.core.catalog.entry(at);
        match entry.kind {
            EntryKind::Item(_) => Err(paths::is_tool(entry.path)),
            EntryKind::Node { .. } => Ok(Self(Tree::Catalog(snapshot, at, depth))),
        }
    }

    /// Returns the node with the entries below it.
    pub fn tree(&self) -> ListedEntry {
        match &self.0 {
            Tree::Catalog(snapshot, at, depth) => snapshot.scope().listed_entry(*at, *depth),
            Tree::Changed(node) => node.clone(),
        }
    }

    /// Returns the JSON of the tree, with an entity tag unless a layer changed the tree.
    pub fn reply(&self) -> Reply {
        let (snapshot, at, depth) = match &self.0 {
            Tree::Catalog(snapshot, at, depth) => (snapshot, *at, *depth),
            Tree::Changed(node) => {
                return Reply {
                    body: json(node),
                    etag: None,
                };
            }
        };
        let scope = snapshot.scope();
        if depth == 1
            && let Some((tree, tag)) = scope.compiled_tree(at)
        {
            return Reply {
                body: Bytes::from_static(scope.catalog.text(tree).as_bytes()),
                etag: Some(scope.etag_of(tag.to_owned())),
            };
        }
        let depth = depth.min(scope.heights[at as usize]);
        let key = (at, depth, scope.caller.class().clone());
        scope.view.cached(key, || {
            let body = json(&scope.listed_entry(at, depth));
            Reply {
                etag: Some(scope.etag_of(etag(&body))),
                body,
            }
        })
    }
}

fn json(node: &ListedEntry) -> Bytes {
    let mut out = String::with_capacity(1024);
    node.push_json(&mut out);
    Bytes::from(out)
}
