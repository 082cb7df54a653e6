//! Filters of a program that embeds the broker: an admission beside the rules of access, and the health of
//! sources. They remove tools; they never add one.

use std::sync::Arc;

use broker_mcp::State;

use crate::Inner;
use crate::identity::Identity;
use crate::interface::ToolItem;

/// Decides which tools exist for a caller, beside the rules of access. Asked at every request for every tool
/// of the catalog, so it must answer at once; for one caller and one tool it should answer the same until
/// [`crate::Core::note_filter_change`] is called.
pub trait Admission: Send + Sync {
    /// Whether the tool exists for the caller, if the rules of access allow it.
    fn admits(&self, identity: &Identity, tool: &ToolItem) -> bool;
}

impl<F: Fn(&Identity, &ToolItem) -> bool + Send + Sync> Admission for F {
    fn admits(&self, identity: &Identity, tool: &ToolItem) -> bool {
        self(identity, tool)
    }
}

/// Decides by the health of a source whether its tools exist. Asked at every request for every source. A source
/// in the state [`State::Failed`] is started again by a call only.
pub trait HealthView: Send + Sync {
    /// Whether the tools of the source at `path` exist while its best process is in this state.
    fn offers(&self, path: &str, state: State) -> bool;
}

impl<F: Fn(&str, State) -> bool + Send + Sync> HealthView for F {
    fn offers(&self, path: &str, state: State) -> bool {
        self(path, state)
    }
}

/// The filters of a core; none by default.
#[derive(Default)]
pub(crate) struct Filters {
    pub(crate) admission: Option<Box<dyn Admission>>,
    pub(crate) health: Option<Box<dyn HealthView>>,
}

/// Tools that filters exclude: one bit for each tool of the catalog.
pub(crate) type Excluded = Arc<[u64]>;

impl Filters {
    /// Whether there are any.
    pub(crate) const fn are_set(&self) -> bool {
        self.admission.is_some() || self.health.is_some()
    }
}

impl Inner {
    /// The tools that filters exclude for a caller; `None` if they exclude none.
    pub(super) fn excluded(&self, identity: &Identity) -> Option<Excluded> {
        if !self.filters.are_set() {
            return None;
        }
        let offered = self.offered_sources();
        let view = self.drift_state.view.load();
        let mut bits = vec![0u64; self.catalog.tools.len().div_ceil(64)];
        for (tool, at) in self.catalog.tools.iter().zip(0u32..) {
            let admits = |admission: &dyn Admission| {
                admission.admits(identity, &self.item(at, view.withdrawn(at).is_some()))
            };
            let exists = offered[tool.source as usize]
                && self.filters.admission.as_deref().is_none_or(admits);
            bits[at as usize / 64] |= u64::from(!exists) << (at % 64);
        }
        bits.iter().any(|word| *word != 0).then(|| bits.into())
    }

    /// Which sources the health view offers, by the catalog's sources.
    pub(crate) fn offered_sources(&self) -> Vec<bool> {
        let sources = self.catalog.sources.iter().enumerate();
        let offers = |(at, source): (usize, &crate::catalog::Source)| {
            let view = self.filters.health.as_deref();
            view.is_none_or(|view| view.offers(source.path, self.source_state(at)))
        };
        sources.map(offers).collect()
    }
}
