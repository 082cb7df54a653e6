//! The call path, from admission to shutdown.

use std::time::Duration;

use broker_mcp::{CallFailure, SourceFailure, State};
use broker_model::{CallCode, SourceCause};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::fixture::{CALLER, call_in, context, fixture, fixture_of};
use crate::{Broker, CallContext, CallEvents, StartMode, WantedEvents};

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn call_passes_arguments_and_result_unchanged() {
    let over = json!({"timeout": 7, "tool_overrides": {"twin": {"timeout": 3}}});
    let broker = fixture_of(StartMode::Plain, over, json!({}));
    broker.matches(0);
    broker.matches(1);
    broker.sources[0].answer(Ok(r#"{"content":[],"x":1.0}"#));
    broker.sources[0].answer(Ok(r#"{"isError":true}"#));
    let reply = broker.call("/a/echo", json!({"text": "ü"})).await.unwrap();
    assert_eq!(
        (reply.path, &reply.result[..]),
        ("/a/echo", &br#"{"content":[],"x":1.0}"#[..])
    );
    let failed = broker.call("/a/twin", json!({"text": ""})).await.unwrap();
    assert_eq!(&failed.result[..], br#"{"isError":true}"#);
    let seen = broker.sources[0].seen();
    assert_eq!(
        (seen[0].tool.as_str(), seen[0].args.as_str()),
        ("echo", r#"{"text":"ü"}"#)
    );
    let seconds = |time: std::time::Duration| time.as_millis().div_ceil(1000);
    let timeouts: Vec<_> = seen.iter().map(|call| seconds(call.timeout)).collect();
    assert_eq!(timeouts, [7, 3]);
}

#[tokio::test(start_paused = true)]
async fn call_deadline_of_the_caller_only_shortens_the_timeout() {
    let broker = fixture_of(StartMode::Plain, json!({"timeout": 7}), json!({}));
    broker.matches(0);
    broker.matches(1);
    let now = Instant::now();
    for seconds in [3, 60] {
        broker.sources[0].answer(Ok("{}"));
        let context = CallContext {
            deadline: Some(now + Duration::from_secs(seconds)),
            ..context(&broker.core)
        };
        let args = json!({"text": ""});
        let call = call_in(&broker.core, &CALLER, context, "/a/echo", args);
        call.await.unwrap();
    }
    let given: Vec<_> = broker.sources[0]
        .seen()
        .iter()
        .map(|call| call.timeout)
        .collect();
    assert_eq!(given, [3, 7].map(Duration::from_secs));
}

#[tokio::test(start_paused = true)]
async fn call_with_progress_may_take_max_timeout_within_the_deadline() {
    let default = fixture_of(StartMode::Plain, json!({"timeout": 7}), json!({}));
    let set = json!({"timeout": 7, "max_timeout": 20});
    let set = fixture_of(StartMode::Plain, set, json!({}));
    for (broker, deadline, total) in [(&default, None, 70), (&set, None, 20), (&set, Some(9), 9)] {
        broker.matches(0);
        broker.matches(1);
        broker.sources[0].answer(Ok("{}"));
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        let context = CallContext {
            deadline: deadline.map(after),
            ..context(&broker.core)
        };
        let args = json!({"text": ""});
        let call = call_in(&broker.core, &CALLER, context, "/a/echo", args);
        call.await.unwrap();
        let given = broker.sources[0].seen().pop().unwrap().time;
        let times = [given.first(), given.after_progress(), given.total()];
        assert_eq!(times, [7, 7, total].map(Duration::from_secs));
    }
}

#[tokio::test]
async fn call_passes_meta_and_the_progress_request_to_the_server() {
    let broker = fixture(StartMode::Plain);
    broker.matches(0);
    broker.matches(1);
    let wants = WantedEvents {
        progress: true,
        log: None,
    };
    let (sink, _received) = CallEvents::new(1, wants);
    for (meta, events) in [(None, None), (Some(r#"{"x/y":1}"#), Some(sink))] {
        broker.sources[0].answer(Ok("{}"));
        let context = CallContext {
            meta: meta.map(Box::from),
            events,
            ..context(&broker.core)
        };
        let args = json!({"text": ""});
        let call = call_in(&broker.core, &CALLER, context, "/a/echo", args);
        call.await.unwrap();
    }
    let seen = broker.sources[0].seen();
    assert_eq!(
        (seen[0].meta.as_deref(), seen[0].wants_progress),
        (None, false)
    );
    let wanted = (Some(r#"{"x/y":1}"#), true);
    assert_eq!((seen[1].meta.as_deref(), seen[1].wants_progress), wanted);
}

#[tokio::test]
async fn call_that_is_refused_never_reaches_the_server() {
    let broker = fixture(StartMode::Plain);
    let starting = broker
        .call("/a/echo", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(starting.code, CallCode::Starting);
    assert!(starting.retryable && starting.retry_after.is_some());
    broker.matches(0);
    let starting = broker
        .call("/a/echo", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(
        starting.code,
        CallCode::Starting,
        "the other source was not yet checked"
    );
    broker.matches(1);
    for (path, args, code) in [
        ("/a", json!({}), CallCode::PathIsNode),
        ("/a/none", json!({}), CallCode::PathNotFound),
        ("/a/", json!({}), CallCode::PathInvalid),
        ("/a/echo", json!({}), CallCode::ArgsInvalid),
        ("/a/echo", json!({"text": 1}), CallCode::ArgsInvalid),
    ] {
        assert_eq!(
            broker.call(path, args).await.unwrap_err().code,
            code,
            "{path}"
        );
    }
    assert!(broker.sources.iter().all(|source| source.seen().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn call_in_a_tolerant_start_waits_for_the_verdict_of_its_source() {
    let broker = fixture(StartMode::Tolerant);
    broker.matches(1);
    broker.sources[1].answer(Ok("{}"));
    assert!(
        broker
            .call("/a/deep/b/echo", json!({"text": ""}))
            .await
            .is_ok()
    );
    let other = broker
        .call("/a/echo", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!((other.code, other.has_waited), (CallCode::Starting, true));
    let details = json!({"waited_s": 10.0, "retry_after_s": 5});
    assert_eq!(other.details, Some(details));
    // A failure is an outcome, too: from then on a call may wake the source.
    let failure = SourceFailure::new(SourceCause::SpawnNotFound, "`server` was not found");
    broker.sources[0].set(State::Failed, Some(failure.clone()));
    timeout(WAIT_TIMEOUT, broker.core.services().first_verdict())
        .await
        .unwrap();
    broker.sources[0].answer(Err(CallFailure::Unavailable {
        failure,
        retry_after: None,
    }));
    let down = broker
        .call("/a/echo", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(down.code, CallCode::SourceUnavailable);
    assert_eq!(down.details.as_ref().unwrap()["cause"], "spawn_not_found");
    let health = broker.core.services().health();
    assert!(health.ready);
    assert_eq!(
        (health.sources[0].state, health.sources[0].cause),
        ("failed", Some("spawn_not_found"))
    );
}

/// The answer to a call whose session ended.
fn ended(cause: SourceCause, maybe_executed: bool) -> CallFailure {
    CallFailure::Exited {
        failure: SourceFailure::new(cause, "the session ended"),
        maybe_executed,
    }
}

#[tokio::test]
async fn call_is_sent_again_only_if_the_server_refused_it_or_the_config_allows_it() {
    let (once, twice) = (fixture(StartMode::Plain), {
        let retry = json!({"retry_idempotent": true});
        fixture_of(StartMode::Plain, retry, json!({}))
    });
    for cause in [SourceCause::SessionEnded, SourceCause::Exited] {
        for maybe_executed in [false, true] {
            for (broker, retries) in [(&once, false), (&twice, true)] {
                broker.matches(0);
                broker.matches(1);
                let before = broker.sources[0].seen().len();
                broker.sources[0].answer(Err(ended(cause, maybe_executed)));
                let was_refused = cause == SourceCause::SessionEnded && !maybe_executed;
                let is_sent_again = was_refused || retries;
                if is_sent_again {
                    broker.sources[0].answer(Ok("{}"));
                }
                let answer = broker.call("/a/echo", json!({"text": ""})).await;
                let sent = broker.sources[0].seen().len() - before;
                let case = (cause, maybe_executed, retries);
                assert_eq!(sent, 1 + usize::from(is_sent_again), "{case:?}");
                match answer {
                    Ok(_) => assert!(is_sent_again, "{case:?}"),
                    Err(error) => {
                        assert!(!is_sent_again, "{case:?}");
                        assert_eq!(error.maybe_executed, Some(maybe_executed), "{case:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn call_is_sent_again_at_most_once_and_keeps_the_more_useful_failure() {
    let retry = json!({"retry_idempotent": true});
    let broker = fixture_of(StartMode::Plain, retry, json!({}));
    broker.matches(0);
    broker.matches(1);
    for (second, maybe_executed) in [(true, true), (false, true)] {
        let before = broker.sources[0].seen().len();
        broker.sources[0].answer(Err(ended(SourceCause::Exited, true)));
        broker.sources[0].answer(Err(ended(SourceCause::Exited, second)));
        let answer = broker.call("/a/echo", json!({"text": ""})).await;
        assert_eq!(broker.sources[0].seen().len() - before, 2);
        let error = answer.unwrap_err();
        assert_eq!(error.maybe_executed, Some(maybe_executed), "{second}");
    }
}

#[tokio::test]
async fn drain_finishes_calls_and_close_fails_the_rest() {
    let broker = fixture(StartMode::Plain);
    broker.matches(0);
    broker.matches(1);
    let running = tokio::spawn({
        let (core, source) = (broker.core.clone(), broker.sources[0].clone());
        let other = super::fixture::Fixture {
            core,
            sources: [source.clone(), source],
        };
        async move { other.call("/a/echo", json!({"text": ""})).await }
    });
    while broker.sources[0].seen().is_empty() {
        tokio::task::yield_now().await;
    }
    broker.core.services().drain().begin_draining();
    let refused = broker
        .call("/a/twin", json!({"text": ""}))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code, refused.maybe_executed),
        (CallCode::ShuttingDown, Some(false))
    );
    assert!(!broker.core.services().health().ready);
    assert!(
        timeout(
            Duration::from_millis(10),
            broker.core.services().drain().drained()
        )
        .await
        .is_err()
    );
    timeout(WAIT_TIMEOUT, broker.core.close()).await.unwrap();
    let failed = timeout(WAIT_TIMEOUT, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert_eq!(failed.code, CallCode::ShuttingDown);
    timeout(WAIT_TIMEOUT, broker.core.services().drain().drained())
        .await
        .unwrap();
    timeout(WAIT_TIMEOUT, broker.core.close()).await.unwrap();
}

#[tokio::test]
async fn call_that_its_caller_leaves_is_no_longer_in_flight() {
    let broker = fixture(StartMode::Plain);
    broker.matches(0);
    broker.matches(1);
    let call = broker.call("/a/echo", json!({"text": ""}));
    assert!(timeout(Duration::from_millis(1), call).await.is_err());
    broker.core.services().drain().begin_draining();
    timeout(WAIT_TIMEOUT, broker.core.services().drain().drained())
        .await
        .unwrap();
}
