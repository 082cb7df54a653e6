//! The broker as an MCP server over HTTP.

mod direct;
mod ids;
mod long_answers;
mod protocol;
mod result_limit;
mod sessions;
mod sse;
mod subtree;
mod vendor_limits;

use harness::{Broker, Chaos};
use serde_json::{Value, json};

/// A broker over scripted servers.
pub(crate) fn chaos_broker(args: &[&str]) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let all: Vec<_> = ["127.0.0.1:0"].iter().chain(args).copied().collect();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &all));
    (chaos, broker)
}

/// The params of a call of `/a/echo` by its flat name.
pub(crate) fn echo(text: &str) -> Value {
    json!({"name": "a-echo", "arguments": {"text": text}})
}

/// The text of the first block of a result.
fn text_of(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("a text: {result}"))
}

/// The names of the tools in a result of `tools/list`.
fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("a list: {result}"));
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

/// The text that `/a/echo` got.
pub(crate) fn echoed(result: &Value) -> String {
    let report: Value = serde_json::from_str(text_of(result)).expect("it reports its call as JSON");
    report["text"].as_str().expect("a text").to_owned()
}

/// The number of legacy sessions.
fn sessions(broker: &Broker) -> u64 {
    let count = broker.get("/sources").json()["mcp_sessions"].as_u64();
    count.expect("the sessions are counted")
}
