//! Servers that do not know a session any more and say so in their own way: what counts as the end of a session, and
//! how many new ones are opened.

use std::time::Duration;

use broker_mcp::{CallFailure, Session, State};
use broker_model::SourceCause;
use harness::http_script;
use serde_json::{Value, json};

use super::{HttpFixture, echo, echo_by, eventually, until};

const KNOWN: &str = "Session not found";

/// A legacy server without a stream whose calls of `echo` from `first` to `last` have this fault.
fn script(fault: &Value, first: u64, last: u64) -> Value {
    let rule = json!({"on": {"tool": "echo"}, "nth": [first, last], "do": fault});
    // A stream that opens during a listing would be a cause of one more listing.
    http_script("legacy", &json!({"get": 405, "rules": [rule]}))
}

fn sessions(fixture: &HttpFixture) -> usize {
    fixture.requests(&json!({"rpc_method": "initialize"})).len()
}

/// The text of a JSON-RPC error in the place of an answer.
fn rpc(code: i64, id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"Unauthorized: {KNOWN}"}}}}"#
    )
}

fn events(data: &str) -> Value {
    let headers = json!({"Content-Type": "text/event-stream"});
    json!({"headers": headers, "body": format!("event: message\ndata: {data}\n\n")})
}

fn json_body(status: u16, body: &str) -> Value {
    let mut fault = json!({"headers": {"Content-Type": "application/json"}, "body": body});
    if status != 200 {
        fault["status"] = status.into();
    }
    fault
}

/// Whether a call failed with the end of its session.
fn is_lost(failure: &CallFailure, executed: bool) -> bool {
    matches!(failure, CallFailure::Exited { failure, maybe_executed }
        if failure.cause == SourceCause::SessionEnded && *maybe_executed == executed)
}

/// Checks that a call with this fault ends the session, and that the next one is listed before the next call.
async fn check(fault: &Value, executed: bool) {
    let fixture = HttpFixture::new(&script(fault, 1, 1));
    let source = fixture.instance().await;
    let failure = echo_by(&source, "lost").await.expect_err("a refused call");
    assert!(is_lost(&failure, executed), "{fault}: {failure:?}");
    assert!(echo_by(&source, "next").await.is_ok(), "{fault}");
    assert_eq!((sessions(&fixture), fixture.events("list")), (2, 2));
    let executions = (fixture.executions("lost"), fixture.executions("next"));
    assert_eq!(executions, (0, 1), "{fault}");
    source.stop().await;
}

#[tokio::test]
async fn refusal_by_status_ends_the_session_of_a_call_that_was_not_executed() {
    let mut challenged = json_body(401, &rpc(-32000, "null"));
    challenged["headers"]["WWW-Authenticate"] = json!("Bearer error=\"invalid_token\"");
    for fault in [
        json_body(404, &rpc(-32001, "null")),
        json_body(400, &rpc(-32000, "null")),
        json_body(400, r#"{"error":"No valid session ID provided"}"#),
        challenged,
        json!({"status": 401, "body": "Unauthorized: No valid session ID provided"}),
        json!({"status": 410, "body": "gone"}),
    ] {
        check(&fault, false).await;
    }
}

#[tokio::test]
async fn error_that_names_the_session_ends_it_and_the_call_may_be_executed() {
    let text = format!(r#"{{"error":"{KNOWN}"}}"#);
    for fault in [
        json_body(500, &text),
        json!({"status": 503, "body": KNOWN}),
        json_body(500, &rpc(-32603, "$ID")),
        json_body(200, &rpc(-32001, "$ID")),
        json_body(200, &rpc(-32000, "null")),
        events(&text),
        events(&rpc(-32600, "$ID")),
    ] {
        check(&fault, true).await;
    }
}

#[tokio::test]
async fn words_about_a_session_in_results_and_errors_of_tools_end_nothing() {
    let result = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[{{"type":"text","text":"{KNOWN}"}}],"isError":true}}}}"#
    );
    let other = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"Browser session not found"}}"#;
    for fault in [
        json_body(200, &result),
        json_body(200, &rpc(-32602, "$ID")),
        json_body(200, &rpc(7, "$ID")),
        json_body(200, other),
        json_body(500, other),
        json_body(422, &rpc(-32000, "$ID")),
        json!({"status": 500, "body": "the session crashed"}),
    ] {
        let fixture = HttpFixture::new(&script(&fault, 1, 2));
        let source = fixture.instance().await;
        for _ in 0..2 {
            let answer = echo_by(&source, "x").await;
            assert!(
                !answer.is_err_and(|failure| is_lost(&failure, true)),
                "{fault}"
            );
        }
        assert!(echo_by(&source, "x").await.is_ok());
        assert_eq!(sessions(&fixture), 1, "{fault}");
        source.stop().await;
    }
}

