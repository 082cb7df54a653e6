//! Answers over HTTP that do not end, break off, lie about themselves or are for other requests.

use std::time::Duration;

use broker_mcp::{CallFailure, Session};
use broker_model::SourceCause;
use harness::{http_script, on_echo};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{HttpFixture, WAIT_TIMEOUT, echo_within};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// The outcome of a call in a few words.
fn outcome(result: &Result<String, CallFailure>) -> String {
    match result {
        Ok(_) => "answered".to_owned(),
        Err(CallFailure::Timeout { .. }) => "timeout".to_owned(),
        Err(CallFailure::OutputTooLarge { .. }) => "too large".to_owned(),
        Err(CallFailure::Protocol { .. }) => "protocol".to_owned(),
        Err(CallFailure::Http { status, .. }) => format!("status {status}"),
        Err(CallFailure::Rpc { code, .. }) => format!("error {code}"),
        Err(CallFailure::Exited { failure, .. }) if failure.cause == SourceCause::Unreachable => {
            "broken off".to_owned()
        }
        Err(other) => format!("{other:?}"),
    }
}

/// Calls `echo`, which is expected to time out, or not to.
async fn call(session: &Session, expected: &str) -> Result<String, CallFailure> {
    let time = match expected {
        "timeout" => Duration::from_millis(700),
        _ => WAIT_TIMEOUT,
    };
    let ended = timeout(2 * WAIT_TIMEOUT, echo_within(session, "x", time)).await;
    ended.expect("a call ends with its time")
}

