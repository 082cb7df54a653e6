//! The record of a call, and the sinks that take it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use broker_core::{CallRecord, CoreError, Identity, RecordedItem, RequestId, ReviewedVersions};
use broker_metrics::Method;
use tokio::time::Instant;

/// The maximum bytes of a path in a record; a path of an item has at most 512.
pub(crate) const MAX_PATH_BYTES: usize = 2048;

/// Takes the records of calls. It must not block: it runs on the task of the call.
pub trait RecordSink: Send + Sync + 'static {
    /// Whether it wants the record of a call that begins now.
    fn is_enabled(&self) -> bool;

    /// Takes the record of a call that has ended. Called once for each call that began while a sink was enabled.
    fn record(&self, call: &RecordedCall, end: CallEnd<'_>);
}

/// What is known of a call when it ends.
#[derive(Debug)]
pub struct RecordedCall {
    /// The caller.
    pub identity: Identity,
    /// The number of the request in the log.
    pub request_id: RequestId,
    /// The path that the caller named. It may name no item.
    pub path: Cow<'static, str>,
    pub(crate) method: Method,
    pub(crate) trace_id: Option<Box<str>>,
    pub(crate) began: Instant,
    pub(crate) record: Arc<CallRecord>,
}

impl RecordedCall {
    /// Returns the item, if the path named one that exists for the caller.
    pub fn item(&self) -> Option<&RecordedItem> {
        self.record.item().filter(|item| !item.is_denied)
    }

    /// Returns the item that the rules deny to the caller, if the path named one.
    pub fn denied_item(&self) -> Option<&RecordedItem> {
        self.record.item().filter(|item| item.is_denied)
    }

    /// Returns the versions under which the call was decided.
    pub fn reviewed(&self) -> Option<&ReviewedVersions> {
        self.record.reviewed()
    }

    /// Returns the time since the call began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn facts(&self) -> &CallRecord {
        &self.record
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub enum CallEnd<'a> {
    /// It has a result. The result may be an error of the tool.
    Answered {
        /// The bytes of the result.
        result_bytes: usize,
        /// Whether the tool reported an error in it.
        is_error: bool,
    },
    /// It goes on as a job.
    Accepted,
    /// It was refused, or failed.
    Failed(&'a CoreError),
    /// Its caller left before the end.
    Abandoned,
}

impl CallEnd<'_> {
    /// Returns the word for the outcome: `ok`, `tool_error`, `accepted`, the code of an error, or `cancelled`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Answered {
                is_error: false, ..
            } => "ok",
            Self::Answered { is_error: true, .. } => "tool_error",
            Self::Accepted => "accepted",
            Self::Failed(error) => error.code.as_str(),
            Self::Abandoned => "cancelled",
        }
    }
}
