//! The state of a broker that is read when its metrics are.

use broker_core::{Health, Services};
use broker_metrics::{AuditState, MemoryState, ScrapedSource, ScrapedState, SourceState};

use crate::observers::Observers;

impl Observers {
    /// Returns the state of a broker, without what only its surface knows.
    pub fn scraped_state(&self, services: &Services) -> ScrapedState {
        let health = services.health();
        let audit = self.audit.as_ref().map(|audit| audit.status());
        let dropped = self.export.as_ref().map(|export| export.dropped());
        ScrapedState {
            tools_withdrawn: withdrawn(&health),
            sources: sources(&health),
            memory: MemoryState {
                limit: services.memory().limit() as u64,
                used: services.memory().used() as u64,
            },
            audit: audit.map(|status| AuditState {
                seq: status.seq,
                lag_lines: status.lag_lines as u64,
                is_available: status.is_available,
                space_left_seconds: status.space_left_s.map(|seconds| seconds as f64),
            }),
            dropped: dropped.map(|dropped| dropped.state()),
            is_search_degraded: services.is_search_degraded(),
            ..ScrapedState::default()
        }
    }
}

fn withdrawn(health: &Health) -> u64 {
    let tools = health.sources.iter().map(|source| source.withdrawn as u64);
    tools.sum()
}

fn sources(health: &Health) -> Vec<ScrapedSource> {
    let sources = health.sources.iter();
    let scraped = sources.map(|source| ScrapedSource {
        state: state(source.state),
        restarts: source.counters.restarts,
        hangs: source.counters.hangs,
        queue_depth: source.counters.waiting,
        waited_calls: source.counters.waited,
        waited_ms: source.counters.waited_ms,
        certificate_expiry: source.certificate_expiry,
    });
    scraped.collect()
}

/// Returns the state with this name.
fn state(name: &str) -> SourceState {
    let mut states = SourceState::ALL.into_iter();
    let found = states.find(|state| state.as_str() == name);
    found.unwrap_or_default()
}
