//! Calls that wait for their source to start: the end of the wait, and what happens to the call meanwhile.

use std::sync::Arc;
use std::time::Duration;

use broker_mcp::{SourceFailure, State};
use broker_model::{CallCode, SourceCause};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::fixture::{
    CALLER, Fixture, call, call_in, context, fixture_of, fixture_with_members, member_of, served,
    setup, snapshot,
};
use crate::call::waiting::MAX_STARTING_CALLS;
use crate::{Broker, CallContext, CoreError, Identity, Outcome, Revocation, StartMode};

/// A start in which drift withdraws, with these further members of `/a`.
fn start(of_a: serde_json::Value) -> Fixture {
    let withdraw = json!({"on_drift": "withdraw", "on_unreachable": "serve"});
    let mut a = withdraw.clone();
    let more = of_a.as_object().unwrap().clone();
    a.as_object_mut().unwrap().extend(more);
    fixture_of(StartMode::Plain, a, withdraw)
}

#[tokio::test(start_paused = true)]
async fn call_that_arrives_while_the_sources_are_launched_waits() {
    let withdraw = json!({"on_drift": "withdraw", "on_unreachable": "serve"});
    let core = setup(StartMode::Plain, withdraw.clone(), withdraw).unwrap();
    let early = core.clone();
    let waits =
        tokio::spawn(async move { call(&early, &CALLER, "/a/echo", json!({"text": ""})).await });
    settle_tasks().await;
    let broker = served(core);
    broker.sources[0].answer(Ok("{}"));
    broker.matches(0);
    assert!(waits.await.unwrap().is_ok());
}

type Called = JoinHandle<Result<Outcome, Box<CoreError>>>;

/// Calls `/a/echo` in a task.
fn waiting(broker: &Fixture, caller: Identity) -> Called {
    let core = broker.core.clone();
    tokio::spawn(async move { call(&core, &caller, "/a/echo", json!({"text": ""})).await })
}

