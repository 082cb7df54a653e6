//! Sessions that a server ends: the source opens the next one, and no call is lost or executed twice.

use std::time::Duration;

use broker_mcp::{CallFailure, Instance, ServerCall, Session, State};
use broker_model::SourceCause;
use harness::{ChaosServer, http_script};
use serde_json::{Value, json};

use super::{HttpFixture, NAME, WAIT_TIMEOUT, echo, echo_by, eventually, join_all, until};

/// Ends all sessions that exist, with the number of the end.
fn end_sessions(fixture: &HttpFixture, number: u64) {
    fixture.script(&http_script("legacy", &json!({"end_sessions": number})));
}

fn opened(fixture: &HttpFixture) -> usize {
    fixture.requests(&json!({"rpc_method": "initialize"})).len()
}

/// Whether a call was refused with its session, before it was executed.
fn is_refused_with_session(failure: &CallFailure) -> bool {
    matches!(failure, CallFailure::Exited { failure, maybe_executed: false }
        if failure.cause == SourceCause::SessionEnded)
}

/// Calls as the broker does: once more if the call was refused with its session.
async fn call_as_broker(source: &Instance, text: &str) -> Result<String, CallFailure> {
    match echo_by(source, text).await {
        Err(failure) if is_refused_with_session(&failure) => echo_by(source, text).await,
        answer => answer,
    }
}

#[tokio::test]
async fn session_that_ended_is_followed_by_another_one_at_once() {
    // A stream that opens during a listing would be a cause of one more listing.
    let fixture = HttpFixture::of_era("legacy", &json!({"get": 405}));
    let source = fixture.instance().await;
    let ended = json!({"get": 405, "end_sessions": 1});
    fixture.script(&http_script("legacy", &ended));
    let failure = echo_by(&source, "one").await.unwrap_err();
    assert!(is_refused_with_session(&failure), "{failure:?}");
    assert_eq!(fixture.executions("one"), 0);
    assert!(echo_by(&source, "one").await.is_ok());
    assert_eq!(fixture.executions("one"), 1);
    assert_eq!(opened(&fixture), 2);
    let deleted = fixture.requests(&json!({"method": "DELETE"}));
    assert_eq!(deleted, [] as [Value; 0], "the server ended it itself");
    assert_eq!(fixture.events("list"), 2, "the tools are compared again");
    source.stop().await;
    assert_eq!(fixture.requests(&json!({"method": "DELETE"})).len(), 1);
}

#[tokio::test]
async fn session_that_ended_is_also_recognised_by_another_status() {
    for (status, body, is_session) in [
        (404, "", true),
        (400, "Bad Request: Session not found", true),
        (400, "Bad Request", false),
        (410, "", true),
    ] {
        let fixture = HttpFixture::of_era("legacy", &json!({}));
        let session = fixture.session().await;
        let fault = json!({"status": status, "body": body});
        let rules = json!({"rules": [harness::on_echo(&fault)]});
        fixture.script(&http_script("legacy", &rules));
        let failure = echo(&session, "x").await.unwrap_err();
        assert_eq!(
            is_refused_with_session(&failure),
            is_session,
            "{status} {body}"
        );
        if !is_session {
            assert!(matches!(failure, CallFailure::Http { .. }), "{failure:?}");
        }
        let next = echo(&session, "x").await.unwrap_err();
        assert_eq!(is_refused_with_session(&next), is_session);
    }
}

#[tokio::test]
async fn answer_404_without_a_session_ends_nothing() {
    for (era, sessions) in [("modern", true), ("legacy", false)] {
        let fixture = HttpFixture::of_era(era, &json!({ "sessions": sessions }));
        let session = fixture.session().await;
        let rules =
            json!({"sessions": sessions, "rules": [harness::on_echo(&json!({"status": 404}))]});
        fixture.script(&http_script(era, &rules));
        let failure = echo(&session, "x").await.unwrap_err();
        assert!(
            matches!(
                failure,
                CallFailure::Http {
                    status: 404,
                    maybe_executed: false
                }
            ),
            "{era}: {failure:?}"
        );
        fixture.script(&http_script(era, &json!({ "sessions": sessions })));
        assert!(echo(&session, "x").await.is_ok(), "{era}");
    }
}

