//! Reads a message of a server, leniently: missing or repeated members, text that is not UTF-8 and output
//! that is not a message are accepted.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::envelope::Envelope;
use crate::scan::{HeadScan, Peer, is_too_deep};
use crate::{Id, Incoming, Problem, Raw};

/// Reads `text`, a part of `line`, as one message.
pub(crate) fn read(line: &Bytes, text: &str) -> Incoming {
    match text.as_bytes().first() {
        Some(b'{') if is_too_deep(text.as_bytes()) => {
            unreadable(text, "the answer nests deeper than 512 levels")
        }
        Some(b'{') => message(line, text),
        _ => Incoming::problem_without_id(Problem::Noise),
    }
}

fn message(line: &Bytes, text: &str) -> Incoming {
    let Ok(mut envelope) = Envelope::read(text) else {
        return unreadable(text, "the answer is not JSON");
    };
    let raw = |value: &RawValue| Raw::new(line, value);
    let given = envelope.id.filter(|id| id.get() != "null");
    let id = given.map(|id| Id::parse(id.get()).unwrap_or_else(|| Id::Other(raw(id))));
    if let Some(method) = envelope.method_name() {
        let params = envelope.non_null_params().map(raw);
        return match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        };
    }
    // Some servers send `"error": null` with a result, or the other way round.
    let is_null = |value: &RawValue| value.get() == "null";
    let error = envelope
        .error
        .filter(|error| !is_null(error) || envelope.result.is_none());
    let result = envelope
        .result
        .filter(|result| !is_null(result) || error.is_none());
    let problem = match (result, error) {
        (Some(result), None) => {
            let outcome = Ok(raw(result));
            return Incoming::Response { id, outcome };
        }
        (None, Some(error)) => {
            let outcome = Err(raw(error));
            return Incoming::Response { id, outcome };
        }
        (Some(_), Some(_)) => Problem::malformed("the answer has both `result` and `error`"),
        (None, None) if envelope.jsonrpc.is_some() && envelope.id.is_some() => {
            Problem::malformed("the answer has neither `result` nor `error`")
        }
        (None, None) => return Incoming::problem_without_id(Problem::Noise),
    };
    Incoming::Invalid { id, problem }
}

/// Returns an unreadable answer, if it names a request of the broker; else noise.
fn unreadable(text: &str, reason: &'static str) -> Incoming {
    let id = answered(text.as_bytes()).filter(|id| id.number().is_some());
    let problem = match id {
        Some(_) => Problem::unreadable(reason),
        None => Problem::Noise,
    };
    Incoming::Invalid { id, problem }
}

/// Returns the id of the request that a line answers, if it can be read.
pub(crate) fn answered(line: &[u8]) -> Option<Id> {
    let mut scan = HeadScan::default();
    scan.feed(line);
    scan.id(Peer::Server)
}
