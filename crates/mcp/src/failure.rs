//! Why a source is not ready, why a call failed, and why a request to a server has no result. Texts of sources and calls
//! are safe to show: the code that creates them redacts secrets and escapes characters.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU16;
use std::time::Duration;

use broker_model::SourceCause;
use broker_process::{ExitReport, SpawnError};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::overload::Overload;
use crate::tasks::RemoteTask;

/// Why a source is not ready; all pending calls get the same reason.
#[derive(Clone, Debug)]
pub struct SourceFailure {
    /// The stable cause.
    pub cause: SourceCause,
    /// The event: a lowercase fragment.
    pub message: String,
    /// The exit of the process, if it ended.
    pub exit: Option<ExitReport>,
    /// The last stderr lines, redacted and printable.
    pub stderr: Vec<String>,
    /// Whether `message` contains the last line of `stderr`.
    pub quotes_stderr: bool,
    /// Whether callers may read `message`: it then has only words of the broker and of the config.
    pub is_public: bool,
    /// Whether a signal had stopped the process, like one that reads a terminal from the background.
    pub process_stopped: bool,
    /// Whether certainly no byte of the failed request was sent.
    pub is_unsent: bool,
    /// The pause that a server over HTTP asked for.
    pub retry_after: Option<Duration>,
    /// The status of an HTTP server's refusal of the handshake.
    pub http_status: Option<NonZeroU16>,
    /// A text of the server, redacted and printable. Over HTTP it is the demands in the server's refusal of the
    /// credentials. Over stdio it is the first line of the start that is not a message. Only `doctor`, `lock` and the
    /// log show it.
    pub said: Option<Box<str>>,
}

/// Why a call failed. `maybe_executed` is false only if certainly no byte of the call was written.
#[derive(Clone, Debug)]
pub enum CallFailure {
    /// The source takes no more calls of the caller; the call was not sent.
    Overloaded(Overload),
    /// The call's timeout has passed.
    Timeout {
        /// The timeout, or the time in all that passed if progress extended it.
        after: Duration,
        /// Whether progress extended the timeout.
        extended: bool,
        /// Whether the server may have executed it.
        maybe_executed: bool,
    },
    /// The process ended, or the connection to it.
    Exited {
        /// The reason.
        failure: SourceFailure,
        /// Whether the server may have executed it.
        maybe_executed: bool,
    },
    /// The server answered with a JSON-RPC error.
    Rpc {
        /// The whole error object, redacted, otherwise as sent.
        error: Box<RawValue>,
        /// Its code.
        code: i64,
        /// Its message, redacted and printable.
        message: String,
    },
    /// The server's answer breaks the protocol.
    Protocol {
        /// How.
        message: String,
        /// Whether the server may have executed it.
        maybe_executed: bool,
    },
    /// The server, or a proxy in front of it, answered the call with an HTTP error.
    Http {
        /// The status.
        status: u16,
        /// Whether the server may have executed it.
        maybe_executed: bool,
    },
    /// The server's answer is longer than the line limit.
    OutputTooLarge {
        /// The line limit, in bytes.
        limit: usize,
    },
    /// The memory budget has no room for the server's answer.
    OutOfMemory,
    /// The source is not ready; the call was not sent.
    Unavailable {
        /// Why.
        failure: SourceFailure,
        /// When to retry, if the source restarts by itself.
        retry_after: Option<Duration>,
    },
    /// The source is being stopped; the call was not sent.
    Stopping,
    /// The server executes the call as this task, and the session cannot tell its result: it has not asked for it, or it has
    /// ended.
    Task(Box<RemoteTask>),
}

impl CallFailure {
    /// Whether the source failed, rather than this call: a result that is too large, an HTTP error about the call and a
    /// full queue say nothing about the next call.
    pub(crate) const fn is_of_source(&self) -> bool {
        match self {
            Self::Timeout { .. }
            | Self::Exited { .. }
            | Self::Protocol { .. }
            | Self::Unavailable { .. } => true,
            Self::Http { status, .. } => *status >= 500,
            Self::Rpc { .. }
            | Self::Overloaded(_)
            | Self::OutputTooLarge { .. }
            | Self::OutOfMemory
            | Self::Task(_)
            | Self::Stopping => false,
        }
    }

