//! The number and the life of legacy sessions.

use std::fs;

use harness::faults::scaled;
use harness::figure::{Watch, figure, shown};
use harness::mcp_http::McpSession;
use harness::{Broker, Chaos, ResourceUsage, wait_until};
use serde_json::{Value, json};

use super::{chaos_broker, echo, sessions};

/// Sessions before the first measurement: as many as one owner may have.
const WARM_UP: usize = 1_000;

/// A broker whose sessions may be idle for a second.
fn short_idle() -> (Chaos, Broker) {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    ));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("it is JSON");
    config["mcp"] = json!({"session_idle": 1});
    let chaos = Chaos::new();
    let file = chaos.file("given.json", &config.to_string());
    let name = file.to_str().expect("the path is text");
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", name]));
    (chaos, broker)
}

#[test]
fn idle_session_ends_and_one_with_a_stream_does_not() {
    let (_chaos, broker) = short_idle();
    let idle = McpSession::begin(broker.address(), "/mcp");
    let streaming = McpSession::begin(broker.address(), "/mcp");
    let stream = streaming.stream();
    wait_until("the idle session has ended", || sessions(&broker) == 1);
    assert_eq!(idle.ask(&json!(1), "ping", &json!({})).status, 404);
    assert_eq!(streaming.ask(&json!(1), "ping", &json!({})).status, 200);
    drop(stream);
    wait_until("the other session has ended", || sessions(&broker) == 0);
}

#[test]
fn sessions_that_are_abandoned_leave_neither_memory_nor_descriptors() {
    let _machine = harness::whole_machine();
    let (_chaos, broker) = short_idle();
    // The caches of the allocator are filled before the first measurement.
    for _ in 0..WARM_UP {
        McpSession::begin(broker.address(), "/mcp/direct");
    }
    wait_until("all sessions have ended", || sessions(&broker) == 0);
    let before = ResourceUsage::measure(broker.pid());
    let watch = Watch::start();
    let abandoned = scaled("MCP_BROKER_ABANDONED_SESSIONS", 1_000);
    for _ in 0..abandoned {
        McpSession::begin(broker.address(), "/mcp/direct");
    }
    let took = watch.passed();
    wait_until("all sessions have ended", || sessions(&broker) == 0);
    let after = before.await_again(broker.pid());
    let grown = after.resident.saturating_sub(before.resident);
    figure(
        "F-39-abandoned",
        &format!(
            "{abandoned} abandoned sessions within {}: none left, {grown} KiB more than before",
            shown(took)
        ),
    );
    assert!(
        100 * after.resident <= 105 * before.resident,
        "{grown} KiB are kept of {} KiB",
        before.resident
    );
}

#[test]
fn full_share_ends_the_longest_idle_session_and_none_in_use() {
    let (chaos, broker) = chaos_broker(&[]);
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 600_000}}}));
    let route = "/mcp/direct";
    let calling = McpSession::begin(broker.address(), route);
    let call = calling.send(&json!(1), "tools/call", &echo("x"));
    let streaming = McpSession::begin(broker.address(), route);
    let stream = streaming.stream();
    let oldest = McpSession::begin(broker.address(), route);
    let next = McpSession::begin(broker.address(), route);
    let mut count = sessions(&broker);
    while count < 1_000 {
        McpSession::begin(broker.address(), route);
        count += 1;
    }
    assert_eq!(next.ask(&json!(1), "ping", &json!({})).status, 200);
    McpSession::begin(broker.address(), route);
    assert_eq!(sessions(&broker), 1_000, "one for one");
    assert_eq!(oldest.ask(&json!(1), "ping", &json!({})).status, 404);
    for kept in [&calling, &streaming, &next] {
        assert_eq!(kept.ask(&json!(2), "ping", &json!({})).status, 200);
    }
    drop((call, stream));
}

#[test]
fn session_has_at_most_four_streams() {
    let (_chaos, broker) = chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/mcp");
    let mut streams: Vec<_> = (0..4).map(|_| session.stream()).collect();
    assert_eq!(session.bare("GET", "text/event-stream").status, 409);
    assert_eq!(session.bare("GET", "application/json").status, 406);
    streams.pop();
    wait_until("the place of a stream is free", || {
        session.status_of_stream() == 200
    });
}

#[test]
fn mcp_that_is_turned_off_is_an_unknown_route() {
    let (_chaos, broker) = chaos_broker(&["--no-mcp"]);
    let refused = McpSession::try_begin(broker.address(), "/mcp").expect_err("there is no MCP");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "route_not_found")
    );
}
