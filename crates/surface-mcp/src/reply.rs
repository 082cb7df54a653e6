//! Answers to requests, and refusals of lines that are not messages.

use broker_wire::protocol::{INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR};
pub(super) use broker_wire::write::Text;
use broker_wire::write::{Outgoing, error, result};
use broker_wire::{Id, Problem, RpcError};

/// A server-defined JSON-RPC code: there is no memory for the line. The error object is `data`.
pub(super) const NO_ROOM: i64 = -32000;

/// An answer: the result as JSON, or an error.
pub(super) type Answer = Result<Text, RpcError>;

/// The answer to a request.
pub(super) fn answer(id: &Id, answer: Answer) -> Outgoing {
    match answer {
        Ok(text) => result(id, text),
        Err(refused) => error(Some(id), refused),
    }
}

/// Returns the error of a request that made the broker panic. The panic hook has logged its
/// message.
pub(super) fn failed() -> RpcError {
    RpcError::new(INTERNAL_ERROR, "the broker failed; its log says more")
}

/// The error for a text that is not a message.
pub(super) fn refusal(problem: Problem) -> RpcError {
    match problem {
        Problem::Unreadable(reason) => RpcError::new(PARSE_ERROR, reason),
        Problem::Malformed(reason) => RpcError::new(INVALID_REQUEST, reason),
        // Lines of a client are read strictly: noise and missing memory for a copy do not occur.
        Problem::Noise | Problem::OutOfMemory => {
            RpcError::new(INVALID_REQUEST, "not a JSON-RPC message")
        }
    }
}
