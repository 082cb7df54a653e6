//! The metrics as an observer of calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use broker_core::{CallCode, CallRecord, Change, ChangeObserver, RecordedItem};
use broker_metrics::{
    EndedCall, FamilyValues, Format, Latency, Method, Metrics, OutcomeClass, ScrapedState, Side,
};

use crate::recorded_call::{CallEnd, RecordedCall};

/// The maximum number of items whose metrics are rendered on a worker of the runtime.
const LONG_RENDER: usize = 100;

/// Counts calls in the metrics of a catalog.
pub struct Meter {
    metrics: Arc<Metrics>,
    /// The digest of the catalog whose items are counted by their index.
    catalog: &'static str,
    /// The indices of the items of that catalog by path, for calls of a catalog that replaced it.
    items: HashMap<&'static str, u32>,
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}

impl Meter {
    /// Makes the observer that counts in `metrics`, which describe a catalog with this digest and these paths of items.
    pub fn new(
        metrics: Arc<Metrics>,
        catalog: &'static str,
        items: impl Iterator<Item = &'static str>,
    ) -> Self {
        Self {
            metrics,
            catalog,
            items: items.zip(0..).collect(),
        }
    }

    /// Returns the latency of each source, in the order of the catalog.
    pub fn latencies(&self) -> Vec<Option<Latency>> {
        self.metrics.latencies()
    }

    /// Renders all metrics.
    ///
    /// # Errors
    ///
    /// If the text cannot be written.
    pub fn render(&self, format: Format, state: ScrapedState) -> Result<String, fmt::Error> {
        self.metrics.render(format, state)
    }

    /// Returns the values of all metrics.
    pub fn values(&self, state: ScrapedState) -> Vec<FamilyValues> {
        self.metrics.values(state)
    }

    /// Whether its text takes longer to render than a worker of the runtime may be occupied.
    pub fn is_long_render(&self) -> bool {
        self.items.len() > LONG_RENDER
    }

    /// Counts a request that was refused before it was a call.
    pub fn refused(&self, code: CallCode) {
        self.metrics.request_refused(code);
    }

    /// Counts a listing.
    pub(crate) fn listed(&self, method: Method, duration: Duration, failed: Option<CallCode>) {
        self.metrics.call_ended(EndedCall {
            tool: None,
            side: Side::Server,
            method,
            outcome: failed.map_or(OutcomeClass::Ok, OutcomeClass::from_code),
            duration,
            result_bytes: 0,
        });
    }

    /// Counts a call that has ended.
    pub(crate) fn record(&self, call: &RecordedCall, end: CallEnd<'_>) {
        let (outcome, result_bytes) = match end {
            CallEnd::Answered {
                result_bytes,
                is_error,
            } => {
                let class = match is_error {
                    true => OutcomeClass::ToolError,
                    false => OutcomeClass::Ok,
                };
                (class, result_bytes as u64)
            }
            CallEnd::Accepted => (OutcomeClass::Ok, 0),
            CallEnd::Failed(error) => (OutcomeClass::from_code(error.code), 0),
            CallEnd::Abandoned => (OutcomeClass::Abandoned, 0),
        };
        let ended = EndedCall {
            tool: call
                .facts()
                .item()
                .and_then(|item| self.index(call.facts(), item)),
            side: Side::Server,
            method: call.method,
            outcome,
            duration: call.elapsed(),
            result_bytes,
        };
        self.metrics.call_ended(ended);
        if let Some(duration) = call.facts().server_time() {
            self.metrics.call_ended(EndedCall {
                side: Side::Client,
                duration,
                ..ended
            });
        }
    }

    /// Counts the request to a server whose call became a job, once the server has answered.
    pub(crate) fn record_late(&self, record: &CallRecord, outcome: OutcomeClass) {
        let Some(duration) = record.server_time() else {
            return;
        };
        self.metrics.call_ended(EndedCall {
            tool: record.item().and_then(|item| self.index(record, item)),
            side: Side::Client,
            method: Method::CallTool,
            outcome,
            duration,
            result_bytes: 0,
        });
    }

    fn index(&self, record: &CallRecord, item: &RecordedItem) -> Option<u32> {
        match record.reviewed()?.catalog == self.catalog {
            true => Some(item.at),
            false => self.items.get(item.path).copied(),
        }
    }
}

impl ChangeObserver for Meter {
    fn observe(&self, change: &Change<'_>) {
        match change {
            Change::Withdrawn { class, .. } | Change::Differs { class, .. } => {
                self.metrics.drift_found(class.as_str(), 1);
            }
            Change::Restored { .. } | Change::SourceDown { .. } | Change::SourceUp { .. } => {}
        }
    }
}
