//! Messages that come in, from either side: as far as the envelope and no further. What is inside stays
//! a slice of the line.

use std::borrow::Cow;

use crate::{Id, Members, Raw};

/// One message. Reading it from a client is strict and from a server lenient; see
/// [`read_client_line`](crate::read_client_line) and [`read_server_line`](crate::read_server_line).
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Wants an answer.
    Request {
        /// The id that the answer has.
        id: Id,
        /// What is asked for.
        method: String,
        /// A JSON value other than `null`.
        params: Option<Raw>,
    },
    /// Wants none.
    Notification {
        /// What it is about.
        method: String,
        /// A JSON value other than `null`.
        params: Option<Raw>,
    },
    /// Answers a request.
    Response {
        /// The id of the request; `None` if there is none, or none that can be an id.
        id: Option<Id>,
        /// The result, or the error.
        outcome: Result<Raw, Raw>,
    },
    /// None of these.
    Invalid {
        /// The id that it has, if that can be read.
        id: Option<Id>,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// Why a text is not a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// Output of a server that was never meant to be a message.
    Noise,
    /// It is not JSON, or nests too deeply; the text says which.
    Unreadable(Cow<'static, str>),
    /// It is JSON, but no message; the text says why.
    Malformed(Cow<'static, str>),
    /// It is not UTF-8, and there is no room in memory for a repaired copy.
    NoRoom,
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
    /// A text without an id that can be read.
    pub(crate) const fn nameless(problem: Problem) -> Self {
        Self::Invalid { id: None, problem }
    }
}

/// The request that a `notifications/cancelled` with these params gives up.
pub fn cancelled_request(params: Option<&Raw>) -> Option<Id> {
    let members = Members::parse(params?.bytes()).ok()?;
    members.get("requestId").and_then(Id::parse)
}
