//! Reads a line of a client: requests and notifications, alone or in a batch. Every problem is reported to the client,
//! without guesses.

use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::envelope::{Envelope, Method};
use crate::{Id, Incoming, Problem, Raw};

/// The maximum number of messages in one batch.
const MAX_BATCH: usize = 100;

/// A line of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientLine {
    /// One message, or a line that is answered as a whole.
    One(Incoming),
    /// An array of messages, at least one.
    Batch(Vec<Incoming>),
}

/// Reads a line of a client.
pub fn read_client_line(line: &Bytes) -> ClientLine {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return ClientLine::One(Incoming::problem_without_id(not_json(&error))),
    };
    if text.starts_with('[') {
        batch(line, text)
    } else {
        ClientLine::One(message(line, text))
    }
}

fn not_json(error: &dyn fmt::Display) -> Problem {
    Problem::unreadable(format!("the message is not JSON: {error}"))
}

fn batch(line: &Bytes, text: &str) -> ClientLine {
    let refused = |problem| ClientLine::One(Incoming::problem_without_id(problem));
    match serde_json::from_str(text) {
        Err(error) => refused(not_json(&error)),
        Ok(Elements { more: true, .. }) => refused(Problem::malformed(format!(
            "the batch has more than {MAX_BATCH} messages"
        ))),
        Ok(Elements { first, .. }) if first.is_empty() => {
            refused(Problem::malformed("the batch is empty"))
        }
        Ok(Elements { first, .. }) => {
            let messages = first.into_iter().map(|item| message(line, item.get()));
            ClientLine::Batch(messages.collect())
        }
    }
}

/// The elements of an array, as many as a batch may have; the others are skipped.
struct Elements<'a> {
    first: Vec<&'a RawValue>,
    more: bool,
}

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementsVisitor;
        impl<'de> Visitor<'de> for ElementsVisitor {
            type Value = Elements<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MAX_BATCH {
                    match items.next_element()? {
                        Some(item) => first.push(item),
                        None => return Ok(Elements { first, more: false }),
                    }
                }
                let mut more = false;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    more = true;
                }
                Ok(Elements { first, more })
            }
        }
        deserializer.deserialize_seq(ElementsVisitor)
    }
}

