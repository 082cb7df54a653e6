//! Reads one line as JSON-RPC: requests and notifications, alone or in a batch. Judges the envelope
//! and nothing inside `params`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::members::Members;
use super::reply::{INVALID_REQUEST, PARSE_ERROR, RpcError};

/// Longer ids are refused: every request in flight keeps its own.
pub(super) const MAX_ID_BYTES: usize = 1024;
/// The most messages of one batch.
const MAX_BATCH: usize = 100;

/// What names a request: a string or an integer; `1` and `"1"` are two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    /// An integer.
    Integer(i128),
    /// A string.
    Text(String),
}

/// One line.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// One message.
    Single(Message<'a>),
    /// An array of them, at least one.
    Batch(Vec<Message<'a>>),
}

/// One message.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// Wants an answer.
    Request {
        id: Id,
        method: String,
        /// A JSON value.
        params: Option<&'a str>,
    },
    /// Wants none.
    Notification {
        method: String,
        params: Option<&'a str>,
    },
    /// An answer to a request that we never sent.
    Response,
    /// None of these; refused with its id, where that can be read.
    Invalid { id: Option<Id>, error: RpcError },
}

impl Id {
    /// Reads an id; `None` where it is neither string nor integer, or too long.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        if raw.len() > MAX_ID_BYTES {
            return None;
        }
        match serde_json::from_str(raw).ok()? {
            Value::String(text) => Some(Self::Text(text)),
            Value::Number(number) => {
                let signed = number.as_i64().map(i128::from);
                let integer = signed.or_else(|| number.as_u64().map(i128::from))?;
                Some(Self::Integer(integer))
            }
            _ => None,
        }
    }
}

/// As JSON.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Text(text) => Value::from(text.as_str()).fmt(f),
        }
    }
}

impl<'a> Incoming<'a> {
    /// Reads a line; fails where it is not JSON, or where nothing in it can be answered by itself.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, RpcError> {
        let broken = |error: &dyn fmt::Display| {
            RpcError::new(PARSE_ERROR, format!("the line is not JSON: {error}"))
        };
        let text = std::str::from_utf8(line).map_err(|error| broken(&error))?;
        let refused = |message: &str| Err(RpcError::new(INVALID_REQUEST, message));
        if text.starts_with('[') {
            let Elements { first, more } =
                serde_json::from_str(text).map_err(|error| broken(&error))?;
            if more {
                return refused(&format!("the batch has more than {MAX_BATCH} messages"));
            }
            if first.is_empty() {
                return refused("the batch is empty");
            }
            let messages = first.into_iter().map(|item| Message::read(item.get()));
            return Ok(Self::Batch(messages.collect()));
        }
        let value: &RawValue = serde_json::from_str(text).map_err(|error| broken(&error))?;
        Ok(Self::Single(Message::read(value.get())))
    }
}

/// The elements of an array, as many as a batch may have; the others are read past.
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

impl<'a> Message<'a> {
    /// Reads what is known to be JSON.
    fn read(text: &'a str) -> Self {
        let invalid = |id: Option<Id>, message: String| Self::Invalid {
            id,
            error: RpcError::new(INVALID_REQUEST, message),
        };
        let members = match Members::parse(text) {
            Ok(members) => members,
            Err(error) => return invalid(None, format!("not a JSON-RPC message: {error}")),
        };
        if let Some(name @ ("jsonrpc" | "id" | "method" | "params")) = members.doubled() {
            return invalid(None, format!("the message has `{name}` twice"));
        }
        let id = members.get("id").map(Id::parse);
        let known = id.clone().flatten();
        if members.get("jsonrpc") != Some("\"2.0\"") {
            return invalid(known, "`jsonrpc` must be \"2.0\"".to_owned());
        }
        let Some(method) = members.get("method") else {
            let answers = members.get("result").is_some() || members.get("error").is_some();
            return if answers {
                Self::Response
            } else {
                invalid(known, "`method` is missing".to_owned())
            };
        };
        let Ok(method) = serde_json::from_str::<String>(method) else {
            return invalid(known, "`method` must be a string".to_owned());
        };
        let params = members.given("params");
        match id {
            None => Self::Notification { method, params },
            Some(None) => invalid(
                None,
                "`id` must be a string or an integer of at most 1 kB".to_owned(),
            ),
            Some(Some(id)) if method.starts_with("notifications/") => {
                invalid(Some(id), "a notification has no `id`".to_owned())
            }
            Some(Some(id)) => Self::Request { id, method, params },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(text: &str) -> Message<'_> {
        match Incoming::parse(text.as_bytes()).unwrap() {
            Incoming::Single(message) => message,
            Incoming::Batch(_) => panic!("{text}"),
        }
    }

    fn refusal(text: &str) -> (Option<Id>, i64) {
        match single(text) {
            Message::Invalid { id, error } => (id, error.code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rpc_02_envelopes_that_are_none() {
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
            "1",
            "\"text\"",
            "null",
            &long,
        ] {
            assert_eq!(refusal(text), (None, INVALID_REQUEST), "{text:.80}");
        }
        let known = (Some(Id::Integer(7)), INVALID_REQUEST);
        for text in [
            r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#,
            r#"{"id":7,"method":"m"}"#,
            r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":1}"#,
        ] {
            assert_eq!(refusal(text), known, "{text}");
        }
    }

    #[test]
    fn rpc_04_a_notification_has_no_id() {
        let text = r#"{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}"#;
        assert_eq!(refusal(text), (Some(Id::Integer(7)), INVALID_REQUEST));
        let text = r#"{"jsonrpc":"2.0","method":"tools/call"}"#;
        assert!(matches!(single(text), Message::Notification { .. }));
    }

    #[test]
    fn ids_keep_their_type() {
        let id = |text: &str| Id::parse(text).unwrap();
        assert_ne!(id("1"), id("\"1\""));
        assert_eq!(id("\"a\\u0062\\n\"").to_string(), "\"ab\\n\"");
        for text in ["0", "-5", "18446744073709551615", "-9223372036854775808"] {
            assert_eq!(id(text).to_string(), text);
        }
    }

    #[test]
    fn lines_that_are_no_json_and_batches_of_no_use() {
        let code = |text: &[u8]| Incoming::parse(text).unwrap_err().code;
        for text in [&b"nope"[..], b"{", b"{}{}", b"[1,", b"\xff", b"{\"a\":NaN}"] {
            assert_eq!(code(text), PARSE_ERROR, "{text:?}");
        }
        assert_eq!(code(b"[]"), INVALID_REQUEST);
        let many = format!("[{}1]", "1,".repeat(MAX_BATCH));
        assert_eq!(code(many.as_bytes()), INVALID_REQUEST);
        let broken = format!("[{}x]", "1,".repeat(MAX_BATCH));
        assert_eq!(code(broken.as_bytes()), PARSE_ERROR);
        let most = format!("[{}1]", "1,".repeat(MAX_BATCH - 1));
        assert!(Incoming::parse(most.as_bytes()).is_ok());
        let Incoming::Batch(messages) = Incoming::parse(b"[1,{}]").unwrap() else {
            panic!("a batch");
        };
        assert_eq!(messages.len(), 2);
    }
}