/// Calls `echo` with each fault, in both eras, each at a separate server, which then serves another call.
async fn each(faults: &[(Value, &'static str)]) {
    let mut checks = JoinSet::new();
    for (fault, expected) in faults {
        for era in ERAS {
            checks.spawn(check(era, fault.clone(), expected));
        }
    }
    while let Some(checked) = checks.join_next().await {
        checked.expect("the check holds");
    }
}

async fn check(era: &'static str, fault: Value, expected: &'static str) {
    let fixture = HttpFixture::with_fault(era, &fault);
    let session = fixture.session().await;
    let result = call(&session, expected).await;
    assert_eq!(outcome(&result), expected, "{era}: {fault}: {result:?}");
    if let Err(failure) = &result {
        assert!(failure.maybe_executed(), "{era}: {fault}: {failure:?}");
    }
    fixture.script(&http_script(era, &json!({})));
    let next = super::echo(&session, "y").await;
    assert!(next.is_ok(), "{era}: after {fault}: {next:?}");
    session.stop().await;
}

#[tokio::test]
async fn answer_without_end_is_limited_in_bytes_and_time() {
    each(&[
        (json!({"endless": {"kind": "event"}}), "too large"),
        (json!({"endless": {"kind": "json"}}), "too large"),
        (json!({"endless": {"kind": "spaces"}}), "too large"),
        (json!({"endless": {"kind": "header"}}), "broken off"),
        (json!({"endless": {"kind": "headers"}}), "broken off"),
        (json!({"endless": {"kind": "events"}}), "timeout"),
        (json!({"endless": {"kind": "comments"}}), "timeout"),
        (json!({"endless": {"kind": "interim"}}), "broken off"),
        (json!({"gzip_bomb": 4 << 20}), "too large"),
        (
            json!({"header_flood": {"count": 200, "bytes": 10}}),
            "broken off",
        ),
        (
            json!({"header_flood": {"count": 2, "bytes": 1 << 20}}),
            "broken off",
        ),
    ])
    .await;
}

#[tokio::test]
async fn answer_that_is_late_ends_at_the_timeout() {
    each(&[
        (json!("hang"), "timeout"),
        (json!({"head_drip": {"bytes": 1, "ms": 100}}), "timeout"),
        (json!({"body_drip": {"bytes": 1, "ms": 100}}), "timeout"),
        (
            json!({"reply": "sse", "body_drip": {"bytes": 1, "ms": 100}}),
            "timeout",
        ),
        (json!({"cut": "head", "end": "hang"}), "timeout"),
        (json!({"cut": "body", "end": "hang"}), "timeout"),
        (
            json!({"reply": "sse", "cut": "event", "end": "hang"}),
            "timeout",
        ),
    ])
    .await;
}

#[tokio::test]
async fn answer_that_breaks_off_fails_at_once_and_may_be_executed() {
    each(&[
        (json!("close"), "broken off"),
        (json!("reset"), "broken off"),
        (json!({"cut": "head"}), "broken off"),
        (json!({"cut": "head", "end": "reset"}), "broken off"),
        (json!({"cut": "body"}), "broken off"),
        (json!({"cut": "body", "end": "reset"}), "broken off"),
        (json!({"reply": "sse", "cut": "event"}), "broken off"),
        (
            json!({"reply": "sse", "cut": "event", "end": "reset"}),
            "broken off",
        ),
        (json!({"content_length": {"add": 10}}), "broken off"),
        (
            json!({"content_length": 9_223_372_036_854_775_807_u64}),
            "too large",
        ),
        (json!({"transfer": "bad-chunk"}), "broken off"),
        (json!({"transfer": "huge-chunk"}), "broken off"),
        (json!({"transfer": "no-last-chunk"}), "broken off"),
        (json!({"raw": "\u{0}\u{1}garbage\r\n\r\n"}), "broken off"),
    ])
    .await;
}

#[tokio::test]
async fn answer_that_is_not_what_it_says_is_refused() {
    each(&[
        (json!({"headers": {"Content-Type": "text/html"}}), "protocol"),
        (json!({"headers": {"Content-Type": null}}), "protocol"),
        (json!({"headers": {"Content-Type": "application/jsonx"}}), "protocol"),
        (json!({"status": 202, "execute": true, "body": ""}), "protocol"),
        (json!({"status": 204, "execute": true, "body": ""}), "protocol"),
        (json!({"content_length": {"add": -5}}), "protocol"),
        (json!({"headers": {"Content-Encoding": "br"}}), "protocol"),
        (json!({"headers": {"Content-Encoding": "gzip"}}), "broken off"),
        (json!({"execute": true, "body": "{\"jsonrpc\":"}), "protocol"),
        (json!({"execute": true, "body": "[]"}), "protocol"),
        (
            json!({"execute": true, "body": r#"{"jsonrpc":"2.0","id":$ID,"result":7}"#}),
            "protocol",
        ),
        (
            json!({"execute": true, "body": r#"{"jsonrpc":"2.0","id":9999,"result":{"content":[]}}"#}),
            "protocol",
        ),
    ])
    .await;
}

#[tokio::test]
async fn session_id_of_a_modern_answer_has_no_effect() {
    let other = json!({"headers": {"Mcp-Session-Id": "0123456789abcdef0123456789abcdef"}});
    let fixture = HttpFixture::with_fault("modern", &other);
    let session = fixture.session().await;
    assert_eq!(outcome(&call(&session, "").await), "answered");
    assert_eq!(session.session_id(), None);
}

#[tokio::test]
async fn answer_in_a_usual_form_is_accepted() {
    each(&[
        (json!({"gzip": true}), "answered"),
        (json!({"transfer": "chunked"}), "answered"),
        (json!({"transfer": "close"}), "answered"),
        (json!({"headers": {"Content-Encoding": "identity"}}), "answered"),
        (json!({"headers": {"Content-Type": "Application/JSON; charset=utf-8"}}), "answered"),
        (json!({"header_flood": {"count": 60, "bytes": 100}}), "answered"),
        (json!({"reply": "sse", "events": {"newline": "\r\n", "split": true, "comments": 3}}), "answered"),
        (json!({"reply": "sse", "before": [r#"{"jsonrpc":"2.0","id":9999,"result":{"content":[]}}"#]}), "answered"),
        (json!({"reply": "sse", "raw_before": "data: not json\n\ndata\n\n: x\n\nevent: other\ndata: {}\n\n"}), "answered"),
    ])
    .await;
}

#[tokio::test]
async fn answer_with_an_http_error_names_its_status() {
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &json!({}));
        let session = fixture.session().await;
        for (status, maybe_executed) in [
            (500, true),
            (502, true),
            (599, true),
            (400, false),
            (405, false),
            (413, false),
            (418, true),
        ] {
            let fault = json!({"status": status, "body": "<html>why</html>"});
            let rules = json!({"rules": [on_echo(&fault)]});
            fixture.script(&http_script(era, &rules));
            let failure = call(&session, "").await.unwrap_err();
            assert!(
                matches!(failure, CallFailure::Http { status: found, .. } if found == status),
                "{era}: {failure:?}"
            );
            assert_eq!(failure.maybe_executed(), maybe_executed, "{era}: {status}");
        }
        let error = json!({"code": -32099, "message": "why"});
        for status in [500, 400, 422] {
            let fault = json!({"status": status, "body": error});
            let rules = json!({"rules": [on_echo(&fault)]});
            fixture.script(&http_script(era, &rules));
            assert_eq!(outcome(&call(&session, "").await), "error -32099", "{era}");
        }
        // None of them counts as a failure of the transport.
        fixture.script(&http_script(era, &json!({})));
        assert!(super::echo(&session, "x").await.is_ok());
    }
}

#[tokio::test]
async fn answer_of_invalid_json_rpc_has_the_outcome_of_the_message() {
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &json!({}));
        let session = fixture.session().await;
        for (behaviour, json_outcome, stream_outcome) in [
            (json!("wrong-id"), "protocol", "broken off"),
            (json!("dup"), "protocol", "answered"),
            (json!("str-id"), "answered", "answered"),
            (json!("both"), "protocol", "protocol"),
            (json!("no-jsonrpc"), "answered", "answered"),
            (json!("bad-utf8"), "answered", "answered"),
            (json!("surrogate"), "answered", "answered"),
            (json!("bom"), "answered", "answered"),
            (json!("not-json"), "protocol", "broken off"),
            (json!("not-object"), "protocol", "protocol"),
            (json!({"deep": 20_000}), "protocol", "protocol"),
            (
                json!({"rpc_error": {"code": 7, "message": "x"}}),
                "error 7",
                "error 7",
            ),
        ] {
            for (form, expected) in [("json", json_outcome), ("sse", stream_outcome)] {
                fixture.script(&json!({
                    "era": era, "http": {"reply": form}, "on_call": {"echo": behaviour},
                }));
                let result = call(&session, expected).await;
                assert_eq!(
                    outcome(&result),
                    expected,
                    "{era}, {form}: {behaviour}: {result:?}"
                );
            }
        }
    }
}
