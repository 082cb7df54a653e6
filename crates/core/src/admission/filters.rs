//! Filters of a program that embeds the broker: an admission in addition to the access rules, and source health. They
//! remove tools; they never add one.

use std::sync::Arc;

use broker_mcp::State;

use crate::Fleet;
use crate::catalog::Source;
use crate::identity::Identity;
use crate::item::ToolItem;

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

    /// Returns for each source of the catalog whether the health view offers it.
    pub(crate) fn offered_sources(&self, fleet: &Fleet) -> Vec<bool> {
        let sources = fleet.catalog.sources.iter().enumerate();
        let offers = |(at, source): (usize, &Source)| {
            let view = self.health.as_deref();
            view.is_none_or(|view| view.offers(source.path, fleet.source_state(at)))
        };
        sources.map(offers).collect()
    }
}
