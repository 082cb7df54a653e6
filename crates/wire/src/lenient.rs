//! Reads a line of a server, leniently: missing or repeated members, text that is not UTF-8 and output
//! that is not a message are accepted.

use broker_memory::Account;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::batch::Batch;
use crate::envelope::Envelope;
use crate::framer::Peer;
use crate::repair::repaired;
use crate::scan::{HeadScan, is_too_deep};
use crate::{Id, Incoming, Problem, Raw};

#[cfg(test)]
mod tests;

/// A line of a server.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerLine {
    /// Its messages.
    pub messages: Messages,
    /// Whether the text had invalid UTF-8 that was replaced.
    pub repaired: bool,
}

/// One message, or a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Messages {
    /// The usual line.
    One(Incoming),
    /// A batch, to be walked.
    Many(Batch),
}

/// Reads a line of a server. Invalid UTF-8 is replaced; the copy is charged to `account`.
pub fn read_server_line(line: Bytes, account: &Account) -> ServerLine {
    let Ok(text) = std::str::from_utf8(&line) else {
        let messages = match repaired(&line, account) {
            Ok(text) => read_server_line(text, account).messages,
            Err(_) => Messages::One(Incoming::Invalid {
                id: answered(&line),
                problem: Problem::OutOfMemory,
            }),
        };
        return ServerLine {
            messages,
            repaired: true,
        };
    };
    let messages = if text.starts_with('[') {
        Messages::Many(Batch::new(line))
    } else {
        Messages::One(read(&line, text))
    };
    ServerLine {
        messages,
        repaired: false,
    }
}

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
    let raw = |value: &RawValue| Raw::of(line, value);
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
fn answered(line: &[u8]) -> Option<Id> {
    let mut scan = HeadScan::default();
    scan.feed(line);
    scan.id(Peer::Server)
}
