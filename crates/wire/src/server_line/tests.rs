//! Tests of the messages that are read from lines of a server.

use broker_memory::MemoryBudget;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use crate::batch::MAX_BATCH_NOISE;
use crate::{Id, Raw};

fn read_line(line: Bytes) -> ServerLine {
    read_server_line(line, &MemoryBudget::new(usize::MAX).whole_account())
}

fn one(line: impl Into<Vec<u8>>) -> Incoming {
    match read_line(Bytes::from(line.into())).messages {
        Messages::One(message) => message,
        Messages::Many(_) => panic!("a batch"),
    }
}

fn batch(line: impl Into<Vec<u8>>) -> Vec<Incoming> {
    match read_line(Bytes::from(line.into())).messages {
        Messages::One(_) => panic!("not a batch"),
        Messages::Many(batch) => batch.collect(),
    }
}

/// Returns a JSON value as a message contains it.
fn raw(json: &str) -> Raw {
    let line = Bytes::copy_from_slice(json.as_bytes());
    let value: &RawValue = serde_json::from_slice(&line).unwrap();
    Raw::new(&line, value)
}

fn result(id: u64, json: &str) -> Incoming {
    let id = Some(Id::Integer(id.into()));
    let outcome = Ok(raw(json));
    Incoming::Response { id, outcome }
}

fn invalid(id: Option<i128>, problem: Problem) -> Incoming {
    let id = id.map(Id::Integer);
    Incoming::Invalid { id, problem }
}

#[test]
fn server_line_is_read_as_its_kind_of_message() {
    let error = |id, json: &str| Incoming::Response {
        id: Some(Id::Integer(id)),
        outcome: Err(raw(json)),
    };
    let answer = |id, json: &str| Incoming::Response {
        id,
        outcome: Ok(raw(json)),
    };
    let note = |method: &str| Incoming::Notification {
        method: method.to_owned(),
        params: None,
    };
    let request = |id| Incoming::Request {
        id,
        method: "ping".to_owned(),
        params: None,
    };
    let cancelled = |json: &str| Incoming::Notification {
        method: "notifications/cancelled".to_owned(),
        params: Some(raw(json)),
    };
    let text = |id: &str| Id::Text(id.to_owned());
    let both = || Problem::malformed("the answer has both `result` and `error`");
    let neither = || Problem::malformed("the answer has neither `result` nor `error`");
    let no_json = || Problem::unreadable("the answer is not JSON");
    let noise = || Incoming::problem_without_id(Problem::Noise);
    let table = [
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"a": 1.0}}"#,
            result(1, r#"{"a": 1.0}"#),
        ),
        (r#"{"result":{},"jsonrpc":"2.0","id":1}"#, result(1, "{}")),
        (r#"{"id":1,"result":{}}"#, result(1, "{}")),
        (
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            answer(Some(text("1")), "{}"),
        ),
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
        (
            r#"{"id":2,"result":{},"error":{}}"#,
            invalid(Some(2), both()),
        ),
        (r#"{"jsonrpc":"2.0","id":2}"#, invalid(Some(2), neither())),
        (r#"{"id":2,"result":{"a":}}"#, invalid(Some(2), no_json())),
        (r#"{"id":2,"result":{}} x"#, invalid(Some(2), no_json())),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
            Incoming::Response {
                id: None,
                outcome: Err(raw("{}")),
            },
        ),
        (
            r#"{"jsonrpc":"2.0","id":"abc","result":{}}"#,
            answer(Some(text("abc")), "{}"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#,
            answer(Some(Id::Integer(-1)), "{}"),
        ),
        (r#"{"jsonrpc":"2.0","id":null}"#, invalid(None, neither())),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            note("notifications/x"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"a\u002fb","id":null}"#,
            note("a/b"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#,
            request(text("q")),
        ),
        (
            r#"{"id":1.50,"method":"ping"}"#,
            request(Id::Other(raw("1.50"))),
        ),
        (
            r#"{"method":"notifications/cancelled","params":{"requestId":7,"x":[]}}"#,
            cancelled(r#"{"requestId":7,"x":[]}"#),
        ),
        (
            r#"{"method":"notifications/cancelled","params":{"requestId":"abc"}}"#,
            cancelled(r#"{"requestId":"abc"}"#),
        ),
        ("Server listening", noise()),
        (r#"{"level":"info","id":2}"#, noise()),
        (r#"{"level":"info"#, noise()),
        ("7", noise()),
    ];
    for (line, expected) in table {
        assert_eq!(one(line), expected, "{line}");
    }
}

#[test]
fn server_line_with_invalid_utf8_is_repaired_and_delivered() {
    let bytes = b"{\"id\":1,\"result\":{\"t\":\"a\xff\xfeb\"}}";
    let parsed = read_line(Bytes::from_static(bytes));
    assert!(parsed.repaired);
    let expected = result(1, "{\"t\":\"a\u{fffd}\u{fffd}b\"}");
    assert_eq!(parsed.messages, Messages::One(expected));
    let surrogate = r#"{"id":1,"result":{"t":"\ud800","u":"\u0000"},"x":"\udc00"}"#;
    assert_eq!(one(surrogate), result(1, r#"{"t":"\ud800","u":"\u0000"}"#));
}

#[test]
fn server_line_nested_too_deep_fails_the_pending_call() {
    let (open, close) = ("[".repeat(20_000), "]".repeat(20_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":4,"result":{open}{close}}}"#);
    let too_deep = || {
        let reason = "the answer nests deeper than 512 levels";
        invalid(Some(4), Problem::unreadable(reason))
    };
    assert_eq!(one(deep), too_deep());
    assert_eq!(batch(open), [Incoming::problem_without_id(Problem::Noise)]);
    // In a batch, the other answers arrive.
    let (open, close) = ("[".repeat(600), "]".repeat(600));
    let deep = format!(r#"[{{"id":4,"result":{open}{close}}},{{"id":5,"result":{{}}}}]"#);
    assert_eq!(batch(deep), [too_deep(), result(5, "{}")]);
}

#[test]
fn server_batch_is_read_and_loses_no_answer() {
    let noise = || Incoming::problem_without_id(Problem::Noise);
    let note = Incoming::Notification {
        method: "m".to_owned(),
        params: None,
    };
    assert_eq!(
        batch(r#"[{"id":1,"result":{}}, {"method":"m"} , 3]"#),
        [result(1, "{}"), note, noise()]
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
fn server_batch_is_skipped_after_a_hundred_invalid_elements() {
    let noise = "1,".repeat(MAX_BATCH_NOISE - 1);
    let found = batch(format!(
        r#"[{noise}{{"id":1,"result":{{}}}},1,{{"id":2,"result":{{}}}}]"#
    ));
    assert_eq!(found.len(), MAX_BATCH_NOISE + 2);
    assert_eq!(found[MAX_BATCH_NOISE - 1], result(1, "{}"));
    assert_eq!(
        found[MAX_BATCH_NOISE + 1],
        Incoming::problem_without_id(Problem::Noise),
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
    fn server_line_of_arbitrary_bytes_does_not_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
        read_line(Bytes::from(line));
    }

    #[test]
    fn server_result_is_unchanged(text in "\\PC{0,60}", id in any::<u64>()) {
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(
            one(format!("{{\"jsonrpc\":\"2.0\",\"result\":{json},\"id\":{id}}}")),
            result(id, &json)
        );
    }
}
