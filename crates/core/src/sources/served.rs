//! Counts what is served once the start has an outcome.

use crate::Fleet;

/// The number of sources and tools that are served, of those that the config exposes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedCounts {
    /// Sources that were compared with the lock and serve a tool, or do not have tools.
    pub sources: usize,
    /// All sources.
    pub all_sources: usize,
    /// Tools of these sources that are not withdrawn.
    pub tools: usize,
    /// All exposed tools.
    pub all_tools: usize,
}

impl ServedCounts {
    /// Counts by outcomes at the gate, since the state of a source is set shortly after its outcome.
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let view = fleet.drift_state.view.load();
        let mut counts = Self::default();
        for (at, source) in fleet.catalog.sources.iter().enumerate() {
            let exposed = source.items.iter().filter(|tool| !view.is_hidden(**tool));
            let served = exposed
                .clone()
                .filter(|tool| view.withdrawn(**tool).is_none());
            let (exposed, mut served) = (exposed.count(), served.count());
            if !fleet.drift_state.gate.is_compared(at) {
                served = 0;
            } else if served > 0 || exposed == 0 {
                counts.sources += 1;
            }
            counts.all_sources += 1;
            counts.tools += served;
            counts.all_tools += exposed;
        }
        counts
    }
}
