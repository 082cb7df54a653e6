//! Admission: which entries a caller may see and call. One decision filters listings, suggestions and
//! calls; it only removes entries of the catalog.

use crate::catalog::{Catalog, EntryKind};
use crate::identity::AdmissionClass;
use crate::listing::view::View;

/// The rules that allow each entry, computed once from the tools of the catalog.
#[derive(Debug)]
pub(super) struct Admission {
    /// By the catalog's entries: the rules that allow a tool, or any tool below a node. A node without
    /// tools below it exists for every class.
    allow: Box<[u64]>,
    /// Whether there is an entry that not every rule allows.
    is_restricted: bool,
}

impl Admission {
    pub(super) fn new(catalog: &Catalog) -> Self {
        let mut allow = vec![u64::MAX; catalog.entries.len()].into_boxed_slice();
        // A child's path begins with its parent's, so it comes after it.
        for (at, entry) in catalog.entries.iter().enumerate().rev() {
            match entry.kind {
                EntryKind::Tool(tool) => allow[at] = catalog.tool(tool).allow,
                EntryKind::Node { children, .. } if !children.is_empty() => {
                    let below = children.iter().map(|child| allow[*child as usize]);
                    allow[at] = below.fold(0, |all, one| all | one);
                }
                EntryKind::Node { .. } => {}
            }
        }
        // The root exists for every class: an empty listing is an answer.
        if let Some(root) = catalog.find("/") {
            allow[root as usize] = u64::MAX;
        }
        let is_restricted = allow.iter().any(|rules| *rules != u64::MAX);
        Self {
            allow,
            is_restricted,
        }
    }

    /// Whether an entry exists for a caller of this class. A tool that the config hides exists
    /// for no class.
    pub(super) fn admits(
        &self,
        class: AdmissionClass,
        view: &View,
        catalog: &Catalog,
        at: u32,
    ) -> bool {
        let is_hidden = match catalog.entry(at).kind {
            EntryKind::Node { .. } => false,
            EntryKind::Tool(tool) => view.is_hidden(tool),
        };
        !is_hidden && class.is_allowed(self.allow[at as usize])
    }

    /// Whether admission lets this class see every entry directly below a node.
    pub(super) fn admits_all(&self, class: AdmissionClass, children: &[u32]) -> bool {
        let allowed = |child: &u32| class.is_allowed(self.allow[*child as usize]);
        !self.is_restricted || children.iter().all(allowed)
    }
}
