//! The nodes that exist for a class: those with a tool below that exists for it, and the root.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::class::AdmissionClass;
use crate::catalog::{Catalog, EntryKind};

/// The maximum number of classes whose nodes are kept.
const MAX_KEPT: usize = 64;

/// A set of entries.
#[derive(Debug)]
pub(super) enum NodeSet {
    /// All of them.
    All,
    /// Those whose bit is set.
    Some(Box<[u64]>),
}

impl NodeSet {
    /// The nodes above the tools for which `exists` is true, and the root: an empty listing is an answer.
    pub(super) fn above(catalog: &Catalog, exists: impl Fn(u32) -> bool) -> Self {
        let count = catalog.entries.len();
        let mut bits = vec![0u64; count.div_ceil(64)].into_boxed_slice();
        let is_set = |bits: &[u64], at: u32| bits[at as usize / 64] >> (at % 64) & 1 == 1;
        // A child's path begins with its parent's, so it comes after it.
        for (at, entry) in catalog.entries.iter().enumerate().rev() {
            let is_there = match entry.kind {
                EntryKind::Tool(tool) => exists(tool),
                EntryKind::Node { children, .. } => {
                    entry.path == "/" || children.iter().any(|child| is_set(&bits, *child))
                }
            };
            bits[at / 64] |= u64::from(is_there) << (at % 64);
        }
        Self::Some(bits)
    }

    pub(super) fn contains(&self, at: u32) -> bool {
        match self {
            Self::All => true,
            Self::Some(bits) => bits[at as usize / 64] >> (at % 64) & 1 == 1,
        }
    }
}

/// The sets of the classes that asked last.
#[derive(Debug, Default)]
pub(super) struct NodeSets(Mutex<Vec<KeptSet>>);

/// The nodes that exist for a class while the config hides these tools.
#[derive(Debug)]
struct KeptSet {
    class: AdmissionClass,
    hidden: Hidden,
    nodes: Arc<NodeSet>,
}

/// The tools that the config hides. A reload that hides others brings another set.
type Hidden = Arc<BTreeSet<u32>>;

impl NodeSets {
    /// The set of a class, made by `make` if it is not known. The lock is not held meanwhile.
    pub(super) fn get(
        &self,
        class: &AdmissionClass,
        hidden: &Hidden,
        make: impl FnOnce() -> NodeSet,
    ) -> Arc<NodeSet> {
        if let Some(known) = self.find(class, hidden) {
            return known;
        }
        let made = Arc::new(make());
        let new = KeptSet {
            class: class.clone(),
            hidden: Arc::clone(hidden),
            nodes: Arc::clone(&made),
        };
        let mut kept = self.kept();
        kept.truncate(MAX_KEPT - 1);
        kept.insert(0, new);
        made
    }

    /// The set of a class, which becomes the last one to be forgotten.
    fn find(&self, class: &AdmissionClass, hidden: &Hidden) -> Option<Arc<NodeSet>> {
        let mut kept = self.kept();
        let is_it = |known: &KeptSet| known.class == *class && Arc::ptr_eq(&known.hidden, hidden);
        let at = kept.iter().position(is_it)?;
        kept[..=at].rotate_right(1);
        Some(Arc::clone(&kept[0].nodes))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<KeptSet>> {
        // Every change leaves a valid list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