#[tokio::test]
async fn server_that_loses_every_session_gets_one_in_ten_seconds() {
    for (fault, executed) in [
        (json!({"status": 404}), false),
        (json!({"status": 401, "body": "Session expired"}), false),
        (json_body(200, &rpc(-32603, "$ID")), true),
    ] {
        let fixture = HttpFixture::new(&script(&fault, 1, u64::MAX));
        let source = fixture.instance().await;
        for call in 0..2 {
            let failure = echo_by(&source, &format!("n-{call}")).await.unwrap_err();
            assert!(is_lost(&failure, executed), "{fault}: {failure:?}");
        }
        for call in 2..20 {
            let failure = echo_by(&source, &format!("n-{call}")).await.unwrap_err();
            let CallFailure::Unavailable {
                failure,
                retry_after,
            } = failure
            else {
                panic!("nothing was sent: {failure:?}")
            };
            assert_eq!(failure.cause, SourceCause::SessionEnded);
            assert!(
                retry_after > Some(Duration::from_secs(5)),
                "{retry_after:?}"
            );
        }
        let calls = fixture.requests(&json!({"rpc_method": "tools/call"}));
        assert_eq!((sessions(&fixture), calls.len()), (2, 2), "{fault}");
        source.stop().await;
    }
}

/// Opens a session, makes two calls of which the first has this fault, and returns the ids that they were sent with.
async fn sent_ids(fault: &Value) -> (Session, Vec<Value>) {
    let fixture = HttpFixture::new(&script(fault, 1, 1));
    let session = fixture.session().await;
    for _ in 0..2 {
        // The second call may be refused with the session that the server does not know.
        let _ = echo(&session, "x").await;
    }
    let calls = fixture.requests(&json!({"rpc_method": "tools/call"}));
    let ids = calls.iter().map(|call| call["session"].clone());
    (session, ids.collect())
}

#[tokio::test]
async fn session_id_of_a_successful_answer_replaces_the_one_of_its_request() {
    let named = json!({"Mcp-Session-Id": "the-next-one"});
    let (session, ids) = sent_ids(&json!({ "headers": named })).await;
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[1], "the-next-one");
    assert_eq!(session.session_id().as_deref(), Some("the-next-one"));
}

#[tokio::test]
async fn session_id_of_a_refusal_or_an_answer_to_another_request_is_not_used() {
    let named = json!({"Mcp-Session-Id": "of-the-attacker", "Content-Type": "application/json"});
    let of_another = r#"{"jsonrpc":"2.0","id":9999,"result":{"content":[]}}"#;
    for fault in [
        json!({"status": 401, "headers": named}),
        json!({"status": 403, "headers": named}),
        json!({"status": 404, "headers": named}),
        json!({"status": 500, "headers": named}),
        json!({"headers": named, "body": of_another}),
    ] {
        let (session, ids) = sent_ids(&fault).await;
        assert!(!ids.contains(&json!("of-the-attacker")), "{fault}: {ids:?}");
        let id = session.session_id();
        assert_ne!(id.as_deref(), Some("of-the-attacker"), "{fault}");
    }
}

#[tokio::test]
async fn stream_that_is_refused_with_its_session_ends_the_session() {
    for refusal in [
        json!({"status": 401, "body": "Unauthorized: No valid session ID provided"}),
        json!({"status": 410}),
        json_body(400, &rpc(-32000, "null")),
        json_body(500, &rpc(-32603, "null")),
    ] {
        let get = json!({"http_method": "GET"});
        let rules = json!([
            {"on": get, "nth": 1, "do": {"open_ms": 100}},
            {"on": get, "nth": 2, "do": refusal},
        ]);
        let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
        let source = fixture.instance().await;
        eventually("a new session is opened", || sessions(&fixture) == 2).await;
        until(&source, |status| {
            status.state == State::Ready && status.attempts == 2
        })
        .await;
        source.stop().await;
    }
}
