//! A call as a caller gives it to a session: its target, its arguments and its timeout.

use std::time::Duration;

use broker_memory::Account;

use crate::events::CallEvents;
use crate::right::CallRight;
use crate::trace_headers::TraceHeaders;

/// The request that a call makes of a server. Arguments and parameters are one JSON object each, already checked.
#[derive(Clone, Copy, Debug)]
pub enum ServerOperation<'a> {
    /// `tools/call`.
    CallTool {
        /// The server's name of the tool.
        name: &'a str,
        /// Its arguments.
        args: &'a [u8],
    },
    /// `prompts/get`.
    GetPrompt {
        /// The server's name of the prompt.
        name: &'a str,
        /// Its arguments.
        args: &'a [u8],
    },
    /// `resources/read`.
    ReadResource {
        /// The URI.
        uri: &'a str,
    },
    /// `completion/complete`.
    Complete {
        /// Its parameters.
        params: &'a [u8],
    },
}

/// A call, as it is sent to a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerCall<'a> {
    /// The request.
    pub operation: ServerOperation<'a>,
    /// Members for `_meta` of the request, as one JSON object. The broker's own members are not among them.
    pub meta: Option<&'a str>,
    /// The trace context for the headers of a request over HTTP. `meta` has it for every server.
    pub trace: Option<&'a TraceHeaders>,
    /// Takes the events of the call that its caller wants.
    pub events: Option<&'a CallEvents>,
    /// The right of the caller to make it; `None` if it does not end.
    pub right: Option<&'a CallRight<'a>>,
    /// The account of the caller, whose share of the source the call uses; `None` for a program's only caller.
    pub account: Option<&'a Account>,
}

impl<'a> ServerCall<'a> {
    /// Returns a call of a tool, without members for `_meta` and without events.
    #[inline]
    pub const fn new(name: &'a str, args: &'a [u8]) -> Self {
        Self {
            operation: ServerOperation::CallTool { name, args },
            meta: None,
            trace: None,
            events: None,
            right: None,
            account: None,
        }
    }
}

/// The time of a call, from now on. In milliseconds, rounded up, since every layer of the future of a call
/// holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    first: u32,
    after_progress: u32,
    total: u32,
}

impl CallTime {
    /// Makes a timeout. `first` is the maximum time for the result or the first progress, `after_progress` the maximum
    /// time for the result or more progress after each progress, `total` the maximum time in all.
    #[inline]
    pub fn new(first: Duration, after_progress: Duration, total: Duration) -> Self {
        Self {
            first: millis(first),
            after_progress: millis(after_progress),
            total: millis(total),
        }
    }

    /// Returns the maximum time for the result, or for the first progress.
    #[inline]
    pub const fn first(self) -> Duration {
        Duration::from_millis(self.first as u64)
    }

    /// Returns the maximum time for the result, or for more progress, after each progress.
    pub const fn after_progress(self) -> Duration {
        Duration::from_millis(self.after_progress as u64)
    }

    /// Returns the maximum time in all.
    pub const fn total(self) -> Duration {
        Duration::from_millis(self.total as u64)
    }

    /// Returns the rest after `passed`.
    #[must_use]
    #[inline]
    pub fn less(self, passed: Duration) -> Self {
        let less = |time: Duration| time.saturating_sub(passed);
        Self::new(
            less(self.first()),
            self.after_progress(),
            less(self.total()),
        )
    }
}

impl From<Duration> for CallTime {
    /// Makes a time that progress does not extend.
    fn from(time: Duration) -> Self {
        Self::new(time, time, time)
    }
}

/// Rounds up; the maximum is 49 days.
#[inline]
fn millis(time: Duration) -> u32 {
    // `as_nanos` would divide 128 bits.
    let parts = u64::from(time.subsec_nanos().div_ceil(1_000_000));
    let millis = time.as_secs().saturating_mul(1_000).saturating_add(parts);
    u32::try_from(millis).unwrap_or(u32::MAX)
}
