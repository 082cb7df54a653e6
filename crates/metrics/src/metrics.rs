//! The counters of a broker, and what the path of a call adds to them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use broker_model::CallCode;

use crate::description::{CatalogDescription, Transport};
use crate::ended_call::{EndedCall, Method, OutcomeClass, Side};
use crate::histogram::{Durations, OPERATION_BOUNDS};
use crate::labels::{Labels, MAX_SOURCES, OTHER};

/// The maximum number of series of a tool: on each side 15 buckets, a sum and a count; four outcomes, bytes and tokens.
pub const MAX_TOOL_SERIES: usize = 40;
const _: () =
    assert!(2 * (OPERATION_BOUNDS.len() + 3) + OutcomeClass::COUNTED.len() + 2 == MAX_TOOL_SERIES);
/// The maximum number of series that do not belong to a tool.
pub const MAX_OTHER_SERIES: usize = 2000;
/// The bytes of a result that are estimated as one token.
pub const BYTES_PER_TOKEN: u64 = 4;
/// The drift classes that are counted; the last one is for others.
pub const DRIFT_CLASSES: [&str; 11] = [
    "same",
    "equivalent",
    "text",
    "compatible",
    "unknown",
    "breaking",
    "security",
    "gone",
    "added",
    "unchecked",
    OTHER,
];

/// The number of codes, and one place for others.
const CODES: usize = CallCode::ALL.len() + 1;

/// The metrics of a broker with one catalog. Every method for the path of a call is wait-free and allocates no memory.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) version: Box<str>,
    pub(crate) digest: Box<str>,
    pub(crate) surface: Transport,
    pub(crate) labels: Labels,
    pub(crate) tools: Box<[ToolCounters]>,
    /// The sources up to [`MAX_SOURCES`], then a place for further ones and for calls without a source.
    pub(crate) sources: Box<[SourceCounters]>,
    /// Operations without an item, by method.
    pub(crate) methods: Box<[Sides]>,
    /// Outcomes of calls whose item is not known.
    pub(crate) unknown: [AtomicU64; OutcomeClass::COUNTED.len()],
    pub(crate) refused: [AtomicU64; CODES],
    pub(crate) failed: [AtomicU64; CODES],
    pub(crate) drift: [AtomicU64; DRIFT_CLASSES.len()],
}

/// The counters of a tool.
#[derive(Debug, Default)]
pub(crate) struct ToolCounters {
    pub(crate) sides: Sides,
    pub(crate) outcomes: [AtomicU64; OutcomeClass::COUNTED.len()],
    pub(crate) result_bytes: AtomicU64,
}

/// The durations of an operation on both sides of the broker.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    pub(crate) server: Durations,
    pub(crate) client: Durations,
}

impl Sides {
    fn add(&self, side: Side, duration: Duration) {
        let durations = match side {
            Side::Server => &self.server,
            Side::Client => &self.client,
        };
        durations.add(&OPERATION_BOUNDS, duration);
    }
}

/// The counters of a source.
#[derive(Debug, Default)]
pub(crate) struct SourceCounters {
    pub(crate) abandoned: AtomicU64,
}

impl Metrics {
    /// Makes the metrics of a catalog, all zero.
    pub fn new(catalog: &CatalogDescription<'_>) -> Self {
        let zeros = |count: usize| 0..count;
        let sources = catalog.sources.len().min(MAX_SOURCES) + 1;
        Self {
            version: catalog.version.into(),
            digest: catalog.digest.into(),
            surface: catalog.surface,
            labels: Labels::new(catalog),
            tools: zeros(catalog.tools.len())
                .map(|_| ToolCounters::default())
                .collect(),
            sources: zeros(sources).map(|_| SourceCounters::default()).collect(),
            methods: zeros(Method::ALL.len()).map(|_| Sides::default()).collect(),
            unknown: Default::default(),
            refused: [const { AtomicU64::new(0) }; CODES],
            failed: [const { AtomicU64::new(0) }; CODES],
            drift: Default::default(),
        }
    }

    /// Counts a call or another request that has ended.
    pub fn call_ended(&self, call: EndedCall) {
        let tool = call.tool.and_then(|tool| self.tool(tool, call.method));
        match tool {
            Some((at, counters)) => {
                counters.sides.add(call.side, call.duration);
                if call.side == Side::Server {
                    self.outcome(&counters.outcomes, self.source_of(at), call.outcome);
                    add(&counters.result_bytes, call.result_bytes);
                }
            }
            None => {
                if let Some(sides) = self.methods.get(call.method as usize) {
                    sides.add(call.side, call.duration);
                }
                if call.side == Side::Server && call.method.calls_an_item() {
                    self.outcome(&self.unknown, usize::MAX, call.outcome);
                }
            }
        }
        if call.side == Side::Server {
            self.code(call.outcome);
        }
    }

    /// Counts a request that was refused before it was a call, such as one without a credential.
    pub fn request_refused(&self, code: CallCode) {
        self.code(OutcomeClass::Refused(Some(code)));
    }

    /// Counts the findings of a comparison, by the name of their drift class.
    pub fn drift_found(&self, class: &str, findings: u64) {
        let mut classes = DRIFT_CLASSES.iter();
        let at = classes.position(|known| *known == class);
        add(&self.drift[at.unwrap_or(DRIFT_CLASSES.len() - 1)], findings);
    }

    /// Returns the counters of a tool if this method calls it. A completion for a prompt is not a call of the prompt.
    fn tool(&self, tool: u32, method: Method) -> Option<(usize, &ToolCounters)> {
        let at = tool as usize;
        let is_called = self.labels.tools.get(at)?.method == method;
        is_called.then_some((at, self.tools.get(at)?))
    }

    fn source_of(&self, tool: usize) -> usize {
        let labels = self.labels.tools.get(tool);
        labels.map_or(usize::MAX, |labels| labels.source)
    }

    /// Returns the counters of a source. Further sources share the last ones.
    fn source(&self, source: usize) -> Option<&SourceCounters> {
        self.sources.get(source.min(self.sources.len() - 1))
    }

    fn outcome(
        &self,
        outcomes: &[AtomicU64; OutcomeClass::COUNTED.len()],
        source: usize,
        outcome: OutcomeClass,
    ) {
        match outcome.place() {
            Some(place) => add(&outcomes[place], 1),
            None => {
                if let Some(source) = self.source(source) {
                    add(&source.abandoned, 1);
                }
            }
        }
    }

    fn code(&self, outcome: OutcomeClass) {
        let place = |code: Option<CallCode>| code.map_or(CODES - 1, |code| code as usize);
        match outcome {
            OutcomeClass::Refused(code) => add(&self.refused[place(code)], 1),
            OutcomeClass::Failed(code) => add(&self.failed[place(code)], 1),
            OutcomeClass::Ok | OutcomeClass::ToolError | OutcomeClass::Abandoned => {}
        }
    }
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