    /// Whether the server may have executed the call.
    pub fn maybe_executed(&self) -> bool {
        match self {
            Self::Timeout { maybe_executed, .. }
            | Self::Exited { maybe_executed, .. }
            | Self::Http { maybe_executed, .. }
            | Self::Protocol { maybe_executed, .. } => *maybe_executed,
            Self::Rpc { .. } | Self::OutputTooLarge { .. } | Self::OutOfMemory | Self::Task(_) => {
                true
            }
            Self::Overloaded(_) | Self::Unavailable { .. } | Self::Stopping => false,
        }
    }
}

impl SourceFailure {
    /// Makes a failure without a process behind it.
    pub fn new(cause: SourceCause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            exit: None,
            stderr: Vec::new(),
            quotes_stderr: false,
            is_public: false,
            process_stopped: false,
            is_unsent: false,
            retry_after: None,
            http_status: None,
            said: None,
        }
    }

    /// Returns the remedy for operators. A failure of TLS has the one that fits its reason.
    pub fn remedy(&self) -> &'static str {
        let of_tls = match self.cause == SourceCause::TlsFailed {
            true => crate::http::tls_remedy(&self.message),
            false => None,
        };
        of_tls.unwrap_or(self.cause.remedy())
    }

    /// Returns the same failure, whose message callers may read.
    #[must_use]
    pub const fn public(mut self) -> Self {
        self.is_public = true;
        self
    }
}

impl fmt::Display for SourceFailure {
    /// Writes the message, and the text of the server, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.said {
            Some(said) => write!(f, "; {said}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SourceFailure {}

impl From<SpawnError> for SourceFailure {
    fn from(error: SpawnError) -> Self {
        Self::new(error.cause, error.message)
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded(overload) => write!(f, "{overload}"),
            Self::Timeout { after, .. } => write!(f, "no answer within {} s", after.as_secs_f64()),
            Self::Exited { failure, .. } | Self::Unavailable { failure, .. } => failure.fmt(f),
            Self::Rpc { code, message, .. } => {
                write!(f, "the server answered with error {code}: {message}")
            }
            Self::Protocol { message, .. } => f.write_str(message),
            Self::Http { status, .. } => write!(f, "the server answered with HTTP status {status}"),
            Self::OutputTooLarge { limit } => {
                write!(f, "the server's answer is longer than {limit} bytes")
            }
            Self::OutOfMemory => f.write_str("the server's answer does not fit into memory"),
            Self::Stopping => f.write_str("the source is being stopped"),
            Self::Task(_) => f.write_str("the server executes the call as a task"),
        }
    }
}

impl std::error::Error for CallFailure {}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// No more calls of the caller are taken.
    Overloaded(Overload),
    /// The timeout has passed.
    Timeout {
        begun: bool,
        /// The time in all, if progress extended the timeout.
        extended: Option<Duration>,
    },
    /// The connection has ended.
    Gone { failure: SourceFailure, begun: bool },
    /// The server answered with this raw error.
    Error(Bytes),
    /// The answer cannot be used.
    Broken(Cow<'static, str>),
    /// The answer is over the limit.
    TooLarge,
    /// The memory budget has no room for the answer.
    OutOfMemory,
    /// The server answered with an HTTP error, or asked for a pause.
    Http(Box<HttpRefusal>),
}

/// A request that a server over HTTP refused.
#[derive(Debug)]
pub(crate) struct HttpRefusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The status and the reason, for logs and messages.
    pub(crate) failure: SourceFailure,
    /// The pause that the server asked for.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the server may have executed the request.
    pub(crate) begun: bool,
    /// The JSON-RPC error in the answer to an opening request.
    pub(crate) rpc_error: Option<Bytes>,
}