/// Lets every task run as far as it can without time.
async fn settle_tasks() {
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

fn refused(error: Result<Outcome, Box<CoreError>>) -> (CallCode, Option<bool>) {
    let error = error.unwrap_err();
    (error.code, error.maybe_executed)
}

#[tokio::test(start_paused = true)]
async fn waiting_call_is_sent_when_its_source_is_ready_and_needs_no_other() {
    let broker = start(json!({}));
    let waits = waiting(&broker, CALLER.clone());
    sleep(Duration::from_secs(9)).await;
    broker.sources[0].answer(Ok("{}"));
    broker.matches(0);
    assert!(waits.await.unwrap().is_ok());
    assert!(
        !broker.core.services().health().ready,
        "the other source has no outcome"
    );
}

#[tokio::test(start_paused = true)]
async fn source_that_is_ready_at_the_end_of_the_wait_takes_the_call() {
    let broker = Arc::new(start(json!({})));
    let waits = waiting(&broker, CALLER.clone());
    settle_tasks().await;
    // The timer of the wait has run out before the call runs again.
    tokio::time::advance(Duration::from_secs(10)).await;
    broker.sources[0].answer(Ok("{}"));
    broker.matches(0);
    match waits.await.unwrap() {
        Ok(_) => assert_eq!(broker.sources[0].seen().len(), 1),
        Err(error) => {
            assert_eq!(error.code, CallCode::Starting);
            assert_eq!(broker.sources[0].seen(), []);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn drift_that_is_found_during_the_wait_withdraws_the_tool() {
    let broker = start(json!({}));
    let waits = waiting(&broker, CALLER.clone());
    settle_tasks().await;
    broker.lists(0, &snapshot(&["twin"]));
    let refusal = refused(waits.await.unwrap());
    assert_eq!(refusal, (CallCode::ToolWithdrawn, Some(false)));
    assert_eq!(broker.sources[0].seen(), []);
}

#[tokio::test(start_paused = true)]
async fn failure_during_the_wait_is_the_answer() {
    let broker = start(json!({}));
    let waits = waiting(&broker, CALLER.clone());
    settle_tasks().await;
    let failure = SourceFailure::new(SourceCause::SpawnNotFound, "it is missing");
    broker.sources[0].answer(Err(broker_mcp::CallFailure::Unavailable {
        failure: failure.clone(),
        retry_after: None,
    }));
    broker.sources[0].set(State::Failed, Some(failure));
    let refusal = refused(waits.await.unwrap());
    assert_eq!(refusal, (CallCode::SourceUnavailable, Some(false)));
}

#[tokio::test(start_paused = true)]
async fn wait_ends_one_second_before_the_deadline() {
    let broker = start(json!({"timeout": 4}));
    let began = Instant::now();
    let error = broker.call("/a/echo", json!({"text": ""})).await;
    assert_eq!(refused(error).0, CallCode::Starting);
    assert_eq!(began.elapsed().as_secs(), 3);
    // The deadline of the caller.
    let began = Instant::now();
    let context = CallContext {
        deadline: Some(began + Duration::from_millis(2500)),
        ..context(&broker.core)
    };
    let error = call_in(
        &broker.core,
        &CALLER,
        context,
        "/a/echo",
        json!({"text": ""}),
    )
    .await
    .unwrap_err();
    assert_eq!(began.elapsed().as_millis(), 1500);
    let details = json!({"waited_s": 1.5, "retry_after_s": 5});
    assert_eq!(error.details, Some(details));
}

#[tokio::test(start_paused = true)]
async fn start_wait_of_zero_answers_at_once() {
    let broker = start(json!({"start_wait": 0}));
    let began = Instant::now();
    let error = broker.call("/a/echo", json!({"text": ""})).await;
    assert_eq!(refused(error).0, CallCode::Starting);
    assert!(began.elapsed() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn caller_that_loses_its_right_during_the_wait_is_refused_at_once() {
    let broker = start(json!({}));
    let revoked = CancellationToken::new();
    let caller = member_of(&["first"]).revoked_by(Revocation {
        revoked: revoked.clone(),
        cancels_calls: false,
        keeps: None,
    });
    let waits = waiting(&broker, caller);
    settle_tasks().await;
    let began = Instant::now();
    revoked.cancel();
    let refusal = refused(waits.await.unwrap());
    assert_eq!(refusal, (CallCode::Unauthorized, Some(false)));
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn rules_that_change_during_the_wait_refuse_the_call_at_once() {
    let allow = |path: &str| json!([{"allow": [path], "to": ["first"]}]);
    let broker = fixture_with_members(
        allow("/a/**"),
        json!({"on_drift": "withdraw", "on_unreachable": "serve"}),
    );
    let waits = waiting(&broker, member_of(&["first"]));
    settle_tasks().await;
    let began = Instant::now();
    broker.takes(allow("/a/twin"), json!({}));
    let refusal = refused(waits.await.unwrap());
    assert_eq!(refusal, (CallCode::PathNotFound, Some(false)));
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn shutdown_refuses_calls_that_wait() {
    let broker = start(json!({}));
    let waits = waiting(&broker, CALLER.clone());
    settle_tasks().await;
    broker.core.services().drain().begin_draining();
    let refusal = refused(waits.await.unwrap());
    assert_eq!(refusal, (CallCode::ShuttingDown, Some(false)));
}

#[tokio::test(start_paused = true)]
async fn thousand_callers_that_wait_are_bounded_and_leave_nothing() {
    let broker = start(json!({}));
    let calls: Vec<_> = (0..1000)
        .map(|number| {
            let caller = Identity::key(&format!("key {number}"), Vec::new());
            waiting(&broker, caller)
        })
        .collect();
    settle_tasks().await;
    sleep(Duration::from_secs(1)).await;
    let (over, waits): (Vec<_>, Vec<_>) = calls.into_iter().partition(JoinHandle::is_finished);
    assert_eq!(waits.len(), MAX_STARTING_CALLS);
    for call in over {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.code, error.retryable), (CallCode::Starting, true));
    }
    // Calls that their callers cancel leave their places.
    for call in &waits {
        call.abort();
    }
    for call in waits {
        assert!(call.await.is_err_and(|error| error.is_cancelled()));
    }
    let again = waiting(&broker, CALLER.clone());
    settle_tasks().await;
    assert!(!again.is_finished());
    broker.sources[0].answer(Ok("{}"));
    broker.matches(0);
    assert!(again.await.unwrap().is_ok());
}
