//! Answers that are longer than a message on an event stream or over WebSocket may be: their calls fail, plain JSON has
//! no such limit, and the connection goes on.

use harness::access;
use harness::faults::{FaultFixture, source};
use harness::mcp_http::{EventReader, McpSession, modern, send_modern};
use harness::websocket::WebSocketClient;
use serde_json::{Value, json};

/// The limit of an event in these tests, and a longer text.
const EVENT_BYTES: usize = 20_000;
const LONG: usize = 30_000;

/// A broker whose tool `echo` answers with a long text, after a progress notification if `steps` says so.
fn stage(steps: usize) -> FaultFixture {
    let long = json!({"big": LONG});
    let script = match steps {
        0 => json!({"on_call": {"echo": long}}),
        // The stream begins with the notification only if the answer is not there yet.
        _ => {
            let late = json!({"delay_ms": 500, "then": long});
            json!({"on_call": {"echo": {"progress": steps, "then": late}}})
        }
    };
    FaultFixture::with(&script, |config| {
        config["limits"]["event_bytes"] = json!(EVENT_BYTES);
        source(config, 0)["timeout"] = json!(30);
    })
}

fn params() -> Value {
    json!({"name": "a-echo", "arguments": {"text": "x"}, "_meta": {"progressToken": 1}})
}

/// Asserts that an answer is the error of a call that was too long.
fn is_too_large(answer: &Value) {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str();
    let error: Value = serde_json::from_str(text.expect("a text")).expect("an error object");
    assert_eq!(error["code"], "output_too_large", "{error}");
    assert_eq!(error["maybe_executed"], true, "{error}");
    assert_eq!(error["details"]["limit_bytes"], EVENT_BYTES, "{error}");
    assert!(
        error["details"]["size_bytes"].as_u64() > Some(LONG as u64),
        "{error}"
    );
}

#[test]
fn long_answer_behind_a_notification_fails_its_call() {
    let stage = stage(1);
    let address = stage.broker.address();
    access::listens(address);
    let mut events = EventReader::open(send_modern(
        address,
        "/mcp/direct",
        &json!(7),
        "tools/call",
        &params(),
    ));
    let first = events.next_message().expect("a notification");
    assert_eq!(first["method"], "notifications/progress", "{first}");
    let answer = events.next_message().expect("an answer");
    assert_eq!(answer["id"], 7);
    is_too_large(&answer);
    let session = McpSession::begin(address, "/mcp/direct");
    let messages = session.messages("tools/call", &params());
    is_too_large(messages.last().expect("an answer"));
    assert!(
        stage
            .broker
            .stderr()
            .contains("longer than its client reads")
    );
    assert_eq!(counted(&stage), [("failed".to_owned(), 2)]);
}

/// The calls of `/a/echo` that the metrics count, by their outcome.
fn counted(stage: &FaultFixture) -> Vec<(String, u64)> {
    let metrics = stage.broker.get("/metrics").body;
    let metrics = String::from_utf8(metrics).expect("UTF-8");
    let counted = metrics.lines().filter_map(|line| {
        let rest =
            line.strip_prefix("mcp_broker_calls_total{source=\"/a\",tool=\"/a/echo\",outcome=\"")?;
        let (outcome, number) = rest.split_once("\"} ")?;
        Some((outcome.to_owned(), number.parse().expect("a number")))
    });
    counted.filter(|(_, number)| *number > 0).collect()
}

#[test]
fn long_answer_without_a_notification_is_plain_json() {
    let stage = stage(0);
    let address = stage.broker.address();
    access::listens(address);
    let has_text = |answer: &Value| {
        let result = answer["result"].to_string();
        assert!(result.len() > LONG, "{answer}");
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    };
    // The caller asks for progress, and there is none: the form of the reply is still open.
    let reply = modern(address, "/mcp/direct", &json!(1), "tools/call", &params());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    has_text(&reply.json());
    let session = McpSession::begin(address, "/mcp/direct");
    let reply = session.ask(&json!(2), "tools/call", &params());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    has_text(&reply.json());
    let simple = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params()});
    has_text(&harness::post(address, "/v1/mcp", &simple).json());
    assert_eq!(counted(&stage), [("ok".to_owned(), 3)]);
}

#[test]
fn long_answer_over_websocket_fails_its_call() {
    let stage = stage(0);
    let mut client = WebSocketClient::connect(stage.broker.address(), "/v1/ws/mcp");
    client.answer(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    is_too_large(&client.answer("tools/call", &params()));
    let other = client.result(
        "tools/call",
        &json!({"name": "b-add", "arguments": {"a": 1, "b": 2}}),
    );
    assert_eq!(other["content"][0]["text"], "3");
    assert_eq!(counted(&stage), [("failed".to_owned(), 1)]);
}
