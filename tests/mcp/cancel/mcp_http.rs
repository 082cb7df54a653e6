//! MCP clients over HTTP: a modern request ends with its connection, a call of a session does not.

use harness::mcp_http::{McpSession, send_modern, try_read};
use harness::{Broker, Chaos, wait_until};
use serde_json::{Value, json};

/// A broker whose `/a/echo` takes ten minutes, or until its script changes.
fn slow() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 600_000}}}));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    (chaos, broker)
}

fn echo() -> Value {
    json!({"name": "a-echo", "arguments": {"text": "x"}})
}

fn is_cancelled(chaos: &Chaos, call: usize) {
    let calls = chaos.await_events("a", "call", call + 1);
    let cancelled = chaos.await_events("a", "cancelled", 1);
    assert_eq!(cancelled[0]["id"], calls[call]["id"]);
}

#[test]
fn modern_call_of_a_client_that_disconnects_is_cancelled() {
    let (chaos, broker) = slow();
    let id = json!("caller-7");
    let caller = send_modern(broker.address(), "/mcp/direct", &id, "tools/call", &echo());
    let calls = chaos.await_events("a", "call", 1);
    assert_ne!(
        calls[0]["id"], id,
        "the id of a caller is never sent to a server"
    );
    drop(caller);
    is_cancelled(&chaos, 0);
    broker.result("/a/add", json!({"a": 1, "b": 2}));
}

#[test]
fn call_of_a_session_runs_on_after_a_disconnect_until_it_is_cancelled() {
    let (chaos, broker) = slow();
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let caller = session.send(&json!(1), "tools/call", &echo());
    chaos.await_events("a", "call", 1);
    drop(caller);
    // Its id is still in use, and it is not cancelled.
    let same = session.ask(&json!(1), "ping", &json!({}));
    assert_eq!(
        same.status, 200,
        "an answer that is ready at once needs no place"
    );
    let again = session.ask(&json!(1), "tools/call", &echo());
    assert_eq!(
        (again.status, &again.json()["error"]["code"]),
        (400, &json!(-32600))
    );
    assert_eq!(chaos.events("a", "cancelled").len(), 0);
    let reply = session.notify("notifications/cancelled", &json!({"requestId": 1}));
    assert_eq!((reply.status, reply.body.len()), (202, 0));
    is_cancelled(&chaos, 0);
}

#[test]
fn cancelled_call_of_a_session_ends_without_an_answer() {
    let (chaos, broker) = slow();
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let waiting = session.send(&json!("1"), "tools/call", &echo());
    chaos.await_events("a", "call", 1);
    // Another id: the number is not the text.
    session.notify("notifications/cancelled", &json!({"requestId": 1}));
    session.notify("notifications/cancelled", &json!({"requestId": "1"}));
    is_cancelled(&chaos, 0);
    let reply = try_read(waiting).expect("the connection ends with a reply");
    assert_eq!((reply.status, reply.body.len()), (202, 0));
}

#[test]
fn deleted_session_cancels_its_calls_and_ends_its_streams() {
    let (chaos, broker) = slow();
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let mut stream = session.stream();
    let waiting = session.send(&json!(1), "tools/call", &echo());
    chaos.await_events("a", "call", 1);
    assert_eq!(session.bare("DELETE", "*/*").status, 204);
    is_cancelled(&chaos, 0);
    assert_eq!(stream.next_message(), None);
    drop(waiting);
    assert_eq!(session.ask(&json!(2), "ping", &json!({})).status, 404);
    assert_eq!(session.bare("DELETE", "*/*").status, 404);
}

#[test]
fn calls_of_a_session_whose_client_left_count_until_their_end() {
    let (chaos, broker) = slow();
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let callers: Vec<_> = (0..32)
        .map(|id| session.send(&json!(id), "tools/call", &echo()))
        .collect();
    wait_until("all calls are at the server", || {
        chaos.events("a", "call").len() == 32
    });
    drop(callers);
    // As many as the server gets at a time: one more waits until one of them is cancelled.
    let _waiting = session.send(&json!("waits"), "tools/call", &echo());
    session.notify("notifications/cancelled", &json!({"requestId": 3}));
    wait_until("the call that waited is at the server", || {
        chaos.events("a", "call").len() == 33
    });
    session.notify("notifications/cancelled", &json!({"requestId": 4}));
    let sum = session.result(
        "tools/call",
        &json!({"name": "a-add", "arguments": {"a": 1, "b": 2}}),
    );
    assert_ne!(sum["isError"], true, "{sum}");
}
