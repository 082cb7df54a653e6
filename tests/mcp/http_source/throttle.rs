//! Servers that ask for a pause, refuse the credentials or break connections: how often they are asked again.

use std::time::Duration;

use broker_mcp::{CallFailure, State};
use broker_model::SourceCause;
use harness::{http_script, on_echo};
use serde_json::{Value, json};

use super::{HttpFixture, echo_by, eventually, start, until};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// A refusal for some seconds.
fn busy(status: u16, seconds: Option<u64>) -> Value {
    let seconds = seconds.map_or(Value::Null, |seconds| json!(seconds.to_string()));
    json!({"status": status, "headers": {"Retry-After": seconds}})
}

fn at(request: &Value) -> u64 {
    request["at_ms"].as_u64().expect("a time")
}

/// The retry delay of a call that was not sent.
fn retry_after(failure: &CallFailure) -> Duration {
    assert!(!failure.maybe_executed(), "{failure:?}");
    match failure {
        CallFailure::Unavailable { retry_after, .. } => retry_after.expect("a retry delay"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn pause_that_a_server_asks_for_is_kept_and_the_source_stays_ready() {
    for (era, status) in [("legacy", 429), ("modern", 503)] {
        let rules = json!([{"on": {"tool": "echo"}, "nth": 1, "do": busy(status, Some(2))}]);
        let fixture = HttpFixture::of_era(era, &json!({"rules": rules, "get": 405}));
        let source = fixture.instance().await;
        // It is sent beside the first calls, so it would be counted in the pause.
        let stream = match era {
            "legacy" => json!({"method": "GET"}),
            _ => json!({"rpc_method": "subscriptions/listen"}),
        };
        eventually("the stream is asked for", || {
            !fixture.requests(&stream).is_empty()
        })
        .await;
        let failure = echo_by(&source, "first").await.unwrap_err();
        match status {
            // A server refuses with 429 before it executes anything.
            429 => assert_eq!(retry_after(&failure).as_secs(), 2, "{failure:?}"),
            _ => assert!(
                matches!(
                    failure,
                    CallFailure::Http {
                        status: 503,
                        maybe_executed: true
                    }
                ),
                "{failure:?}"
            ),
        }
        until(&source, |status| status.next_attempt.is_some()).await;
        let before = fixture.requests(&json!({})).len();
        // Nothing is sent, neither calls nor notifications.
        for _ in 0..50 {
            let failure = echo_by(&source, "early").await.unwrap_err();
            assert!(retry_after(&failure) <= Duration::from_secs(2));
        }
        let mut sent = fixture.requests(&json!({}));
        let refused = fixture.requests(&json!({"tool": "echo"}));
        // The listing after the stream has opened may be on its way when the pause begins.
        let is_under_way = |request: &Value| {
            request["rpc_method"] == "tools/list" && at(request) <= at(&refused[0]) + 50
        };
        let mut later = sent.split_off(before);
        later.retain(|request| !is_under_way(request));
        assert_eq!(later, Vec::<Value>::new(), "{era}");
        let mut answer = echo_by(&source, "late").await;
        while let Err(failure) = answer {
            tokio::time::sleep(retry_after(&failure).min(Duration::from_secs(2))).await;
            answer = echo_by(&source, "late").await;
        }
        let calls = fixture.requests(&json!({"tool": "echo"}));
        assert_eq!(calls.len(), 2, "{era}");
        let pause = at(&calls[1]) - at(&calls[0]);
        assert!(
            pause >= 2000,
            "{era}: the next request came after {pause} ms"
        );
        assert_eq!(fixture.executions("late"), 1);
        let status = source.status().borrow().clone();
        assert_eq!((status.state, status.restarts), (State::Ready, 0), "{era}");
        assert_eq!(status.next_attempt, None);
        source.stop().await;
    }
}

#[tokio::test]
async fn pause_without_a_usable_time_is_five_seconds_and_at_most_an_hour() {
    for (given, expected) in [(None, 5), (Some("soon"), 5), (Some("999999999"), 3600)] {
        let fault = json!({"status": 429, "headers": {"Retry-After": given}});
        let fixture = HttpFixture::with_fault("modern", &fault);
        let source = fixture.instance().await;
        let failure = echo_by(&source, "x").await.unwrap_err();
        assert_eq!(retry_after(&failure).as_secs(), expected, "{given:?}");
        source.stop().await;
    }
}

#[tokio::test]
async fn pause_during_a_start_delays_the_next_attempt() {
    let on = |method: &str| json!({"method": method});
    for (era, method, requests) in [
        ("modern", "server/discover", 1),
        ("legacy", "initialize", 2),
        ("modern", "tools/list", 2),
    ] {
        let rules = json!([{"on": on(method), "nth": 1, "do": busy(503, Some(3))}]);
        let http = json!({"rules": rules, "get": 405, "probe": {"status": 404}});
        let fixture = HttpFixture::of_era(era, &http);
        let source = start(fixture.spec());
        let down = until(&source, |status| status.state == State::Backoff).await;
        let failure = down.failure.expect("a failure");
        assert_eq!(failure.cause, SourceCause::Unreachable, "{failure}");
        let sent = fixture.requests(&json!({"rpc_method": method}));
        // A subscription may be opened beside the listing.
        let all = fixture.requests(&json!({}));
        let all = all
            .iter()
            .filter(|request| request["rpc_method"] != "subscriptions/listen");
        assert_eq!((sent.len(), all.count()), (1, requests), "{era} {method}");
        let failure = echo_by(&source, "x").await.unwrap_err();
        assert!(
            retry_after(&failure) > Duration::from_secs(1),
            "{failure:?}"
        );
        until(&source, |status| status.state == State::Ready).await;
        let opening = if era == "modern" {
            "server/discover"
        } else {
            "initialize"
        };
        let openings = fixture.requests(&json!({"rpc_method": opening}));
        let last = openings.last().expect("another attempt");
        assert!(at(last) - at(&sent[0]) >= 3000, "{era} {method}");
        source.stop().await;
    }
}

#[tokio::test]
async fn pause_outlasts_the_session_in_which_the_server_asked_for_it() {
    let rules = json!([
        {"on": {"tool": "echo"}, "nth": 1, "do": {"status": 429, "delay_ms": 300, "headers": {"Retry-After": "3"}}},
        {"on": {"tool": "slow"}, "do": {"status": 404, "delay_ms": 900}},
    ]);
    let fixture = HttpFixture::of_era("legacy", &json!({"rules": rules, "get": 405}));
    let source = fixture.instance().await;
    let slow = source.call(
        broker_mcp::ServerCall::new("slow", br#"{"ms":1}"#),
        super::WAIT_TIMEOUT,
    );
    let (busy, ended) = tokio::join!(echo_by(&source, "x"), slow);
    retry_after(&busy.unwrap_err());
    assert!(ended.is_err());
    let before = at(&fixture.requests(&json!({"tool": "echo"}))[0]);
    until(&source, |status| {
        status.state == State::Ready && status.attempts == 2
    })
    .await;
    let next = fixture.requests(&json!({"rpc_method": "initialize"}));
    let next = next.last().map(at).expect("another handshake");
    assert!(next - before >= 3000, "{} ms", next - before);
    source.stop().await;
}

#[tokio::test]
async fn pause_applies_to_streams_of_announcements() {
    for (era, on) in [
        ("legacy", json!({"http_method": "GET"})),
        ("modern", json!({"method": "subscriptions/listen"})),
    ] {
        let rules = json!([{"on": on, "nth": 1, "do": busy(503, Some(2))}]);
        let fixture = HttpFixture::of_era(era, &json!({ "rules": rules }));
        let source = start(fixture.spec());
        let members = match era {
            "legacy" => json!({"method": "GET"}),
            _ => json!({"rpc_method": "subscriptions/listen"}),
        };
        eventually("it is opened again", || {
            fixture.requests(&members).len() == 2
        })
        .await;
        let opened = fixture.requests(&members);
        let pause = at(&opened[1]) - at(&opened[0]);
        assert!(pause >= 2000, "{era}: {pause} ms");
        // The tools may have changed before it was a stream. The pause may delay the first listing until then.
        let lists = json!({"rpc_method": "tools/list"});
        eventually("the tools are listed while it is open", || {
            let listed = fixture.requests(&lists);
            listed.last().is_some_and(|last| at(last) >= at(&opened[1]))
        })
        .await;
        source.stop().await;
    }
}

#[tokio::test]
async fn stream_that_opens_during_the_first_listing_is_followed_by_another_listing() {
    // The stream opens after the request of the listing and before its answer.
    let stream = json!({"on": {"http_method": "GET"}, "nth": 1, "do": {"delay_ms": 500}});
    let listing = json!({"on": {"method": "tools/list"}, "nth": 1, "do": {"delay_ms": 3000}});
    let fixture = HttpFixture::of_era("legacy", &json!({"rules": [stream, listing]}));
    let source = start(fixture.spec());
    eventually("the tools are listed again", || fixture.events("list") >= 2).await;
    assert_eq!(fixture.requests(&json!({"method": "GET"})).len(), 1);
    source.stop().await;
}

#[tokio::test]
async fn credentials_that_are_refused_fail_the_source_without_further_requests() {
    for era in ERAS {
        for status in [401, 403] {
            let challenge = "Bearer realm=\"x\", error=\"invalid_token\"";
            let fault = json!({"status": status, "headers": {"WWW-Authenticate": challenge}});
            let fixture = HttpFixture::of_era(era, &json!({"get": 405}));
            let source = fixture.instance().await;
            let rules =
                json!({"get": 405, "rules": [{"on": {"http_method": "POST"}, "do": fault}]});
            fixture.script(&http_script(era, &rules));
            let failure = echo_by(&source, "x").await.unwrap_err();
            assert!(!failure.maybe_executed(), "{failure:?}");
            let failed = until(&source, |status| status.state == State::Failed).await;
            assert_eq!(failed.next_attempt, None);
            let failure = failed.failure.expect("a failure");
            assert_eq!(failure.cause, SourceCause::NeedsAuth);
            let challenge = failure.said.as_deref().unwrap_or_default();
            assert!(challenge.contains("invalid_token"), "{challenge}");
            let posted = || fixture.requests(&json!({"method": "POST"})).len();
            let before = posted();
            for _ in 0..20 {
                let failure = echo_by(&source, "x").await.unwrap_err();
                assert!(
                    matches!(&failure, CallFailure::Unavailable { failure, .. }
                        if failure.cause == SourceCause::NeedsAuth),
                    "{failure:?}"
                );
            }
            assert_eq!(
                posted(),
                before,
                "{era}: {status}: no request within a minute"
            );
            source.stop().await;
        }
    }
}

#[tokio::test]
async fn credentials_that_are_refused_at_the_start_cost_two_requests() {
    let required = json!({"require_headers": {"Authorization": "Bearer x"}});
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &required);
        let source = start(fixture.spec());
        let failed = until(&source, |status| status.state == State::Failed).await;
        assert_eq!(
            failed.failure.map(|failure| failure.cause),
            Some(SourceCause::NeedsAuth)
        );
        let posted = fixture.requests(&json!({"method": "POST"}));
        assert_eq!(posted.len(), 2, "{era}");
        source.stop().await;
    }
}

#[tokio::test]
async fn five_broken_connections_take_the_source_down_until_it_recovers() {
    for era in ERAS {
        let reset = http_script(
            era,
            &json!({"rules": [on_echo(&json!("reset"))], "get": 405}),
        );
        let fixture = HttpFixture::of_era(era, &json!({"get": 405}));
        let source = fixture.instance().await;
        fixture.script(&reset);
        for number in 1..=5 {
            let state = source.status().borrow().state;
            assert_eq!(state, State::Ready, "{era}: before failure {number}");
            let failure = echo_by(&source, "x").await.unwrap_err();
            assert!(failure.maybe_executed(), "{failure:?}");
        }
        let down = until(&source, |status| status.state != State::Ready).await;
        assert_eq!(down.state, State::Backoff, "{era}");
        let failure = down.failure.expect("a failure");
        assert_eq!(failure.cause, SourceCause::Unreachable);
        assert!(down.next_attempt.is_some());
        fixture.script(&http_script(era, &json!({"get": 405})));
        until(&source, |status| status.state == State::Ready).await;
        assert!(echo_by(&source, "again").await.is_ok());
        assert_eq!(
            (fixture.executions("x"), fixture.executions("again")),
            (5, 1)
        );
        source.stop().await;
    }
}

#[tokio::test]
async fn failures_of_calls_do_not_take_the_source_down() {
    for era in ERAS {
        let fixture = HttpFixture::of_era(era, &json!({"get": 405}));
        let source = fixture.instance().await;
        let error = json!({"code": -32000, "message": "x"});
        let failed = json!({"content": [], "isError": true});
        for (fault, on_call) in [
            (json!({"status": 500}), json!("ok")),
            (json!({"status": 502, "body": "<html>"}), json!("ok")),
            (json!({"status": 400}), json!("ok")),
            (json!({"status": 409, "body": error}), json!("ok")),
            (
                json!({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}),
                json!("ok"),
            ),
            (json!({}), json!({"rpc_error": error})),
            (json!({}), json!({"result": failed})),
            (
                json!({"headers": {"Content-Type": "text/html"}}),
                json!("ok"),
            ),
        ] {
            fixture.script(&json!({
                "era": era, "http": {"rules": [on_echo(&fault)], "get": 405}, "on_call": {"echo": on_call},
            }));
            for _ in 0..10 {
                let answer = echo_by(&source, "x").await;
                let is_failed_tool = answer
                    .as_ref()
                    .is_ok_and(|answer| answer.contains("isError"));
                assert!(is_failed_tool || answer.is_err(), "{answer:?}");
            }
        }
        let status = source.status().borrow().clone();
        assert_eq!((status.state, status.restarts), (State::Ready, 0), "{era}");
        fixture.script(&http_script(era, &json!({"get": 405})));
        assert!(echo_by(&source, "y").await.is_ok());
        source.stop().await;
    }
}

#[tokio::test]
async fn server_that_is_down_gets_at_most_three_requests_for_each_attempt() {
    for (fault, most) in [
        (json!({"status": 500}), 2),
        (json!("reset"), 2),
        (json!({"status": 404}), 3),
        // The third one asks for the authorization server.
        (json!({"status": 401}), 3),
        (json!({"status": 503}), 2),
    ] {
        let http = json!({"rules": [{"on": {}, "do": fault}]});
        let fixture = HttpFixture::of_era("both", &http);
        let source = start(fixture.spec());
        let down = until(&source, |status| status.attempts == 1).await;
        assert!(matches!(down.state, State::Backoff | State::Failed));
        let requests = fixture.requests(&json!({})).len();
        assert!(requests <= most, "{fault}: {requests} requests");
        source.stop().await;
    }
}
