//! Filters of a program that embeds the broker: an admission in addition to the access rules, and source health. They
//! remove tools; they never add one.

use std::sync::Arc;

use broker_mcp::State;

use crate::identity::Identity;
use crate::item::ToolItem;
use crate::sources::fleet::Fleet;
use crate::view::View;

/// Decides whether a tool exists for a caller, in addition to the access rules. The core asks it at every request for
/// every tool that the access rules allow, so it must answer at once, and must not call the core. If its answers
/// change, the program calls [`crate::Services::note_filter_change`].
pub trait Admission: Send + Sync {
    /// Whether the tool exists for the caller, if the access rules allow it.
    fn admits(&self, identity: &Identity, tool: &ToolItem) -> bool;
}

impl<F: Fn(&Identity, &ToolItem) -> bool + Send + Sync> Admission for F {
    fn admits(&self, identity: &Identity, tool: &ToolItem) -> bool {
        self(identity, tool)
    }
}

/// Decides by the health of a source whether its tools exist. Asked at every request for every source, and
/// once a second, so that callers are informed of other lists. It must not call the core. Only a call restarts a
/// source in the state [`State::Failed`]: a view that does not offer it keeps it down.
pub trait HealthView: Send + Sync {
    /// Whether the tools of the source at `path` exist while its best process is in this state.
    fn offers(&self, path: &str, state: State) -> bool;
}

impl<F: Fn(&str, State) -> bool + Send + Sync> HealthView for F {
    fn offers(&self, path: &str, state: State) -> bool {
        self(path, state)
    }
}

/// The filters of a core; empty by default.
#[derive(Clone, Default)]
pub(crate) struct Filters {
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) health: Option<Arc<dyn HealthView>>,
}

/// Tools that filters exclude: one bit for each tool of the catalog.
pub(crate) type Excluded = Arc<[u64]>;

impl Filters {
    /// Whether there are any.
    pub(crate) const fn are_set(&self) -> bool {
        self.admission.is_some() || self.health.is_some()
    }

    /// Returns the tools that the filters exclude for a caller, among the tools that the access rules allow; `None` if
    /// they exclude no tool.
    pub(super) fn excluded(
        &self,
        fleet: &Fleet,
        view: &View,
        identity: &Identity,
        exists: impl Fn(u32) -> bool,
    ) -> Option<Excluded> {
        let (catalog, offered) = (fleet.catalog, fleet.offered_sources());
        let mut bits = vec![0u64; catalog.items.len().div_ceil(64)];
        let admission = self.admission.as_deref();
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
}
