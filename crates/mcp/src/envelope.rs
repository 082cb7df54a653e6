//! Reads one line as JSON-RPC, as far as its envelope and no further: what is inside stays a slice
//! of the line.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::batch::Batch;
use crate::memory::Account;
use crate::repair::repaired;
use crate::scan::{HeadScan, is_too_deep};

/// One message of a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// An answer with a result, which is raw JSON.
    Result { id: u64, result: Bytes },
    /// An answer with an error, which is raw JSON.
    Error { id: u64, error: Bytes },
    /// An answer that cannot be used, to a request that can be named.
    Broken { id: u64, reason: &'static str },
    /// An answer or error without an id of ours.
    Stray,
    /// A request to us; the id is raw JSON.
    Request { id: Bytes, method: String },
    /// The server gives up the request of ours with this id.
    Cancelled { id: u64 },
    /// A notification.
    Notification { method: String },
    /// Text that is not UTF-8 and for whose repaired copy there is no room in memory; the id is that of
    /// the request which it answers, if it can be read.
    NoRoom { id: Option<u64> },
    /// Not a message.
    Noise,
}

/// What was read out of one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// The messages: one, or those of a batch.
    pub(crate) messages: Messages,
    /// Whether the text was not UTF-8 and was repaired.
    pub(crate) repaired: bool,
}

/// One message, nearly always; an array of them where the server batches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    /// The usual line.
    One(Message),
    /// A batch, to be walked.
    Many(Batch),
}

/// Reads a line. Text that is not UTF-8 is repaired, since the answer is worth more than its letters;
/// the repaired copy is charged to `account`.
pub(crate) fn parse(line: Bytes, account: &Account) -> Parsed {
    let Ok(text) = std::str::from_utf8(&line) else {
        let messages = match repaired(&line, account) {
            Ok(text) => parse(text, account).messages,
            Err(_) => Messages::One(Message::NoRoom {
                id: answered(&line),
            }),
        };
        return Parsed {
            messages,
            repaired: true,
        };
    };
    let messages = if text.starts_with('[') {
        Messages::Many(Batch::new(line))
    } else {
        Messages::One(read(&line, text))
    };
    Parsed {
        messages,
        repaired: false,
    }
}

/// Reads `text`, a part of `line`, as one message.
pub(crate) fn read(line: &Bytes, text: &str) -> Message {
    match text.as_bytes().first() {
        Some(b'{') if is_too_deep(text.as_bytes()) => {
            broken(text, "the answer nests deeper than 512 levels")
        }
        Some(b'{') => message(line, text),
        _ => Message::Noise,
    }
}

/// The members of an envelope, each as it was written.
#[derive(Default)]
struct Wire<'a> {
    jsonrpc: bool,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

fn message(line: &Bytes, text: &str) -> Message {
    let Ok(wire) = serde_json::from_str::<Wire<'_>>(text) else {
        return broken(text, "the answer is not JSON");
    };
    let slice = |raw: &RawValue| line.slice_ref(raw.get().as_bytes());
    // Some servers send `"error": null` with a result, or the other way round.
    let error = wire
        .error
        .filter(|error| error.get() != "null" || wire.result.is_none());
    let result = wire
        .result
        .filter(|result| result.get() != "null" || error.is_none());
    if let Some(method) = wire.method {
        let method = method.into_owned();
        return match wire.id.filter(|id| id.get() != "null") {
            Some(id) => Message::Request {
                id: slice(id),
                method,
            },
            None => match wire.params.and_then(|params| cancelled_id(&method, params)) {
                Some(id) => Message::Cancelled { id },
                None => Message::Notification { method },
            },
        };
    }
    let has_body = result.is_some() || error.is_some();
    let Some(id) = wire.id.and_then(|id| own_id(id.get())) else {
        return if has_body || (wire.jsonrpc && wire.id.is_some()) {
            Message::Stray
        } else {
            Message::Noise
        };
    };
    match (result, error) {
        (Some(result), None) => Message::Result {
            id,
            result: slice(result),
        },
        (None, Some(error)) => Message::Error {
            id,
            error: slice(error),
        },
        (Some(_), Some(_)) => Message::Broken {
            id,
            reason: "the answer has both `result` and `error`",
        },
        (None, None) if wire.jsonrpc => Message::Broken {
            id,
            reason: "the answer has neither `result` nor `error`",
        },
        (None, None) => Message::Noise,
    }
}

/// An answer that cannot be read, where it can be told whose it is.
fn broken(text: &str, reason: &'static str) -> Message {
    match answered(text.as_bytes()) {
        Some(id) => Message::Broken { id, reason },
        None => Message::Noise,
    }
}

