//! The reason that a client gives for a cancellation reaches the server.

use harness::faults::FaultFixture;
use harness::mcp_http::McpSession;
use harness::websocket::WebSocketClient;
use serde_json::{Value, json};

/// The part of a reason that reaches the server.
const MAX_CHARS: usize = 256;

fn params() -> Value {
    json!({"name": "a-echo", "arguments": {"text": "x"}})
}

/// Reasons of clients, and what the server gets.
fn reasons() -> [(Value, String); 4] {
    let long = "é\"\n".repeat(200);
    [
        (
            json!("the user pressed \"stop\"\n"),
            "the user pressed \"stop\"\n".to_owned(),
        ),
        (json!(long), long.chars().take(MAX_CHARS).collect()),
        (Value::Null, "the caller no longer waits".to_owned()),
        (json!(7), "the caller no longer waits".to_owned()),
    ]
}

#[test]
fn reason_of_a_client_reaches_the_server_over_each_transport() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": "hang"}}));
    let (address, chaos) = (stage.broker.address(), &stage.chaos);
    let session = McpSession::begin(address, "/mcp/direct");
    let mut socket = WebSocketClient::connect(address, "/v1/ws/mcp");
    socket.answer(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let mut calls = 0;
    let mut check = |expected: &str| {
        let cancelled = chaos.await_events("a", "cancelled", calls + 1);
        assert_eq!(cancelled[calls]["reason"], expected);
        calls += 1;
        chaos.await_events("a", "call", calls);
    };
    for (number, (reason, expected)) in reasons().into_iter().enumerate() {
        let id = json!(number);
        let cancel = |id: Value| json!({"requestId": id, "reason": reason});
        let call = session.send(&id, "tools/call", &params());
        chaos.await_events("a", "call", 2 * number + 1);
        assert_eq!(
            session
                .notify("notifications/cancelled", &cancel(id))
                .status,
            202
        );
        check(&expected);
        drop(call);
        let id = socket.request("tools/call", &params());
        chaos.await_events("a", "call", 2 * number + 2);
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel(json!(id))});
        socket.send(&message.to_string());
        check(&expected);
    }
}
