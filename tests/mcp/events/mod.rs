//! Progress, log messages and `_meta` of calls.

mod logs;
mod meta;
mod progress;

use std::net::TcpStream;

use harness::mcp_http::{EventReader, McpSession, send_modern};
use harness::{Broker, Chaos, binary};
use serde_json::{Value, json};

use crate::stdio::client::{Client, hello};

const PROGRESS: &str = "notifications/progress";
const MESSAGE: &str = "notifications/message";

/// The config of the broker over scripted servers.
const CONFIG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/chaos-broker/config.json"
);

/// A broker whose source `/a` has this script.
fn broker(script: &Value) -> (Chaos, Broker) {
    broker_of(script, |_| {})
}

/// A broker whose source `/a` has this script, with a change of its config.
fn broker_of(script: &Value, change: impl FnOnce(&mut Value)) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    chaos.script("a", script);
    let config = chaos.config(CONFIG, change);
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    (chaos, broker)
}

/// A client over stdio of a broker whose source `/a` has this script.
pub(crate) fn stdio(chaos: &Chaos, script: &Value, args: &[&str]) -> Client {
    chaos.script("a", script);
    let folder = chaos.path().to_str().expect("the path is text");
    let variables = [("CHAOS", folder), ("A_TOKEN", "a-token-for-tests")];
    let args: Vec<_> = [CONFIG].iter().chain(args).copied().collect();
    let mut client = Client::start_program(&binary("chaos-broker"), &args, &variables);
    let answer = client.request(json!("init"), "initialize", hello("2025-11-25"));
    assert!(answer["result"].is_object(), "{answer}");
    client
}

/// The params of a call of `/a/echo` by its flat name.
fn direct(meta: &Value) -> Value {
    json!({"name": "a-echo", "arguments": {"text": "x"}, "_meta": meta})
}

/// The params of the same call with `meta_call`.
fn through_meta(meta: &Value) -> Value {
    let arguments = json!({"path": "/a/echo", "args": {"text": "x"}});
    json!({"name": "meta_call", "arguments": arguments, "_meta": meta})
}

/// All messages of a reply that is a stream: those before the answer, and the answer.
fn messages(stream: TcpStream) -> (Vec<Value>, Value) {
    let mut reader = EventReader::open(stream);
    let mut all: Vec<_> = std::iter::from_fn(|| reader.next_message()).collect();
    let answer = all.pop().expect("an answer");
    assert!(answer["result"].is_object(), "{answer}");
    (all, answer)
}

/// The messages of a call in a session.
fn in_session(session: &McpSession, params: &Value) -> (Vec<Value>, Value) {
    messages(session.send(&json!("call"), "tools/call", params))
}

/// The messages of a modern call.
fn modern(broker: &Broker, route: &str, params: &Value) -> (Vec<Value>, Value) {
    let id = json!("call");
    let sent = send_modern(broker.address(), route, &id, "tools/call", params);
    messages(sent)
}

/// The `_meta` that the server of `/a` got with its last call.
fn last_meta(chaos: &Chaos) -> Value {
    let calls = chaos.events("a", "call");
    calls.last().expect("a call")["meta"].clone()
}
