//! Why a call has no result of a server.

use broker_core::CoreError;
use broker_wire::RpcError;

use crate::reply::Text;

/// Why a call has no result of a server.
pub(super) enum CallError {
    /// The broker refused it: the refusal is a tool result.
    Refused(Box<CoreError>),
    /// The server answered with this error.
    Server(RpcError),
    /// It became a job; the answer has the form of the dialect.
    Accepted(Box<Text>),
}

impl From<Box<CoreError>> for CallError {
    fn from(error: Box<CoreError>) -> Self {
        Self::Refused(error)
    }
}
