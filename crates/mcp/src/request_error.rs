//! Why a request has no result, over every transport.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;

use crate::failure::SourceFailure;
use crate::overload::Overload;

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
