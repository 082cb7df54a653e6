//! The mode `search`: a client searches and calls what it found, with both routings, over stdio and HTTP.

mod call_tool;
mod dynamic;
mod exec;
mod split_calls;

use std::path::Path;

use harness::mcp_http::McpSession;
use harness::{Broker, Run, binary, json_text};
use serde_json::{Value, json};

/// The route of the mode.
const ROUTE: &str = "/mcp/search";

/// The broker of the smoke config. `variables` are its environment.
fn smoke_broker(args: &[&str], variables: &[(&str, &str)]) -> Broker {
    let run = Run::new(Path::new(env!("CARGO_BIN_EXE_mcp-broker")));
    let run = run.args(["127.0.0.1:0"].iter().chain(args));
    let with = |run: Run, (name, value): &(&str, &str)| run.env(name, value);
    Broker::start_ready(variables.iter().fold(run, with))
}

/// The broker of 1 455 recorded tools.
fn corpus_broker(args: &[&str]) -> Broker {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"));
    let run = Run::new(&binary("corpus-broker")).folder(folder);
    Broker::start_ready(run.args(["127.0.0.1:0", "config.json"].iter().chain(args)))
}

/// The answer of a search.
fn retrieve(session: &McpSession, arguments: Value) -> Value {
    let params = json!({"name": "retrieve_tools", "arguments": arguments});
    let messages = session.messages("tools/call", &params);
    let answer = messages.last().expect("an answer");
    assert!(answer["result"].get("structuredContent").is_none());
    json_text(&answer["result"])
}

/// The flat names in the answer of a search.
fn found(answer: &Value) -> Vec<String> {
    let tools = answer["tools"].as_array().expect("hits").iter();
    let names = tools.map(|tool| tool["name"].as_str().expect("a name"));
    names.map(str::to_owned).collect()
}

/// The names in the list of a session.
fn listed(session: &McpSession) -> Vec<String> {
    let list = session.result("tools/list", &json!({}));
    let tools = list["tools"].as_array().expect("a list").iter();
    let names = tools.map(|tool| tool["name"].as_str().expect("a name"));
    names.map(str::to_owned).collect()
}

/// The texts of an array.
fn texts(array: &Value) -> Vec<&str> {
    let items = array.as_array().expect("an array").iter();
    items.map(|item| item.as_str().expect("a text")).collect()
}
