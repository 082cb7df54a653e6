//! The record of a call. [`Recorded`] is the outermost layer of a broker: it hands the record of each call to its sinks,
//! once, when the call has ended or its caller has left. A sink whose record is not wanted costs one branch.

mod call_log;
mod list_changed_exec;
mod recorded;

pub use call_log::CallLog;
pub use list_changed_exec::{Announcer, Changed, ListChangedExec};
pub use recorded::{CallEnd, RecordSink, Recorded, RecordedCall, Sinks};
