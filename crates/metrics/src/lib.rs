//! The metrics of a broker. [`Metrics`] counts calls in arrays that are indexed by the tools of the catalog, so that a
//! call costs a few additions: it takes no mutex, allocates no memory and makes no text of a label. [`Metrics::render`]
//! reads the arrays, and the state that the broker gives it, when a client scrapes. Pure: no IO, no async.
//!
//! The number of series has a bound that callers and servers cannot raise: [`MAX_TOOL_SERIES`] for each tool of the
//! catalog, and [`MAX_OTHER_SERIES`] for everything else.

mod description;
mod ended_call;
mod families;
mod histogram;
mod labels;
mod latency;
mod metrics;
mod render;
mod scraped_state;

pub use description::{CatalogDescription, SourceDescription, ToolDescription, Transport};
pub use ended_call::{EndedCall, Method, OutcomeClass, Side};
pub use families::{FAMILIES, Family, FamilyKind};
pub use histogram::Reading;
pub use labels::{MAX_SOURCES, OTHER, UNKNOWN};
pub use latency::Latency;
pub use metrics::{BYTES_PER_TOKEN, DRIFT_CLASSES, MAX_OTHER_SERIES, MAX_TOOL_SERIES, Metrics};
pub use render::{FamilyValues, Format, Number, Point, PointValue};
pub use scraped_state::{
    AuditState, DroppedState, MemoryState, ScrapedSource, ScrapedState, SourceState,
};
