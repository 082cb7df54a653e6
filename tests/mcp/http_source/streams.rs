//! Streams of servers: announcements that the tools changed, and answers whose stream is resumed.

use std::time::Duration;

use broker_mcp::{CallFailure, ServerCall};
use broker_model::SourceCause;
use harness::{http_script, on_echo};
use serde_json::{Value, json};

use super::{HttpFixture, WAIT_TIMEOUT, echo, echo_within, eventually, start};

/// A script of this era that announces a change when `notify` changes.
fn announcing(era: &str, http: &Value, notify: u64) -> Value {
    json!({"era": era, "http": http, "notify": notify})
}

#[tokio::test]
async fn announcement_on_the_open_stream_causes_a_listing() {
    for era in ["legacy", "modern"] {
        let fixture = HttpFixture::new(&announcing(era, &json!({}), 0));
        let source = fixture.instance().await;
        let stream = match era {
            "legacy" => json!({"method": "GET"}),
            _ => json!({"rpc_method": "subscriptions/listen"}),
        };
        eventually("the stream is open", || {
            fixture.requests(&stream).len() == 1
        })
        .await;
        for round in 1..=3 {
            let before = fixture.events("list");
            fixture.script(&announcing(era, &json!({}), round));
            eventually("the tools are listed", || fixture.events("list") > before).await;
        }
        assert_eq!(fixture.requests(&stream).len(), 1, "{era}: it stays open");
        source.stop().await;
    }
}