/// Reads `text`, a part of `line`, as one message.
fn message(line: &Bytes, text: &str) -> Incoming {
    let envelope = match Envelope::read(text) {
        Ok(envelope) => envelope,
        // JSON of another kind, or an object with a name that cannot be decoded, is not a syntax error.
        Err(error) => {
            return Incoming::problem_without_id(match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => Problem::malformed(format!("not a JSON-RPC message: {error}")),
                Err(error) => not_json(&error),
            });
        }
    };
    if let Some(name) = envelope.first_duplicate {
        return Incoming::problem_without_id(Problem::malformed(format!(
            "the message has `{name}` twice"
        )));
    }
    let id = envelope.id.map(|id| Id::parse(id.get()));
    let invalid = |id: Option<Id>, reason: &'static str| Incoming::Invalid {
        id,
        problem: Problem::malformed(reason),
    };
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return invalid(id.flatten(), "`jsonrpc` must be \"2.0\"");
    }
    let raw = |value| Raw::new(line, value);
    let params = envelope.non_null_params().map(raw);
    let method = match envelope.method {
        Some(Method::Name(name)) => name.into_owned(),
        Some(Method::Other) => return invalid(id.flatten(), "`method` must be a string"),
        None => {
            let id = id.flatten();
            return match (envelope.result, envelope.error) {
                (_, Some(error)) => Incoming::Response {
                    id,
                    outcome: Err(raw(error)),
                },
                (Some(result), None) => Incoming::Response {
                    id,
                    outcome: Ok(raw(result)),
                },
                (None, None) => invalid(id, "`method` is missing"),
            };
        }
    };
    match id {
        None => Incoming::Notification { method, params },
        Some(None) => invalid(None, "`id` must be a string or an integer of at most 1 kB"),
        Some(id) if method.starts_with("notifications/") => {
            invalid(id, "a notification has no `id`")
        }
        Some(Some(id)) => Incoming::Request { id, method, params },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> ClientLine {
        read_client_line(&Bytes::copy_from_slice(text))
    }

    fn single(text: &str) -> Incoming {
        match read(text.as_bytes()) {
            ClientLine::One(message) => message,
            ClientLine::Batch(_) => panic!("{text}"),
        }
    }

    fn malformed(text: &str) -> Option<Id> {
        match single(text) {
            Incoming::Invalid {
                id,
                problem: Problem::Malformed(_),
            } => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn client_envelope_that_is_invalid_is_refused() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#,
            "x".repeat(1 << 20)
        );
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1e2,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"\ud800":1}"#,
            "1",
            "\"text\"",
            "null",
            &long,
        ] {
            assert_eq!(malformed(text), None, "{text:.80}");
        }
        for text in [
            r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#,
            r#"{"id":7,"method":"m"}"#,
            r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":1}"#,
        ] {
            assert_eq!(malformed(text), Some(Id::Integer(7)), "{text}");
        }
    }

    #[test]
    fn client_notification_with_an_id_is_refused() {
        let text = r#"{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}"#;
        assert_eq!(malformed(text), Some(Id::Integer(7)));
        let text = r#"{"jsonrpc":"2.0","method":"tools/call"}"#;
        assert!(matches!(single(text), Incoming::Notification { .. }));
    }

    #[test]
    fn client_params_keep_their_bytes() {
        let params = |text: &str| match single(text) {
            Incoming::Request { params, .. } | Incoming::Notification { params, .. } => {
                params.map(|raw| String::from_utf8(raw.into_bytes().to_vec()).unwrap())
            }
            other => panic!("{other:?}"),
        };
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params": {"a": 1.00 } }"#;
        assert_eq!(params(text).as_deref(), Some(r#"{"a": 1.00 }"#));
        let text = r#"{"jsonrpc":"2.0","method":"m","params":[]}"#;
        assert_eq!(params(text).as_deref(), Some("[]"));
        let text = r#"{"jsonrpc":"2.0","method":"m","params":null}"#;
        assert_eq!(params(text), None);
    }

    #[test]
    fn client_answer_is_distinguished_from_a_request() {
        let text = r#"{"jsonrpc":"2.0","id":"a","result":{}}"#;
        let Incoming::Response { id, outcome } = single(text) else {
            panic!("an answer");
        };
        assert_eq!(id, Some(Id::Text("a".to_owned())));
        assert_eq!(&outcome.unwrap().into_bytes()[..], b"{}");
    }

    #[test]
    fn client_line_that_is_not_json_or_an_invalid_batch_is_refused() {
        let problem = |text: &[u8]| match read(text) {
            ClientLine::One(Incoming::Invalid { id: None, problem }) => problem,
            other => panic!("{other:?}"),
        };
        for text in [
            &b"nope"[..],
            b"{",
            b"{}{}",
            b"[1,",
            b"\xff",
            b"{\"a\":NaN}",
            b"{\"id\":7,\"method\":",
        ] {
            assert!(matches!(problem(text), Problem::Unreadable(_)), "{text:?}");
        }
        assert_eq!(problem(b"[]"), Problem::malformed("the batch is empty"));
        let many = format!("[{}1]", "1,".repeat(MAX_BATCH));
        assert!(matches!(problem(many.as_bytes()), Problem::Malformed(_)));
        let broken = format!("[{}x]", "1,".repeat(MAX_BATCH));
        assert!(matches!(problem(broken.as_bytes()), Problem::Unreadable(_)));
        let most = format!("[{}1]", "1,".repeat(MAX_BATCH - 1));
        assert!(matches!(read(most.as_bytes()), ClientLine::Batch(_)));
        let ClientLine::Batch(messages) = read(b"[1,{}]") else {
            panic!("a batch");
        };
        assert_eq!(messages.len(), 2);
    }
}
