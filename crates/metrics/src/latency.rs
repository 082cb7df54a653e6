//! The time that the servers of sources take for a call, estimated from the histograms of their tools.

use std::time::Duration;

use crate::histogram::{OPERATION_BOUNDS, quantile};
use crate::metrics::Metrics;

/// The time that the server of a source takes for a call, since the start of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Half of the calls took at most this time.
    pub p50: Duration,
    /// All calls but one in a hundred took at most this time.
    pub p99: Duration,
}

impl Metrics {
    /// Returns the latency of each source, in the order of the catalog; `None` for a source without calls.
    pub fn latencies(&self) -> Vec<Option<Latency>> {
        const BUCKETS: usize = OPERATION_BOUNDS.len() + 1;
        let mut sources = vec![[0; BUCKETS]; self.labels.sources.len()];
        for (tool, counters) in self.labels.tools.iter().zip(&self.tools) {
            if let Some(counts) = sources.get_mut(tool.source) {
                counters.sides.client.add_to(counts);
            }
        }
        let latencies = sources.iter().map(|counts| {
            Some(Latency {
                p50: quantile(&OPERATION_BOUNDS, counts, 0.5)?,
                p99: quantile(&OPERATION_BOUNDS, counts, 0.99)?,
            })
        });
        latencies.collect()
    }
}