/// The id of the request that a line answers, if it can be read.
fn answered(line: &[u8]) -> Option<u64> {
    let mut scan = HeadScan::default();
    scan.feed(line);
    scan.answered()
}

/// The id in a `notifications/cancelled`, where it is one of ours.
fn cancelled_id(method: &str, params: &RawValue) -> Option<u64> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    if method != "notifications/cancelled" {
        return None;
    }
    let params: Params<'_> = serde_json::from_str(params.get()).ok()?;
    own_id(params.id.get())
}

/// Our ids are integers; a server that gives one back as a string means the same.
fn own_id(raw: &str) -> Option<u64> {
    let digits = raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(raw);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Wire<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WireVisitor)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

/// A method name that is a string; anything else counts as none.
struct MethodName<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for MethodName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let plain = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|rest| !rest.contains('\\'));
        Ok(Self(match plain {
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => serde_json::from_str::<String>(text).ok().map(Cow::Owned),
        }))
    }
}

struct WireVisitor;

impl<'de> Visitor<'de> for WireVisitor {
    type Value = Wire<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Wire<'de>, A::Error> {
        let mut wire = Wire::default();
        while let Some(member) = members.next_key()? {
            match member {
                Member::Jsonrpc => {
                    members.next_value::<IgnoredAny>()?;
                    wire.jsonrpc = true;
                }
                Member::Id => wire.id = Some(members.next_value()?),
                Member::Method => wire.method = members.next_value::<MethodName<'de>>()?.0,
                Member::Params => wire.params = Some(members.next_value()?),
                Member::Result => wire.result = Some(members.next_value()?),
                Member::Error => wire.error = Some(members.next_value()?),
                Member::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::MAX_BATCH_NOISE;
    use crate::memory::MemoryBudget;
    use proptest::prelude::*;

    fn parse(line: Bytes) -> Parsed {
        super::parse(line, &MemoryBudget::new(usize::MAX).whole_account())
    }

    fn one(line: impl Into<Vec<u8>>) -> Message {
        match parse(Bytes::from(line.into())).messages {
            Messages::One(message) => message,
            Messages::Many(_) => panic!("a batch"),
        }
    }

    fn batch(line: impl Into<Vec<u8>>) -> Vec<Message> {
        match parse(Bytes::from(line.into())).messages {
            Messages::One(_) => panic!("not a batch"),
            Messages::Many(mut batch) => std::iter::from_fn(|| batch.next()).collect(),
        }
    }

    fn result(id: u64, json: &str) -> Message {
        let result = Bytes::from(json.to_owned());
        Message::Result { id, result }
    }

    #[test]
    fn what_each_line_is() {
        let broken = |id, reason| Message::Broken { id, reason };
        let error = |id, json: &'static str| Message::Error {
            id,
            error: Bytes::from_static(json.as_bytes()),
        };
        let note = |method: &str| Message::Notification {
            method: method.to_owned(),
        };
        let ping = Message::Request {
            id: Bytes::from_static(b"\"q\""),
            method: "ping".to_owned(),
        };
        let both = "the answer has both `result` and `error`";
        let neither = "the answer has neither `result` nor `error`";
        let no_json = "the answer is not JSON";
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{"a": 1.0}}"#,
                result(1, r#"{"a": 1.0}"#),
            ),
            (r#"{"result":{},"jsonrpc":"2.0","id":1}"#, result(1, "{}")),
            (r#"{"id":1,"result":{}}"#, result(1, "{}")),
            (r#"{"jsonrpc":"2.0","id":"1","result":{}}"#, result(1, "{}")),
            (r#"{"id":1,"result":null}"#, result(1, "null")),
            (r#"{"id":1,"result":{},"error":null}"#, result(1, "{}")),
            (
                r#"{"id":1,"result":null,"error":{"code":1}}"#,
                error(1, r#"{"code":1}"#),
            ),
            (
                r#"{"id":2,"error":{"code":-1}}"#,
                error(2, r#"{"code":-1}"#),
            ),
            (r#"{"id":2,"result":{},"error":{}}"#, broken(2, both)),
            (r#"{"jsonrpc":"2.0","id":2}"#, broken(2, neither)),
            (r#"{"id":2,"result":{"a":}}"#, broken(2, no_json)),
            (r#"{"id":2,"result":{}} x"#, broken(2, no_json)),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, Message::Stray),
            (
                r#"{"jsonrpc":"2.0","id":"abc","result":{}}"#,
                Message::Stray,
            ),
            (r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#, Message::Stray),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
                note("notifications/x"),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"a\u002fb","id":null}"#,
                note("a/b"),
            ),
            (r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#, ping),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":7,"x":[]}}"#,
                Message::Cancelled { id: 7 },
            ),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":"abc"}}"#,
                note("notifications/cancelled"),
            ),
            ("Server listening", Message::Noise),
            (r#"{"level":"info","id":2}"#, Message::Noise),
            (r#"{"level":"info"#, Message::Noise),
            ("7", Message::Noise),
        ];
        for (line, expected) in table {
            assert_eq!(one(line), expected, "{line}");
        }
    }

    #[test]
    fn f_16_text_that_is_no_text_is_delivered() {
        let bytes = b"{\"id\":1,\"result\":{\"t\":\"a\xff\xfeb\"}}";
        let parsed = parse(Bytes::from_static(bytes));
        assert!(parsed.repaired);
        let expected = result(1, "{\"t\":\"a\u{fffd}\u{fffd}b\"}");
        assert_eq!(parsed.messages, Messages::One(expected));
        let surrogate = r#"{"id":1,"result":{"t":"\ud800","u":"\u0000"},"x":"\udc00"}"#;
        assert_eq!(one(surrogate), result(1, r#"{"t":"\ud800","u":"\u0000"}"#));
    }

    #[test]
    fn f_17_deep_nesting_is_told_to_the_call_that_waits() {
        let (open, close) = ("[".repeat(20_000), "]".repeat(20_000));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":4,"result":{open}{close}}}"#);
        let reason = "the answer nests deeper than 512 levels";
        assert_eq!(one(deep), Message::Broken { id: 4, reason });
        assert_eq!(batch(open), [Message::Noise]);
        // In a batch, the answers beside it arrive.
        let (open, close) = ("[".repeat(600), "]".repeat(600));
        let deep = format!(r#"[{{"id":4,"result":{open}{close}}},{{"id":5,"result":{{}}}}]"#);
        assert_eq!(
            batch(deep),
            [Message::Broken { id: 4, reason }, result(5, "{}")]
        );
    }

    #[test]
    fn a_batch_is_walked_and_no_answer_in_it_is_lost() {
        let noise = || Message::Noise;
        let method = "m".to_owned();
        assert_eq!(
            batch(r#"[{"id":1,"result":{}}, {"method":"m"} , 3]"#),
            [result(1, "{}"), Message::Notification { method }, noise()]
        );
        assert_eq!(batch("[]"), []);
        assert_eq!(batch("[ ]"), []);
        // A broken element after an answer does not damage that answer.
        for broken in [
            r#"[{"id":1,"result":{}}"#,
            r#"[{"id":1,"result":{}},"#,
            r#"[{"id":1,"result":{}},]"#,
            r#"[{"id":1,"result":{}} {"id":2,"result":{}}]"#,
            r#"[{"id":1,"result":{}}] x"#,
            r#"[{"id":1,"result":{}},{"id":2,"#,
        ] {
            let found = batch(broken);
            assert_eq!(found[0], result(1, "{}"), "{broken}");
            assert!(found[1..].iter().all(|other| *other == noise()), "{broken}");
            assert!(found.len() <= 2, "{broken}");
        }
        for broken in ["[", "[,1]", "[1 2]", "[x"] {
            assert!(batch(broken).contains(&noise()), "{broken}");
        }
        let answers: Vec<_> = (0..10_000)
            .map(|id| format!(r#"{{"id":{id},"result":{{}}}}"#))
            .collect();
        let found = batch(format!("[{}]", answers.join(",")));
        assert_eq!(found.len(), 10_000);
        assert_eq!(found[9_999], result(9_999, "{}"));
    }

    #[test]
    fn a_batch_is_skipped_after_a_hundred_elements_that_are_no_messages() {
        let noise = "1,".repeat(MAX_BATCH_NOISE - 1);
        let found = batch(format!(
            r#"[{noise}{{"id":1,"result":{{}}}},1,{{"id":2,"result":{{}}}}]"#
        ));
        assert_eq!(found.len(), MAX_BATCH_NOISE + 2);
        assert_eq!(found[MAX_BATCH_NOISE - 1], result(1, "{}"));
        assert_eq!(
            found[MAX_BATCH_NOISE + 1],
            Message::Noise,
            "the rest of the line"
        );
        assert_eq!(batch(format!("[{noise}1]")).len(), MAX_BATCH_NOISE);
        assert_eq!(
            batch(format!("[{}1]", "1,".repeat(100_000))).len(),
            MAX_BATCH_NOISE + 1
        );
    }

    proptest! {
        #[test]
        fn hostile_lines_never_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(Bytes::from(line));
        }

        #[test]
        fn a_result_comes_out_as_it_went_in(text in "\\PC{0,60}", id in any::<u64>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(
                one(format!("{{\"jsonrpc\":\"2.0\",\"result\":{json},\"id\":{id}}}")),
                result(id, &json)
            );
        }
    }
}
