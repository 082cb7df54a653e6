//! The record of a call. [`Recorded`] is the outermost layer of a broker: it hands the record of each call to its
//! observers, once, when the call has ended or its caller has left. Observers are sinks such as the log, the metrics, and
//! the audit log, for which a call waits before it is sent. An observer that wants no record costs one branch.

mod audit;
mod audited_call;
mod call_log;
mod export;
mod list_changed_exec;
mod meter;
mod observers;
mod recorded;
mod recorded_call;
mod scraped;
mod shown_args;
mod trace;
mod undecided_reads;

pub use broker_audit::AuditStatus;

pub use audit::{Audit, AuditPolicy, Intent};
pub use call_log::CallLog;
pub use export::{Dropped, Export, ReadMetrics};
pub use list_changed_exec::{Announcer, Changed, ListChangedExec, name_of};
pub use meter::Meter;
pub use observers::{Observers, Sinks};
pub use recorded::Recorded;
pub use recorded_call::{CallEnd, RecordSink, RecordedCall};
pub use trace::{
    CONVENTIONS, CallSpans, ClientSpan, Propagators, Sampling, SpanContext, SpanSink, TraceParent,
    Tracer,
};
pub use undecided_reads::UndecidedReads;
