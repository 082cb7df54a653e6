//! The error of the public client.

use std::fmt;
use std::num::NonZeroU16;

use broker_model::SourceCause;
use broker_model::url::UrlError;
use serde_json::Value;

use crate::failure::{CallFailure, SourceFailure};

/// Why a request of an [`HttpClient`](super::HttpClient) failed. Texts of the server are escaped, and the token is
/// masked in them.
#[derive(Clone, Debug)]
pub struct ClientError {
    kind: ClientErrorKind,
    message: String,
    maybe_executed: bool,
    /// Whether the server refused the request only because it ended the session.
    refused_with_session: bool,
}

/// The kind of a [`ClientError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The endpoint is not an `http` or `https` URL, or the token cannot be sent to it.
    Endpoint,
    /// `list_tools` or `call_tool` was called before `initialize`.
    NotInitialized,
    /// `initialize` was called while the client is initialized.
    AlreadyInitialized,
    /// A method other than `initialize` was called after `close`, or the client was closed meanwhile.
    Closed,
    /// The arguments of a call are not a JSON object.
    Arguments,
    /// The server opened no session, and `require_session(true)` was set.
    NoSession,
    /// The server ended the session, and either a new one too, or the request may have been executed.
    SessionEnded,
    /// The server cannot be reached, or the connection broke.
    Unreachable {
        /// Whether the server may have executed the request.
        maybe_executed: bool,
    },
    /// The server refused the token: HTTP status 401 or 403.
    Unauthorized,
    /// The server answered with another HTTP error.
    Http {
        /// The status.
        status: u16,
    },
    /// The handshake failed: the server speaks no known revision, or refused it.
    Handshake,
    /// The server answered with a JSON-RPC error.
    Rpc {
        /// Its code.
        code: i64,
        /// The whole error object.
        error: Value,
    },
    /// The tool failed: its result has `isError`.
    Tool {
        /// The result.
        result: Value,
    },
    /// The answer of the server breaks the protocol, or is too large.
    Protocol,
    /// The time of the request has passed.
    Timeout,
    /// Too many calls are under way.
    Overloaded,
}

impl ClientError {
    /// Makes an error of an unsent request.
    pub(super) fn new(kind: ClientErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            maybe_executed: false,
            refused_with_session: false,
        }
    }

    /// Returns the same error of a request that the server may have executed, or certainly has not.
    #[must_use]
    pub(super) fn maybe_executed_is(mut self, maybe: bool) -> Self {
        self.maybe_executed = maybe;
        if let ClientErrorKind::Unreachable { maybe_executed } = &mut self.kind {
            *maybe_executed = maybe;
        }
        self
    }

    /// Returns its kind.
    pub const fn kind(&self) -> &ClientErrorKind {
        &self.kind
    }

    /// Whether the server may have executed the request. It is false only if certainly no byte of the request was sent,
    /// or the server refused it together with the session.
    pub const fn maybe_executed(&self) -> bool {
        self.maybe_executed
    }

    /// Whether the request may be sent again in another session: it was not executed.
    pub(super) const fn is_refused_with_session(&self) -> bool {
        self.refused_with_session
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClientError {}

impl From<UrlError> for ClientError {
    fn from(error: UrlError) -> Self {
        let message = format!("the endpoint is refused: {error}");
        Self::new(ClientErrorKind::Endpoint, message)
    }
}

impl From<SourceFailure> for ClientError {
    fn from(failure: SourceFailure) -> Self {
        // Listings have no effect, so they may be sent again.
        let refused_with_session = failure.cause == SourceCause::SessionEnded;
        let maybe_executed = !failure.is_unsent;
        let kind = kind_of(
            failure.cause,
            maybe_executed,
            failure.http_status.map(NonZeroU16::get),
        );
        Self {
            maybe_executed,
            refused_with_session,
            ..Self::new(kind, failure.message)
        }
    }
}

/// Returns the kind of a failure of a session.
fn kind_of(cause: SourceCause, maybe_executed: bool, status: Option<u16>) -> ClientErrorKind {
    let without_status = match cause {
        SourceCause::NeedsAuth => return ClientErrorKind::Unauthorized,
        SourceCause::SessionEnded => return ClientErrorKind::SessionEnded,
        SourceCause::HandshakeFailed | SourceCause::StartupTimeout => ClientErrorKind::Handshake,
        SourceCause::Protocol | SourceCause::ListFailed | SourceCause::ListInvalid => {
            ClientErrorKind::Protocol
        }
        SourceCause::Stopped => ClientErrorKind::Closed,
        SourceCause::SpawnNotFound
        | SourceCause::SpawnDenied
        | SourceCause::SpawnFormat
        | SourceCause::SpawnFailed
        | SourceCause::ExitBeforeReady
        | SourceCause::Unreachable
        | SourceCause::TlsFailed
        | SourceCause::ProxyInvalid
        | SourceCause::EnvMissing
        | SourceCause::Exited
        | SourceCause::StdinStalled
        | SourceCause::Hung
        | SourceCause::RecheckPending
        | SourceCause::DriftSource
        | SourceCause::LockStale => ClientErrorKind::Unreachable { maybe_executed },
    };
    status.map_or(without_status, |status| ClientErrorKind::Http { status })
}

impl From<CallFailure> for ClientError {
    fn from(failure: CallFailure) -> Self {
        let message = failure.to_string();
        let maybe_executed = failure.maybe_executed();
        let kind = match failure {
            CallFailure::Overloaded(_) => ClientErrorKind::Overloaded,
            CallFailure::Timeout { .. } => ClientErrorKind::Timeout,
            CallFailure::Exited {
                failure,
                maybe_executed,
            } => kind_of(failure.cause, maybe_executed, None),
            CallFailure::Unavailable { failure, .. } => kind_of(failure.cause, false, None),
            CallFailure::Rpc { error, code, .. } => ClientErrorKind::Rpc {
                code,
                error: serde_json::from_str(error.get()).unwrap_or_default(),
            },
            CallFailure::Http { status, .. } => ClientErrorKind::Http { status },
            CallFailure::Protocol { .. }
            | CallFailure::OutputTooLarge { .. }
            | CallFailure::Task(_)
            | CallFailure::OutOfMemory => ClientErrorKind::Protocol,
            CallFailure::Stopping => ClientErrorKind::Closed,
        };
        Self {
            maybe_executed,
            refused_with_session: kind == ClientErrorKind::SessionEnded && !maybe_executed,
            ..Self::new(kind, message)
        }
    }
}
