//! Incoming messages of both sides: only the envelope is read, params and results stay slices of the
//! line.

use std::borrow::Cow;

use crate::{Id, JsonMembers, Raw};

/// One message. Reading it from a client is strict and from a server lenient; see
/// [`read_client_line`](crate::read_client_line) and [`read_server_line`](crate::read_server_line).
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A request. It needs an answer.
    Request {
        /// The id of the answer.
        id: Id,
        /// The method.
        method: String,
        /// A JSON value other than `null`.
        params: Option<Raw>,
    },
    /// A notification. It has no answer.
    Notification {
        /// The method.
        method: String,
        /// A JSON value other than `null`.
        params: Option<Raw>,
    },
    /// An answer to a request.
    Response {
        /// The id of the request; `None` if it is missing or not valid.
        id: Option<Id>,
        /// The result, or the error.
        outcome: Result<Raw, Raw>,
    },
    /// Not a message.
    Invalid {
        /// Its id, if it can be read.
        id: Option<Id>,
        /// The problem.
        problem: Problem,
    },
}

/// Why a text is not a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// Output of a server that was never meant to be a message.
    Noise,
    /// It is not JSON, or nests too deeply; the text names the problem.
    Unreadable(Cow<'static, str>),
    /// It is JSON, but not a message; the text says why.
    Malformed(Cow<'static, str>),
    /// It is not UTF-8, and the memory budget has no room for a repaired copy.
    OutOfMemory,
}

impl Problem {
    pub(crate) fn malformed(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed(reason.into())
    }

    pub(crate) fn unreadable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Unreadable(reason.into())
    }
}

impl Incoming {
    /// Returns the problem of a text without a readable id.
    pub(crate) const fn problem_without_id(problem: Problem) -> Self {
        Self::Invalid { id: None, problem }
    }
}

/// Returns the reason in the params of a `notifications/cancelled`.
pub fn cancel_reason(params: Option<&Raw>) -> Option<String> {
    let members = JsonMembers::parse(params?.bytes()).ok()?;
    serde_json::from_str(members.get("reason")?).ok()
}

/// Returns the request that a `notifications/cancelled` with these params cancels.
pub fn cancelled_request(params: Option<&Raw>) -> Option<Id> {
    let members = JsonMembers::parse(params?.bytes()).ok()?;
    members.get("requestId").and_then(Id::parse)
}
