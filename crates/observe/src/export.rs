//! What sends spans, metrics and audit lines to a receiver.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use broker_metrics::{DroppedState, FamilyValues};

/// Reads the metrics.
pub type ReadMetrics = Box<dyn Fn() -> Vec<FamilyValues> + Send + Sync>;

/// An exporter.
pub trait Export: fmt::Debug + Send + Sync {
    /// Sets how metrics are read. Before it is set, none are exported; the first one stays.
    fn read_metrics(&self, read: ReadMetrics);

    /// Returns the counts of what was not exported.
    fn dropped(&self) -> Arc<Dropped>;

    /// Exports what waits, once, and ends. It blocks.
    fn close(&self);
}

/// What was not exported, since a queue was full or the receiver did not take it.
#[derive(Debug, Default)]
pub struct Dropped {
    /// Calls without their spans.
    pub spans: AtomicU64,
    /// Lines of the audit log.
    pub lines: AtomicU64,
}

impl Dropped {
    /// Returns the counts.
    pub fn state(&self) -> DroppedState {
        DroppedState {
            spans: self.spans.load(Relaxed),
            audit_lines: self.lines.load(Relaxed),
        }
    }
}