#[tokio::test]
async fn refusal_of_the_headers_of_a_call_causes_a_listing() {
    let mismatch = json!({"status": 400, "body": {"code": -32020, "message": "other headers"}});
    let fixture = HttpFixture::with_fault("modern", &mismatch);
    let source = fixture.instance().await;
    let session = source.session(WAIT_TIMEOUT).await.expect("it is ready");
    let before = fixture.events("list");
    let call = ServerCall::new("echo", br#"{"text":"x"}"#);
    let failure = session.call(call, WAIT_TIMEOUT).await.unwrap_err();
    assert!(matches!(failure, CallFailure::Rpc { code: -32020, .. }));
    eventually("the tools are listed", || fixture.events("list") > before).await;
    source.stop().await;
}

#[tokio::test]
async fn stream_of_announcements_that_ends_is_opened_again_and_counts_as_a_change() {
    for (era, on) in [
        ("legacy", json!({"http_method": "GET"})),
        ("modern", json!({"method": "subscriptions/listen"})),
    ] {
        let rules =
            json!([{"on": on, "nth": 1, "do": {"open_ms": 100, "events": {"priming": true}}}]);
        let fixture = HttpFixture::of_era(era, &json!({ "rules": rules }));
        let source = fixture.instance().await;
        let stream = match era {
            "legacy" => json!({"method": "GET"}),
            _ => json!({"rpc_method": "subscriptions/listen"}),
        };
        let before = fixture.events("list");
        eventually("it is opened again", || {
            fixture.requests(&stream).len() == 2
        })
        .await;
        eventually("the tools are listed", || fixture.events("list") > before).await;
        let opened = fixture.requests(&stream);
        let resumes = opened[1]["headers"]["last-event-id"].is_string();
        assert_eq!(resumes, era == "legacy");
        source.stop().await;
    }
}

#[tokio::test]
async fn server_without_a_stream_of_announcements_is_asked_for_it_once() {
    for status in [405, 404, 400, 501] {
        let fixture = HttpFixture::of_era("legacy", &json!({ "get": status }));
        let source = fixture.instance().await;
        let get = json!({"method": "GET"});
        eventually("it is asked", || !fixture.requests(&get).is_empty()).await;
        for at in 0..20 {
            assert!(super::echo_by(&source, &format!("{at}")).await.is_ok());
        }
        assert_eq!(fixture.requests(&get).len(), 1, "{status}");
        source.stop().await;
    }
}

#[tokio::test]
async fn stream_whose_last_event_is_unknown_is_opened_anew() {
    let rules = json!([
        {"on": {"http_method": "GET"}, "nth": 1, "do": {"open_ms": 50, "events": {"priming": true}}},
        {"on": {"http_method": "GET", "resume": true}, "do": {"status": 400}},
    ]);
    let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
    let source = fixture.instance().await;
    let get = json!({"method": "GET"});
    eventually("it is opened", || fixture.requests(&get).len() == 3).await;
    let with_id: Vec<_> = fixture
        .requests(&get)
        .iter()
        .map(|request| request["headers"]["last-event-id"].is_string())
        .collect();
    assert_eq!(with_id, [false, true, false]);
    source.stop().await;
}

/// A rule by which the stream of a call breaks off after this many events.
fn broken(after: u64, retry_ms: u64) -> Value {
    let events = json!({"priming": true, "resume_after": after, "retry_ms": retry_ms});
    json!({"on": {"http_method": "POST", "tool": "echo"}, "do": {"reply": "sse", "events": events}})
}

fn resumes(fixture: &HttpFixture) -> Vec<Value> {
    let mut requests = fixture.requests(&json!({"method": "GET"}));
    requests.retain(|request| request["headers"]["last-event-id"].is_string());
    requests
}

#[tokio::test]
async fn stream_of_a_call_that_breaks_off_is_resumed_after_its_last_event() {
    let cut = json!({"events": {"priming": true, "retry_ms": 100}, "reply": "sse", "cut": "event"});
    for rule in [broken(0, 100), json!({"on": {"tool": "echo"}, "do": cut})] {
        let fixture = HttpFixture::of_era("legacy", &json!({ "rules": [rule] }));
        let session = fixture.session().await;
        let answer = echo(&session, "whole").await.unwrap();
        assert!(answer.contains("whole"), "{answer}");
        assert_eq!(fixture.executions("whole"), 1);
        let resumed = resumes(&fixture);
        assert_eq!(resumed.len(), 1);
        let id = session.session_id();
        assert_eq!(
            resumed[0]["headers"]["mcp-session-id"].as_str(),
            id.as_deref()
        );
        session.stop().await;
    }
}

#[tokio::test]
async fn stream_of_a_call_is_resumed_ten_times_at_most() {
    let ends = json!({"on": {"http_method": "GET", "resume": true}, "do": {"events": {"priming": true, "resume_after": 0, "retry_ms": 0}}});
    let fixture = HttpFixture::of_era("legacy", &json!({"rules": [broken(0, 0), ends]}));
    let session = fixture.session().await;
    let failure = echo(&session, "x").await.unwrap_err();
    let CallFailure::Exited {
        failure,
        maybe_executed: true,
    } = failure
    else {
        panic!("{failure:?}")
    };
    assert_eq!(failure.cause, SourceCause::Unreachable);
    let resumed = resumes(&fixture);
    assert_eq!((resumed.len(), fixture.executions("x")), (10, 1));
    // The server asked for no wait at all.
    for pair in resumed.windows(2) {
        let wait = pair[1]["at_ms"].as_u64().unwrap() - pair[0]["at_ms"].as_u64().unwrap();
        assert!(wait >= 99, "resumed after {wait} ms");
    }
}

#[tokio::test]
async fn stream_that_is_not_resumed_fails_its_call() {
    for (status, cause) in [
        (405, SourceCause::Unreachable),
        (400, SourceCause::Unreachable),
        (500, SourceCause::Unreachable),
        (404, SourceCause::SessionEnded),
    ] {
        let refused =
            json!({"on": {"http_method": "GET", "resume": true}, "do": {"status": status}});
        let fixture = HttpFixture::of_era("legacy", &json!({"rules": [broken(0, 100), refused]}));
        let session = fixture.session().await;
        let failure = echo(&session, "x").await.unwrap_err();
        let CallFailure::Exited {
            failure,
            maybe_executed: true,
        } = failure
        else {
            panic!("{status}: {failure:?}")
        };
        assert_eq!(failure.cause, cause, "{status}");
        assert_eq!((resumes(&fixture).len(), fixture.executions("x")), (1, 1));
    }
}

#[tokio::test]
async fn stream_is_resumed_after_the_pause_that_the_server_asks_for() {
    let busy = json!({"status": 503, "headers": {"Retry-After": "1"}});
    let refused = json!({"on": {"http_method": "GET", "resume": true}, "nth": 1, "do": busy});
    let fixture = HttpFixture::of_era("legacy", &json!({"rules": [broken(0, 100), refused]}));
    let session = fixture.session().await;
    assert!(echo(&session, "x").await.is_ok());
    let resumed = resumes(&fixture);
    assert_eq!((resumed.len(), fixture.executions("x")), (2, 1));
    let wait = resumed[1]["at_ms"].as_u64().unwrap() - resumed[0]["at_ms"].as_u64().unwrap();
    assert!(wait >= 1000, "{wait} ms");
}

#[tokio::test]
async fn stream_is_not_resumed_during_a_long_wait_or_in_the_modern_era() {
    let fixture = HttpFixture::of_era("legacy", &json!({"rules": [broken(0, 3_600_000)]}));
    let session = fixture.session().await;
    let waiting = echo_within(&session, "x", Duration::from_millis(500)).await;
    assert!(
        matches!(waiting, Err(CallFailure::Timeout { .. })),
        "{waiting:?}"
    );
    assert_eq!(resumes(&fixture), [] as [Value; 0]);

    let cut = json!({"events": {"priming": true}, "reply": "sse", "cut": "event"});
    let rules = json!([{"on": {"tool": "echo"}, "do": cut}]);
    let fixture = HttpFixture::new(&http_script("modern", &json!({ "rules": rules })));
    let session = fixture.session().await;
    let failure = echo(&session, "x").await.unwrap_err();
    assert!(failure.maybe_executed(), "{failure:?}");
    assert_eq!(
        fixture.requests(&json!({"method": "GET"})),
        [] as [Value; 0]
    );
}

#[tokio::test]
async fn server_that_requests_something_on_a_stream_is_answered() {
    let request = r#"{"jsonrpc":"2.0","id":"s-1","method":"ping"}"#;
    let other = r#"{"jsonrpc":"2.0","id":"s-2","method":"sampling/createMessage","params":{}}"#;
    let fault = json!({"reply": "sse", "before": [request, other]});
    let fixture = HttpFixture::with_fault("legacy", &fault);
    let source = start(fixture.spec());
    assert!(super::echo_by(&source, "x").await.is_ok());
    eventually("both are answered", || fixture.events("response") == 2).await;
    let answers = fixture.chaos.events(super::NAME, "response");
    let of = |id: &str| {
        let found = answers.iter().find(|answer| answer["message"]["id"] == id);
        found.expect("it is answered")["message"].clone()
    };
    assert_eq!(of("s-1")["result"], json!({}));
    assert_eq!(of("s-2")["error"]["code"], -32601);
    source.stop().await;
}

#[tokio::test]
async fn connection_of_a_stream_that_ends_after_its_answer_is_used_again() {
    for era in ["legacy", "modern"] {
        let http = json!({"rules": [on_echo(&json!({"reply": "sse"}))]});
        let fixture = HttpFixture::of_era(era, &http);
        let session = fixture.session().await;
        for _ in 0..50 {
            echo(&session, "x").await.unwrap();
        }
        assert_eq!(fixture.executions("x"), 50);
        // A call may begin before the last stream has ended.
        let connections = fixture.events("connected");
        assert!(connections < 25, "{era}: {connections} connections");
        session.stop().await;
    }
}
