//! Admission: the entries that a caller may see and call. One decision filters listings, suggestions and calls; it only
//! removes entries of the catalog. No other module reads the rows of the tools.

mod class;
mod filters;
mod narrowed;
mod nodes;
mod overview;
mod policy;
#[cfg(test)]
mod policy_tests;
mod recent;
mod search_scopes;
#[cfg(test)]
mod uri_tests;
mod uris;

pub(crate) use class::AdmissionClass;
pub(crate) use filters::Filters;
pub use filters::{Admission, HealthView};
pub(crate) use narrowed::NarrowedArgs;
pub use overview::{AccessOfItem, AccessOverview};
pub(crate) use policy::Policy;

use std::sync::{Arc, OnceLock};

use broker_model::access::{Decision, Denied};

use crate::Fleet;
use crate::catalog::{Catalog, EntryKind};
use crate::identity::{Identity, Subtree};
use crate::item::ToolItem;
use crate::view::View;
use filters::Excluded;
use nodes::NodeSet;

/// A caller, as far as admission knows it.
#[derive(Clone)]
pub(crate) struct Caller {
    policy: Arc<Policy>,
    class: AdmissionClass,
    subtree: Option<Subtree>,
    /// The nodes that exist for the class, once a node is asked for.
    nodes: OnceLock<Arc<NodeSet>>,
}

impl Caller {
    /// Makes the caller under the rules and filters in force.
    pub(crate) fn new(
        fleet: &Fleet,
        policy: &Arc<Policy>,
        view: &View,
        identity: &Identity,
    ) -> Self {
        let mut caller = Self::by_rules(fleet.catalog, policy, identity);
        if fleet.filters.are_set() {
            // Tools that do not exist for the caller in any case leave no trace in its class, nor in its entity tags.
            let is_inside = |at| caller.subtree.is_none_or(|subtree| subtree.contains(at));
            let exists = |tool: u32| {
                is_inside(fleet.catalog.item(tool).entry)
                    && caller.policy.decide(&caller.class, tool) != Decision::Absent
            };
            let excluded = excluded(fleet, view, identity, exists);
            caller.class = caller.class.without(excluded);
        }
        caller
    }

    /// Returns the caller under the rules in force, without the filters of the program.
    pub(crate) fn by_rules(catalog: &Catalog, policy: &Arc<Policy>, identity: &Identity) -> Self {
        Self {
            class: policy.class_of(identity),
            subtree: identity.subtree(catalog),
            nodes: OnceLock::new(),
            policy: policy.clone(),
        }
    }

    /// Returns the number of the policy that decides.
    pub(crate) fn policy_number(&self) -> u64 {
        self.policy.number()
    }

    /// Returns the index of the rule that decides about a tool.
    pub(crate) fn deciding_rule(&self, catalog: &'static Catalog, tool: u32) -> Option<usize> {
        self.policy.deciding_rule(catalog, &self.class, tool)
    }

    /// Returns the class by which composed replies are cached.
    pub(crate) const fn class(&self) -> &AdmissionClass {
        &self.class
    }

    /// Returns the only part of the tree that the caller sees.
    pub(crate) const fn subtree(&self) -> Option<Subtree> {
        self.subtree
    }

    /// Whether its replies may differ from the compiled ones: there are rules, or filters exclude tools for it.
    pub(crate) fn needs_own_replies(&self) -> bool {
        self.policy.has_rules() || self.class.has_excluded_tools()
    }

    /// Returns the decision on an entry. Everything that a caller can learn of an entry depends on it. A tool that the
    /// config hides exists for no caller.
    pub(crate) fn decide(&self, view: &View, catalog: &Catalog, at: u32) -> Decision {
        let is_outside = |subtree: Subtree| !subtree.contains(at);
        if self.subtree.is_some_and(is_outside) {
            return Decision::Absent;
        }
        match catalog.entry(at).kind {
            EntryKind::Item(tool) if view.is_hidden(tool) => Decision::Absent,
            EntryKind::Item(tool) => self.policy.decide(&self.class, tool),
            EntryKind::Node { .. } => {
                let nodes = || self.policy.nodes(catalog, view, &self.class);
                match self.nodes.get_or_init(nodes).contains(at) {
                    true => Decision::Callable,
                    false => Decision::Absent,
                }
            }
        }
    }

    /// Whether the caller is informed that an entry exists although it may not use it: if the config says so, and only
    /// rules deny the entry.
    pub(crate) fn is_informed_of(&self, view: &View, catalog: &Catalog, at: u32) -> bool {
        let is_inside = self.subtree.is_none_or(|subtree| subtree.contains(at));
        if self.policy.denied() != Denied::Forbidden || !is_inside {
            return false;
        }
        let exists = |tool| !view.is_hidden(tool) && !self.class.excludes(tool);
        match catalog.entry(at).kind {
            EntryKind::Item(tool) => exists(tool),
            EntryKind::Node { .. } => NodeSet::above(catalog, exists).contains(at),
        }
    }

    /// Returns the schemas that narrow the arguments of a tool for the caller; `None` unless they are narrowed.
    pub(crate) fn narrowed(&self, tool: u32) -> Option<NarrowedArgs> {
        self.policy.narrowed(&self.class, tool)
    }
}

/// Returns the tools that the filters exclude for a caller, among the tools that the access rules allow; `None` if
/// they exclude no tool.
fn excluded(
    fleet: &Fleet,
    view: &View,
    identity: &Identity,
    exists: impl Fn(u32) -> bool,
) -> Option<Excluded> {
    let (catalog, offered) = (fleet.catalog, fleet.filters.offered_sources(fleet));
    let mut bits = vec![0u64; catalog.items.len().div_ceil(64)];
    let admission = fleet.filters.admission.as_deref();
    for (tool, at) in catalog.items.iter().zip(0u32..) {
        if view.is_hidden(at) || !exists(at) {
            continue;
        }
        let admits = |admission: &dyn Admission| {
            let item = ToolItem::new(catalog, at, view.withdrawn(at).is_some());
            admission.admits(identity, &item)
        };
        let stays = offered[tool.source as usize] && admission.is_none_or(admits);
        bits[at as usize / 64] |= u64::from(!stays) << (at % 64);
    }
    bits.iter().any(|word| *word != 0).then(|| bits.into())
}
