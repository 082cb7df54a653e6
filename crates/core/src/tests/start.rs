//! Plain starts that go on without sources that cannot be reached, and the error after a refused start.

use broker_mcp::{SourceFailure, State};
use broker_model::{CallCode, SourceCause};
use serde_json::{Value, json};

use super::fixture::{CALLER, Fixture, call, fixture_of, fixture_with, member_of, snapshot};
use crate::sources::startup_gate::REACH_TIMEOUT;
use crate::{Broker, CoreError, RefusalCause, StartMode};

/// A plain start in which `/a` is required and `/a/deep/b` need not be reached.
fn start() -> Fixture {
    let serve = json!({"on_unreachable": "serve"});
    fixture_of(StartMode::Plain, json!({}), serve)
}

fn failure() -> SourceFailure {
    SourceFailure {
        stderr: vec!["no licence".to_owned()],
        ..SourceFailure::new(SourceCause::ExitBeforeReady, "it exited with code 1")
    }
}

async fn settled(broker: &Fixture, source: usize) {
    while !broker
        .core
        .0
        .call_path()
        .fleet
        .drift_state
        .gate
        .is_settled(source)
    {
        tokio::task::yield_now().await;
    }
}

async fn refusal_of(broker: &Fixture, path: &str) -> Box<CoreError> {
    let refused = broker.call(path, json!({"text": ""})).await;
    refused.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn source_that_hangs_holds_the_gate_ten_seconds_and_is_compared_later() {
    let broker = start();
    let began = tokio::time::Instant::now();
    broker.matches(0);
    let early = refusal_of(&broker, "/a/echo").await;
    assert_eq!(early.code, CallCode::Starting);
    let outcome = broker.core.services().first_verdict().await;
    assert_eq!(began.elapsed(), REACH_TIMEOUT);
    assert_eq!(outcome.refuse, None);
    assert_eq!(outcome.report.sources[0].source.as_str(), "/a/deep/b");
    let health = broker.core.services().health();
    assert!(health.ready && health.degraded);
    broker.sources[0].answer(Ok("{}"));
    assert!(broker.call("/a/echo", json!({"text": ""})).await.is_ok());

    // No call waits for it.
    let began = tokio::time::Instant::now();
    let error = refusal_of(&broker, "/a/deep/b/echo").await;
    assert!(began.elapsed() < REACH_TIMEOUT);
    assert_eq!(error.code, CallCode::SourceUnavailable);
    assert_eq!(error.details.unwrap()["cause"], "startup_timeout");

    // Its drift withdraws the tool, and its match restores it.
    broker.lists(1, &snapshot(&[]));
    let error = refusal_of(&broker, "/a/deep/b/echo").await;
    assert_eq!(error.code, CallCode::ToolWithdrawn);
    assert!(
        broker.core.services().health().ready
            && broker.core.services().start_refusal(&CALLER).is_none()
    );
    broker.matches(1);
    broker.sources[1].answer(Ok("{}"));
    let answer = broker.call("/a/deep/b/echo", json!({"text": ""})).await;
    assert!(answer.is_ok());
    assert!(!broker.core.services().health().degraded);
}

#[tokio::test(start_paused = true)]
async fn source_that_fails_holds_no_gate_and_is_started_again() {
    let broker = start();
    broker.sources[1].set(State::Backoff, Some(failure()));
    settled(&broker, 1).await;
    let began = tokio::time::Instant::now();
    broker.matches(0);
    let outcome = broker.core.services().first_verdict().await;
    assert_eq!((outcome.refuse, began.elapsed().is_zero()), (None, true));
    // It was not stopped.
    assert_eq!(broker.sources[1].status().borrow().state, State::Backoff);
}

#[tokio::test(start_paused = true)]
async fn drift_of_a_restarted_source_before_the_gate_opens_refuses_the_start() {
    let broker = start();
    broker.sources[1].set(State::Backoff, Some(failure()));
    settled(&broker, 1).await;
    broker.lists(1, &snapshot(&[]));
    broker.matches(0);
    let outcome = broker.core.services().first_verdict().await;
    assert_eq!(outcome.refuse, Some(RefusalCause::Drift));
    let error = refusal_of(&broker, "/a/echo").await;
    assert_eq!(
        (error.code, error.retryable, error.maybe_executed),
        (CallCode::StartRefused, false, Some(false))
    );
    let source = json!({"source": "/a/deep/b", "class": "gone"});
    assert_eq!(
        error.details.unwrap(),
        json!({"source": "/a/deep/b", "class": "gone", "sources": [source]})
    );
}

#[tokio::test(start_paused = true)]
async fn start_without_a_required_source_is_refused_with_its_cause() {
    let broker = start();
    broker.lists(1, &snapshot(&[]));
    broker.sources[0].set(State::Backoff, Some(failure()));
    let outcome = broker.core.services().first_verdict().await;
    assert_eq!(outcome.refuse, Some(RefusalCause::Unchecked));
    let error = broker.core.services().start_refusal(&CALLER).unwrap();
    let details: Value = error.details.unwrap();
    assert_eq!(
        (&details["source"], &details["class"], &details["cause"]),
        (
            &json!("/a"),
            &json!("unchecked"),
            &json!("exit_before_ready")
        )
    );
    assert_eq!(details["sources"][1]["class"], "gone", "{details}");
    let remedy = SourceCause::ExitBeforeReady.remedy();
    assert_eq!(error.hint.as_deref(), Some(remedy));
    assert!(!details.to_string().contains("licence"), "{details}");
}

#[tokio::test]
async fn start_refusal_names_only_sources_that_exist_for_the_caller() {
    let broker = fixture_with(json!([
        {"allow": ["/**"], "to": ["first"]},
        {"allow": ["/a/echo"], "to": ["second"]},
    ]));
    broker.matches(0);
    broker.lists(1, &snapshot(&[]));
    broker.core.services().first_verdict().await;
    let narrow = member_of(&["second"]);
    let refused = call(&broker.core, &narrow, "/a/echo", json!({"text": ""})).await;
    let error = refused.unwrap_err();
    assert_eq!(error.code, CallCode::StartRefused);
    let text = format!("{error} {:?}", error.details);
    assert!(!text.contains("deep"), "{text}");
    let whole = broker.core.services().start_refusal(&CALLER).unwrap();
    assert!(whole.message.contains("`/a/deep/b`"), "{whole}");
}

#[tokio::test(start_paused = true)]
async fn broker_without_a_ready_source_is_not_ready() {
    let broker = start();
    broker.matches(0);
    broker.core.services().first_verdict().await;
    assert!(broker.core.services().health().ready);
    broker.sources[0].set(State::Backoff, Some(failure()));
    let health = broker.core.services().health();
    assert!(!health.ready && health.degraded);
    broker.matches(1);
    let health = broker.core.services().health();
    assert!(health.ready && health.degraded);
    broker.matches(0);
    let health = broker.core.services().health();
    assert!(health.ready && !health.degraded);
}