#[tokio::test]
async fn session_end_lets_calls_in_flight_finish_and_refuses_the_others_unexecuted() {
    let fixture = HttpFixture::of_era("legacy", &json!({}));
    let session = fixture.session().await;
    let slow = session.call(ServerCall::new("slow", br#"{"ms":1500}"#), WAIT_TIMEOUT);
    let calls = async {
        eventually("the slow call is executed", || fixture.events("call") == 1).await;
        end_sessions(&fixture, 1);
        let calls = (0..20).map(|at| {
            let session = &session;
            async move { echo(session, &format!("refused-{at}")).await }
        });
        join_all(calls.collect()).await
    };
    let (slow, refused) = tokio::join!(slow, calls);
    assert!(slow.is_ok(), "{slow:?}");
    for failure in refused {
        let failure = failure.unwrap_err();
        assert!(is_refused_with_session(&failure), "{failure:?}");
    }
    assert_eq!(fixture.events("call"), 1);
}

#[tokio::test]
async fn calls_of_many_callers_survive_the_ends_of_their_sessions() {
    let fixture = HttpFixture::of_era("legacy", &json!({}));
    let source = fixture.instance().await;
    end_sessions(&fixture, 1);
    let calls = (0..30).map(|at| {
        let source = &source;
        async move { call_as_broker(source, &format!("n-{at}")).await }
    });
    for (at, answer) in join_all(calls.collect()).await.into_iter().enumerate() {
        assert!(answer.is_ok(), "{at}: {answer:?}");
        assert_eq!(fixture.executions(&format!("n-{at}")), 1);
    }
    assert_eq!(opened(&fixture), 2);
}

#[tokio::test]
async fn server_that_ends_every_session_gets_few_requests() {
    let fixture = HttpFixture::with_fault("legacy", &json!({"status": 404}));
    let source = fixture.instance().await;
    let mut refused = 0;
    for at in 0..200 {
        let failure = call_as_broker(&source, &format!("n-{at}"))
            .await
            .unwrap_err();
        assert!(!failure.maybe_executed(), "{failure:?}");
        refused += 1;
    }
    assert_eq!((refused, fixture.events("call")), (200, 0));
    // The next session is opened at once, those after it with growing delays.
    let opened = opened(&fixture);
    assert!((2..=4).contains(&opened), "{opened} sessions");
    let calls = fixture.requests(&json!({"rpc_method": "tools/call"})).len();
    assert!(calls <= 2 * opened, "{calls} calls were sent");
    source.stop().await;
}

#[tokio::test]
async fn server_that_moves_to_another_process_is_used_again() {
    for era in ["legacy", "modern"] {
        let chaos = harness::Chaos::new();
        chaos.script(NAME, &http_script(era, &json!({})));
        let server = ChaosServer::start(&chaos, NAME);
        let source = super::start(super::spec_of(&server.url));
        until(&source, |status| status.state == State::Ready).await;
        assert!(echo_by(&source, "before").await.is_ok());
        let address = server.address.clone();
        drop(server);
        let moved = ChaosServer::start_at(&chaos, NAME, &address);
        let mut sent = 0;
        let answer = loop {
            sent += 1;
            match call_as_broker(&source, &format!("after-{sent}")).await {
                Ok(answer) => break answer,
                Err(failure) => assert!(sent < 50, "{era}: {failure:?}"),
            }
        };
        assert!(answer.contains(&moved.pid().to_string()), "{era}: {answer}");
        assert!(sent <= 3, "{era}: {sent} calls until one was answered");
        for number in 1..=sent {
            assert!(chaos.executions(NAME, &format!("after-{number}")) <= 1);
        }
        source.stop().await;
    }
}

#[tokio::test]
async fn session_ids_that_are_not_valid_fail_the_handshake() {
    for ids in [
        json!(["a", "a"]),
        json!("a b"),
        json!("x".repeat(1025)),
        json!("é"),
    ] {
        let rules =
            json!([{"on": {"method": "initialize"}, "do": {"headers": {"Mcp-Session-Id": ids}}}]);
        let fixture = HttpFixture::of_era("legacy", &json!({ "rules": rules }));
        let opened = Session::open(&fixture.spec(), None).await;
        let failure = opened.expect_err("the handshake fails");
        assert_eq!(failure.cause, SourceCause::HandshakeFailed, "{failure}");
        assert!(failure.message.contains("session id"), "{failure}");
    }
}

#[tokio::test]
async fn stream_of_a_session_that_ended_ends_the_session_of_the_source() {
    // No call tells the source, but the stream that it opens again.
    let http = |number: u64| {
        let rules = json!([{"on": {"http_method": "GET"}, "nth": 1, "do": {"open_ms": 300}}]);
        http_script("legacy", &json!({"end_sessions": number, "rules": rules}))
    };
    let fixture = HttpFixture::new(&http(0));
    let source = fixture.instance().await;
    eventually("the stream is open", || fixture.events("stream") == 1).await;
    fixture.script(&http_script("legacy", &json!({"end_sessions": 1})));
    eventually("a new session is opened", || opened(&fixture) == 2).await;
    until(&source, |status| {
        status.state == State::Ready && status.attempts == 2
    })
    .await;
    tokio::time::timeout(Duration::from_secs(20), source.stop())
        .await
        .expect("it stops");
}
