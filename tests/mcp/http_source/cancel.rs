//! Calls that time out or whose caller leaves are cancelled at the server, in the way of its era.

use std::time::Duration;

use broker_mcp::{CallFailure, ServerCall, Session};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{HttpFixture, NAME, WAIT_TIMEOUT, echo, echo_within, eventually};

/// The ids of the requests that called this tool.
fn ids_of(fixture: &HttpFixture, tool: &str) -> Vec<Value> {
    let calls = fixture.requests(&json!({"tool": tool}));
    calls.iter().map(|call| call["rpc_id"].clone()).collect()
}

async fn cancelled(fixture: &HttpFixture) -> Value {
    eventually("the call is cancelled", || fixture.events("cancelled") > 0).await;
    let all = fixture.chaos.events(NAME, "cancelled");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

async fn slow(session: &Session, time: Duration) -> Result<(), CallFailure> {
    let call = ServerCall::new("slow", br#"{"ms":3600000}"#);
    session.call(call, time).await.map(|_| ())
}

#[tokio::test]
async fn call_that_times_out_is_cancelled_with_its_id_or_by_the_end_of_its_connection() {
    for (era, reply) in [
        ("legacy", "json"),
        ("legacy", "sse"),
        ("modern", "json"),
        ("modern", "sse"),
    ] {
        let fixture = HttpFixture::of_era(era, &json!({ "reply": reply }));
        let session = fixture.session().await;
        assert!(echo(&session, "before").await.is_ok());
        let failure = slow(&session, Duration::from_millis(300)).await;
        assert!(
            matches!(
                failure,
                Err(CallFailure::Timeout {
                    maybe_executed: true,
                    ..
                })
            ),
            "{failure:?}"
        );
        let cancelled = cancelled(&fixture).await;
        assert_eq!([cancelled["id"].clone()][..], ids_of(&fixture, "slow")[..]);
        let by = cancelled["by"].as_str();
        assert_eq!(by, (era == "modern").then_some("disconnect"), "{era}");
        let notices = fixture.requests(&json!({"rpc_method": "notifications/cancelled"}));
        assert_eq!(notices.len(), usize::from(era == "legacy"), "{era}");
        assert!(echo(&session, "after").await.is_ok());
        session.stop().await;
    }
}

#[tokio::test]
async fn call_whose_caller_leaves_is_cancelled_and_no_other_one() {
    for era in ["legacy", "modern"] {
        let fixture = HttpFixture::of_era(era, &json!({}));
        let session = fixture.session().await;
        let other = session.call(ServerCall::new("slow", br#"{"ms":1200}"#), WAIT_TIMEOUT);
        let leaver = async {
            eventually("the other call runs", || fixture.events("call") == 1).await;
            let left = timeout(Duration::from_millis(200), slow(&session, WAIT_TIMEOUT)).await;
            assert!(left.is_err());
            cancelled(&fixture).await
        };
        let (other, cancelled) = tokio::join!(other, leaver);
        assert!(other.is_ok(), "{era}: {other:?}");
        let ids = ids_of(&fixture, "slow");
        assert_eq!((ids.len(), &cancelled["id"]), (2, &ids[1]), "{era}");
    }
}

#[tokio::test]
async fn answered_calls_are_not_cancelled() {
    for era in ["legacy", "modern"] {
        let fixture = HttpFixture::of_era(era, &json!({"reply": "sse"}));
        let session = fixture.session().await;
        for at in 0..20 {
            assert!(echo(&session, &at.to_string()).await.is_ok());
        }
        session.stop().await;
        assert_eq!(fixture.events("cancelled"), 0, "{era}");
    }
}

#[tokio::test]
async fn call_that_waits_for_its_turn_is_not_sent_after_its_time() {
    let fixture = HttpFixture::of_era("modern", &json!({}));
    let mut spec = fixture.spec();
    (spec.max_in_flight, spec.queue) = (1, 2);
    let session = Session::open(&spec, None).await.unwrap();
    let first = session.call(ServerCall::new("slow", br#"{"ms":1000}"#), WAIT_TIMEOUT);
    let others = async {
        eventually("the first call runs", || fixture.events("call") == 1).await;
        let late = echo_within(&session, "late", Duration::from_millis(200));
        let queued = echo(&session, "queued");
        let refused = async {
            tokio::task::yield_now().await;
            echo(&session, "refused").await
        };
        tokio::join!(late, queued, refused)
    };
    let (first, (late, queued, refused)) = tokio::join!(first, others);
    assert!(first.is_ok() && queued.is_ok(), "{first:?} {queued:?}");
    let timed_out = matches!(
        late,
        Err(CallFailure::Timeout {
            maybe_executed: false,
            ..
        })
    );
    assert!(timed_out, "{late:?}");
    assert!(
        matches!(refused, Err(CallFailure::Overloaded(_))),
        "{refused:?}"
    );
    let executed = ["late", "queued", "refused"].map(|text| fixture.executions(text));
    assert_eq!(executed, [0, 1, 0]);
}
