//! The older transport HTTP+SSE, after streamable HTTP was refused.

use std::time::Duration;

use broker_mcp::{CallFailure, Carrier, ServerCall, Session, State};
use broker_model::SourceCause;
use harness::{Chaos, ChaosServer, http_script};
use serde_json::{Value, json};

use super::{HttpFixture, NAME, echo, echo_by, eventually, start, until};

/// The members of `http` with those of the older transport.
fn older(members: &Value) -> Value {
    let mut http = json!({"transport": "sse"});
    for (name, value) in members.as_object().expect("an object") {
        http[name] = value.clone();
    }
    http
}

fn fixture(members: &Value) -> HttpFixture {
    HttpFixture::of_era("legacy", &older(members))
}

#[tokio::test]
async fn older_transport_lists_calls_and_cancels() {
    let fixture = fixture(&json!({}));
    let session = fixture.session().await;
    assert_eq!(session.carrier(), Carrier::HttpSse);
    let tools = session.snapshot().await.unwrap().tools;
    assert!(tools.iter().any(|tool| tool.name() == "echo"));
    assert!(echo(&session, "x").await.unwrap().contains('x'));
    let call = ServerCall::new("slow", br#"{"ms":3600000}"#);
    let late = session.call(call, Duration::from_millis(300)).await;
    assert!(matches!(late, Err(CallFailure::Timeout { .. })), "{late:?}");
    eventually("it is cancelled", || fixture.events("cancelled") == 1).await;
    let ids = fixture.requests(&json!({"tool": "slow"}));
    let cancelled = fixture.chaos.events(NAME, "cancelled");
    assert_eq!(cancelled[0]["id"], ids[0]["rpc_id"]);
    session.stop().await;
    eventually("the stream is closed", || {
        fixture
            .chaos
            .events(NAME, "http-end")
            .iter()
            .any(|end| end["end"] == "client-closed")
    })
    .await;
}

#[tokio::test]
async fn older_transport_whose_endpoint_is_in_another_origin_sends_nothing_there() {
    let chaos = Chaos::new();
    let other = ChaosServer::start(&chaos, NAME);
    for endpoint in [
        format!("http://{}/messages?session=$SESSION", other.address),
        format!("//{}/messages", other.address),
        "https://127.0.0.1:1/".to_owned(),
        "http://user:password@127.0.0.1:1/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://[broken".to_owned(),
    ] {
        let fixture = fixture(&json!({ "endpoint": endpoint }));
        let source = start(fixture.spec());
        let failed = until(&source, |status| status.attempts == 1).await;
        let failure = failed.failure.expect("a failure");
        assert_eq!(failure.cause, SourceCause::Protocol, "{failure}");
        assert!(failure.message.contains("not in the origin"), "{failure}");
        source.stop().await;
    }
    assert_eq!(chaos.requests(NAME, &json!({})), [] as [Value; 0]);
}

#[tokio::test]
async fn older_transport_endpoint_of_the_same_origin_may_be_relative_or_absolute() {
    for endpoint in [
        "messages?session=$SESSION",
        "/messages?session=$SESSION",
        "$ORIGIN/messages?session=$SESSION",
    ] {
        let fixture = fixture(&json!({ "endpoint": endpoint }));
        let session = fixture.session().await;
        assert!(echo(&session, "x").await.is_ok(), "{endpoint}");
    }
}

#[tokio::test]
async fn older_transport_without_an_endpoint_or_a_stream_fails_the_start() {
    let silent = fixture(&json!({"endpoint": null}));
    let failure = Session::open(&silent.spec(), None).await.unwrap_err();
    assert_eq!(failure.cause, SourceCause::HandshakeFailed);
    let part = "did not name its URL for messages";
    assert!(failure.message.contains(part), "{failure}");
    for fault in [
        json!({"endless": {"kind": "event"}}),
        json!({"raw": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"}),
        json!({"status": 405}),
        json!("reset"),
        json!({"raw": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n"}),
    ] {
        let rules = json!([{"on": {"http_method": "GET"}, "do": fault}]);
        let fixture = fixture(&json!({ "rules": rules }));
        let opened = Session::open(&fixture.spec(), None).await;
        assert!(opened.is_err(), "{fault}");
    }
}

#[tokio::test]
async fn older_transport_whose_stream_ends_fails_its_calls_and_starts_again() {
    let rules = json!([{"on": {"tool": "echo", "reply": true}, "nth": 1, "do": {"cut": "event"}}]);
    let fixture = fixture(&json!({ "rules": rules }));
    let source = fixture.instance().await;
    let failure = echo_by(&source, "lost").await.unwrap_err();
    let CallFailure::Exited {
        failure,
        maybe_executed: true,
    } = failure
    else {
        panic!("{failure:?}")
    };
    assert_eq!(failure.cause, SourceCause::Unreachable);
    until(&source, |status| {
        status.state == State::Ready && status.attempts == 2
    })
    .await;
    assert!(echo_by(&source, "kept").await.is_ok());
    assert_eq!(
        (fixture.executions("lost"), fixture.executions("kept")),
        (1, 1)
    );
    source.stop().await;
}

#[tokio::test]
async fn older_transport_that_refuses_a_message_has_the_cause_of_its_status() {
    for (status, state, cause) in [
        (401, State::Failed, SourceCause::NeedsAuth),
        (403, State::Failed, SourceCause::NeedsAuth),
        (503, State::Backoff, SourceCause::Unreachable),
    ] {
        let fixture = fixture(&json!({}));
        let source = fixture.instance().await;
        let fault = json!({"status": status, "headers": {"Retry-After": "30"}});
        let rules = json!({"rules": [harness::on_echo(&fault)]});
        fixture.script(&http_script("legacy", &older(&rules)));
        assert!(echo_by(&source, "x").await.is_err());
        let down = until(&source, |status| status.state == state).await;
        let failure = down.failure.expect("a failure");
        assert_eq!(failure.cause, cause, "{status}: {failure}");
        let pause = (status == 503).then_some(Duration::from_secs(30));
        assert_eq!(failure.retry_after, pause, "{status}");
        assert_eq!(fixture.executions("x"), 0);
        source.stop().await;
    }
}

#[tokio::test]
async fn older_transport_call_that_is_refused_with_its_session_was_not_executed() {
    for (refusal, executed) in [
        (json!({"status": 404}), false),
        (json!({"status": 401, "body": "Invalid session ID"}), false),
        (json!({"status": 500, "body": "Session not found"}), true),
    ] {
        let rule = json!({"on": {"tool": "echo"}, "nth": 1, "do": refusal});
        let fixture = fixture(&json!({ "rules": [rule] }));
        let source = fixture.instance().await;
        let failure = echo_by(&source, "x").await.unwrap_err();
        let CallFailure::Exited {
            failure,
            maybe_executed,
        } = failure
        else {
            panic!("{refusal}: {failure:?}")
        };
        assert_eq!(failure.cause, SourceCause::SessionEnded, "{refusal}");
        assert_eq!(maybe_executed, executed, "{refusal}");
        assert!(echo_by(&source, "y").await.is_ok(), "{refusal}");
        assert_eq!((fixture.executions("x"), fixture.events("list")), (0, 2));
        source.stop().await;
    }
}

#[tokio::test]
async fn older_transport_with_an_endless_event_or_floods_stays_within_its_limits() {
    for (fault, is_answered) in [
        (json!({"endless": {"kind": "event"}}), false),
        (
            json!({"endless": {"kind": "comments", "bytes": 1 << 19}}),
            true,
        ),
        // A stream without a message ends.
        (
            json!({"endless": {"kind": "comments", "bytes": 4 << 20}}),
            false,
        ),
        (
            json!({"endless": {"kind": "events", "bytes": 4 << 20}}),
            true,
        ),
        (
            json!({"before": [r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#]}),
            true,
        ),
    ] {
        let rules = json!([{"on": {"tool": "echo", "reply": true}, "do": fault}]);
        let fixture = fixture(&json!({ "rules": rules }));
        let session = fixture.session().await;
        let answer = echo(&session, "x").await;
        assert_eq!(answer.is_ok(), is_answered, "{fault}: {answer:?}");
    }
}

/// The statuses with which the server refuses requests at `/`.
fn nothing_at_the_root(status: u16) -> Value {
    json!([{"on": {"path": "/"}, "do": {"status": status}}])
}

#[tokio::test]
async fn source_without_a_path_is_tried_as_written_and_then_at_mcp() {
    for era in ["legacy", "modern", "both"] {
        for status in [404, 405] {
            let http = json!({ "rules": nothing_at_the_root(status) });
            let fixture = HttpFixture::of_era(era, &http);
            let spec = super::spec_of(&format!("http://{}", fixture.server.address));
            let session = Session::open(&spec, None).await.unwrap();
            assert_eq!(session.url_path(), Some("/mcp"), "{era} {status}");
            assert!(echo(&session, "x").await.unwrap().contains('x'));
            let at_root = fixture.requests(&json!({"path": "/", "method": "POST"}));
            assert_eq!(at_root.len(), 2, "both handshakes: {at_root:?}");
            session.stop().await;
        }
        // What answers at the URL as written is used.
        let fixture = HttpFixture::of_era(era, &json!({"path": "/"}));
        let spec = super::spec_of(&format!("http://{}", fixture.server.address));
        let session = Session::open(&spec, None).await.unwrap();
        assert_eq!(session.url_path(), None);
        session.stop().await;
        assert_eq!(fixture.requests(&json!({"path": "/mcp"})), [] as [Value; 0]);
    }
}

#[tokio::test]
async fn source_is_not_tried_at_mcp_after_another_refusal_or_with_a_path() {
    for status in [401, 403, 400, 500] {
        let http = json!({ "rules": nothing_at_the_root(status) });
        let fixture = HttpFixture::of_era("legacy", &http);
        let spec = super::spec_of(&format!("http://{}", fixture.server.address));
        assert!(Session::open(&spec, None).await.is_err(), "{status}");
        assert_eq!(fixture.requests(&json!({"path": "/mcp"})), [] as [Value; 0]);
    }
    let rules = json!([{"on": {"path": "/other"}, "do": {"status": 404}}]);
    let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
    let spec = super::spec_of(&format!("http://{}/other", fixture.server.address));
    assert!(Session::open(&spec, None).await.is_err());
    assert_eq!(fixture.requests(&json!({"path": "/mcp"})), [] as [Value; 0]);
    // Nothing at either place.
    let rules = json!([{"on": {}, "do": {"status": 404}}]);
    let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
    let spec = super::spec_of(&format!("http://{}", fixture.server.address));
    let failure = Session::open(&spec, None).await.unwrap_err();
    let part = "nothing answers at `/mcp` either";
    assert!(failure.message.contains(part), "{failure}");
}
