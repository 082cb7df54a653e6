//! Callers over HTTP that disconnect.

use std::time::Duration;

use harness::callers::call_and_leave;
use harness::faults::{ECHO, FaultFixture, scaled};
use harness::figure::{Watch, figure, shown};
use harness::{Broker, Chaos, Tally, post_bytes, send};
use serde_json::json;

#[test]
fn call_of_a_client_that_disconnects_is_cancelled() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 600_000}}}));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let bytes = post_bytes(broker.address(), "/meta_call", &body);
    let caller = send(broker.address(), &bytes);
    let calls = chaos.await_events("a", "call", 1);
    drop(caller);
    let cancelled = chaos.await_events("a", "cancelled", 1);
    assert_eq!(cancelled[0]["id"], calls[0]["id"]);
    broker.result("/a/add", json!({"a": 1, "b": 2}));
}

#[test]
fn calls_of_clients_that_leave_are_cancelled_and_free_their_slots() {
    let _machine = harness::whole_machine();
    let stage = FaultFixture::new(&json!({"on_call": {"echo": {"delay_ms": 60_000}}}));
    let rounds = scaled("MCP_BROKER_LEAVERS", 100) / 25;
    let mut slowest = Duration::ZERO;
    for round in 1..=rounds {
        let args = json!({"text": "x"});
        let calls: Vec<_> = (0..25)
            .map(|_| call_and_leave(stage.broker.address(), ECHO, &args))
            .collect();
        stage.chaos.await_events("a", "call", 25 * round);
        let watch = Watch::start();
        drop(calls);
        stage.chaos.await_events("a", "cancelled", 25 * round);
        slowest = slowest.max(watch.passed());
    }
    let ids = |event: &str| {
        let events = stage.chaos.events("a", event);
        let mut ids: Vec<_> = events
            .iter()
            .filter_map(|event| event["id"].as_u64())
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(
        ids("call"),
        ids("cancelled"),
        "each call is cancelled by its own id"
    );
    // More rounds than calls may be in flight: none is left in flight.
    assert!(25 * rounds > 32);
    stage.chaos.script("a", &json!({}));
    Tally::flood(stage.broker.address(), 8, 10, ECHO).is_clean();
    figure(
        "F-37",
        &format!(
            "{} of {} cancelled by their own ids, 25 of them within {}",
            ids("cancelled").len(),
            25 * rounds,
            shown(slowest)
        ),
    );
    stage.is_as_before();
}
