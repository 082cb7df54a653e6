//! The nodes that exist for a class: the root, and nodes with a tool below that exists for the class.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::class::AdmissionClass;
use super::recent::Recent;
use crate::catalog::{Catalog, EntryKind};

/// A set of entries.
#[derive(Debug)]
pub(super) enum NodeSet {
    /// All of them.
    All,
    /// Those whose bit is set.
    Some(Box<[u64]>),
}

impl NodeSet {
    /// Returns the root, and the nodes above every tool with a true `exists`: an empty listing is an answer.
    pub(super) fn above(catalog: &Catalog, exists: impl Fn(u32) -> bool) -> Self {
        let count = catalog.entries.len();
        let mut bits = vec![0u64; count.div_ceil(64)].into_boxed_slice();
        let is_set = |bits: &[u64], at: u32| bits[at as usize / 64] >> (at % 64) & 1 == 1;
        // A child's path begins with its parent's, so it comes after it.
        for (at, entry) in catalog.entries.iter().enumerate().rev() {
            let is_there = match entry.kind {
                EntryKind::Item(tool) => exists(tool),
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
pub(super) type NodeSets = Recent<NodeSetKey, NodeSet>;

/// A class, and the tools that the config hides meanwhile. A reload that hides others brings another set.
#[derive(Debug)]
pub(super) struct NodeSetKey {
    pub(super) class: AdmissionClass,
    pub(super) hidden: Arc<BTreeSet<u32>>,
}

impl PartialEq for NodeSetKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hidden, &other.hidden) && self.class == other.class
    }
}
