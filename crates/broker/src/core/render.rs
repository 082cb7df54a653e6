//! Replies of `meta_tree` and `meta_desc`: the compiled bytes where they hold, else composed of their
//! heads. What is composed has the same members in the same order, but for `withdrawn`.

use broker_model::digest::etag;
use bytes::Bytes;
use serde::Serialize;

use super::Reply;
use super::admission::admits;
use super::error::{CoreError, ErrorMembers};
use super::identity::Identity;
use super::view::View;
use crate::catalog::{Catalog, Entry, Kind};

/// What replies are made of, for one caller at one moment.
#[derive(Clone, Copy)]
pub(super) struct Renderer<'a> {
    pub(super) catalog: &'static Catalog,
    pub(super) heights: &'a [u8],
    pub(super) view: &'a View,
    pub(super) identity: &'a Identity,
}

/// What stands for an entry that cannot be described.
#[derive(Serialize)]
struct Missing<'a> {
    path: &'a str,
    error: ErrorMembers<'a>,
}

/// How many levels of nodes stand below each entry, itself included: 0 for a tool. More depth than
/// that changes no reply.
pub(super) fn heights(catalog: &Catalog) -> Box<[u8]> {
    let mut heights = vec![0u8; catalog.entries.len()].into_boxed_slice();
    // A child's path begins with its parent's, so it comes after it.
    for (at, entry) in catalog.entries.iter().enumerate().rev() {
        if let Kind::Node { children, .. } = entry.kind {
            let below = children.iter().map(|child| heights[*child as usize]).max();
            heights[at] = below.unwrap_or(0).saturating_add(1);
        }
    }
    heights
}

impl Renderer<'_> {
    /// The tree below a node.
    pub(super) fn tree(&self, at: u32, depth: u8) -> Reply {
        let entry = self.catalog.entry(at);
        if let Kind::Node {
            tree, tree_etag, ..
        } = entry.kind
            && depth == 1
            && !self.view.is_touched(at)
        {
            return self.compiled(tree, tree_etag);
        }
        let depth = depth.min(self.heights[at as usize]);
        self.view.cached((at, depth), || {
            let mut out = String::with_capacity(1024);
            self.push_tree(&mut out, entry, depth);
            composed(out)
        })
    }

    /// One entry described.
    pub(super) fn description(&self, at: u32) -> Reply {
        let entry = self.catalog.entry(at);
        match self.changed_description(at, entry) {
            Some(text) => composed(text),
            None => self.compiled(entry.desc, entry.desc_etag),
        }
    }

    /// Several entries described, in the order of `paths`; `found` has the place of each, or why it
    /// has none.
    pub(super) fn descriptions(
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
                    &Missing {
                        path,
                        error: error.members(None),
                    },
                ),
            }
        }
        out.push_str("]}");
        composed(out)
    }

    fn push_description(&self, out: &mut String, at: u32) {
        let entry = self.catalog.entry(at);
        match self.changed_description(at, entry) {
            Some(text) => out.push_str(&text),
            None => out.push_str(self.catalog.text(entry.desc)),
        }
    }

    /// The description where it is not as compiled.
    fn changed_description(&self, at: u32, entry: &Entry) -> Option<String> {
        let head = self.catalog.text(entry.desc_head);
        match entry.kind {
            Kind::Node { .. } if !self.view.is_touched(at) => None,
            Kind::Node { children, .. } => {
                let mut out = head.to_owned();
                self.push_children(&mut out, children, 0);
                out.push('}');
                Some(out)
            }
            Kind::Tool(tool) => {
                let withdrawn = self.view.withdrawn(tool)?;
                Some(format!("{head},{}}}", withdrawn.member))
            }
        }
    }

    fn push_tree(&self, out: &mut String, entry: &Entry, depth: u8) {
        out.push_str(self.catalog.text(entry.head));
        match entry.kind {
            Kind::Node { children, .. } if depth > 0 => {
                self.push_children(out, children, depth - 1);
            }
            Kind::Node { .. } => {}
            Kind::Tool(tool) => {
                if let Some(withdrawn) = self.view.withdrawn(tool) {
                    out.push(',');
                    out.push_str(&withdrawn.member);
                }
            }
        }
        out.push('}');
    }

    fn push_children(&self, out: &mut String, children: &[u32], depth: u8) {
        out.push_str(",\"children\":[");
        let before = out.len();
        for child in children {
            let child = self.catalog.entry(*child);
            if !admits(self.identity, self.view, child) {
                continue;
            }
            if out.len() > before {
                out.push(',');
            }
            self.push_tree(out, child, depth);
        }
        out.push(']');
    }

    fn compiled(&self, span: crate::catalog::Span, etag: &str) -> Reply {
        Reply {
            body: Bytes::from_static(self.catalog.text(span).as_bytes()),
            etag: Some(etag.to_owned()),
        }
    }
}

fn push_json(out: &mut String, value: &impl Serialize) {
    out.push_str(&serde_json::to_string(value).expect("strings and JSON values always serialize"));
}

/// A reply whose entity tag is made of its bytes.
fn composed(text: String) -> Reply {
    Reply {
        etag: Some(etag(text.as_bytes())),
        body: Bytes::from(text),
    }
}
