//! Admission: which entries a caller may see and call. One decision filters listings, suggestions and
//! calls; it only removes entries of the catalog. No other module reads the rows of the tools.

mod class;
mod narrowed;
mod nodes;
mod policy;

pub(crate) use class::AdmissionClass;
pub(crate) use narrowed::NarrowedArgs;
pub(crate) use policy::Policy;

use std::cell::OnceCell;
use std::sync::Arc;

use broker_model::access::{Decision, Denied};

use crate::catalog::{Catalog, EntryKind};
use crate::identity::{Identity, Subtree};
use crate::listing::view::View;
use nodes::NodeSet;

/// A caller, as far as admission knows it.
pub(crate) struct Caller {
    policy: Arc<Policy>,
    class: AdmissionClass,
    subtree: Option<Subtree>,
    /// The nodes that exist for the class, once a node is asked for.
    nodes: OnceCell<Arc<NodeSet>>,
}

impl Caller {
    /// A caller under a policy.
    pub(crate) fn new(policy: Arc<Policy>, identity: &Identity) -> Self {
        Self {
            class: policy.class_of(identity),
            subtree: identity.subtree(),
            nodes: OnceCell::new(),
            policy,
        }
    }

    /// The class by which composed replies are cached.
    pub(crate) const fn class(&self) -> &AdmissionClass {
        &self.class
    }

    /// The only part of the tree that the caller sees.
    pub(crate) const fn subtree(&self) -> Option<Subtree> {
        self.subtree
    }

    /// Whether the config has rules of access.
    pub(crate) fn has_rules(&self) -> bool {
        self.policy.has_rules()
    }

    /// The decision on an entry. Everything that a caller can learn of an entry depends on it. A tool that the config
    /// hides exists for no caller.
    pub(crate) fn decide(&self, view: &View, catalog: &Catalog, at: u32) -> Decision {
        let is_outside = |subtree: Subtree| !subtree.contains(at);
        if self.subtree.is_some_and(is_outside) {
            return Decision::Absent;
        }
        match catalog.entry(at).kind {
            EntryKind::Tool(tool) if view.is_hidden(tool) => Decision::Absent,
            EntryKind::Tool(tool) => self.policy.decide(&self.class, tool),
            EntryKind::Node { .. } => {
                let nodes = || self.policy.nodes(catalog, view, &self.class);
                match self.nodes.get_or_init(nodes).contains(at) {
                    true => Decision::Callable,
                    false => Decision::Absent,
                }
            }
        }
    }

    /// Whether the caller is informed that an entry exists which it may not use.
    pub(crate) fn is_informed_of(&self, view: &View, catalog: &Catalog, at: u32) -> bool {
        let is_hidden = match catalog.entry(at).kind {
            EntryKind::Tool(tool) => view.is_hidden(tool),
            EntryKind::Node { .. } => false,
        };
        let is_inside = self.subtree.is_none_or(|subtree| subtree.contains(at));
        self.policy.denied() == Denied::Forbidden && is_inside && !is_hidden
    }

    /// The schemas that narrow the arguments of a tool for the caller; `None` unless they are narrowed.
    pub(crate) fn narrowed(&self, tool: u32) -> Option<NarrowedArgs> {
        self.policy.narrowed(&self.class, tool)
    }
}
