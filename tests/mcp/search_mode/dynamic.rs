//! The routing `DYNAMIC`: found tools are in the list of their session, and in no other list.

use harness::mcp_http::{EventReader, McpSession};
use harness::{Broker, Chaos, json_text, wait_until};
use serde_json::{Value, json};

use super::{ROUTE, corpus_broker, found, listed, retrieve, smoke_broker, texts};
use crate::stdio::client::Client;

const CHANGED: &str = "notifications/tools/list_changed";

fn dynamic() -> Broker {
    smoke_broker(&["--mcp-mode", "search", "--routing", "DYNAMIC"], &[])
}

/// The messages of the reply to a search.
fn messages_of_search(session: &McpSession, query: &str) -> Vec<Value> {
    let params = json!({"name": "retrieve_tools", "arguments": {"query": query}});
    session.messages("tools/call", &params)
}

#[test]
fn found_tools_are_listed_after_an_announcement_on_the_stream_of_the_call() {
    let broker = dynamic();
    let session = McpSession::begin(broker.address(), "/mcp");
    assert_eq!(listed(&session), ["retrieve_tools"]);
    let messages = messages_of_search(&session, "upper case text");
    assert_eq!(messages[0]["method"], CHANGED);
    let answer = json_text(&messages[1]["result"]);
    let names = found(&answer);
    assert_eq!(texts(&answer["newly_registered"]), names);
    assert!(answer.get("hint").is_none());
    let tools = answer["tools"].as_array().expect("hits");
    assert!(tools.iter().all(|tool| tool["registered"] == true));
    assert_eq!(messages.len(), 2);
    let list = session.result("tools/list", &json!({}));
    assert_eq!(listed(&session)[1..], names);
    // The entry is that of the mode `direct`.
    let direct =
        McpSession::begin(broker.address(), "/mcp/direct").result("tools/list", &json!({}));
    let entry = |list: &Value| {
        let tools = list["tools"].as_array().expect("a list").iter();
        tools
            .clone()
            .find(|tool| tool["name"] == "text-text_case")
            .cloned()
    };
    assert_eq!(entry(&list), entry(&direct));
    // The same hits change nothing, so that nothing is announced.
    let again = messages_of_search(&session, "upper case text");
    assert_eq!(again.len(), 1);
    let answer = json_text(&again[0]["result"]);
    assert_eq!(answer["newly_registered"], json!([]));
    assert_eq!(answer["tools"][0]["registered"], true);
}

#[test]
fn announcement_is_sent_on_the_open_stream_of_the_session() {
    let broker = dynamic();
    let session = McpSession::begin(broker.address(), "/mcp");
    let mut stream = session.stream();
    // The stream announces once it is the session's reporter.
    wait_until("a search is announced on the stream", || {
        let query = ["hash", "time", "case", "json", "base64"];
        query.iter().any(|query| {
            let messages = messages_of_search(&session, query);
            messages.len() == 1
                && json_text(&messages[0]["result"])["newly_registered"] != json!([])
        })
    });
    let announced = stream.next_message().expect("an announcement");
    assert_eq!(announced["method"], CHANGED);
}

#[test]
fn sessions_do_not_see_tools_of_each_other() {
    let broker = dynamic();
    let first = McpSession::begin(broker.address(), "/mcp");
    let second = McpSession::begin(broker.address(), "/mcp");
    let names = found(&retrieve(&first, json!({"query": "hash text", "limit": 1})));
    assert_eq!(listed(&first)[1..], names);
    assert_eq!(listed(&second), ["retrieve_tools"]);
    let answer = retrieve(&second, json!({"query": "hash text", "limit": 1}));
    assert_eq!(texts(&answer["newly_registered"]), names);
}

#[test]
fn tool_outside_the_list_can_be_called() {
    let broker = dynamic();
    let session = McpSession::begin(broker.address(), "/mcp");
    let call = json!({"name": "text-text_case", "arguments": {"text": "a", "to": "upper"}});
    let result = session.result("tools/call", &call);
    assert_eq!(result["content"][0]["text"], "A");
    assert_eq!(listed(&session), ["retrieve_tools"]);
}

/// A broker of many tools whose searches register up to 50 of them.
fn dynamic_with_50_hits() -> Broker {
    let options = "--mcp-mode search --routing DYNAMIC --top-k 50";
    corpus_broker(&options.split(' ').collect::<Vec<_>>())
}

#[test]
fn full_list_loses_the_tools_that_were_not_used_for_the_longest_time() {
    let broker = dynamic_with_50_hits();
    let session = McpSession::begin(broker.address(), "/mcp");
    let first = retrieve(&session, json!({"query": "list repository issues"}));
    let first = found(&first);
    assert_eq!((first.len(), listed(&session).len()), (50, 51));
    let second = retrieve(&session, json!({"query": "query database table"}));
    assert_eq!(listed(&session).len(), 65);
    let evicted = texts(&second["evicted"]);
    assert!(!evicted.is_empty());
    let list = listed(&session);
    for name in &evicted {
        assert!(first.iter().any(|known| known == name), "{name}");
        assert!(!list.iter().any(|listed| listed == name), "{name}");
    }
    // The worst hits leave first.
    let again = found(&second);
    let worst = first.iter().rev().find(|name| !again.contains(name));
    assert_eq!(worst.map(String::as_str), Some(evicted[0]));
    for tool in second["tools"].as_array().expect("hits") {
        assert_eq!(tool["registered"], true, "{tool}");
    }
}

#[test]
fn session_that_finds_thousands_of_tools_lists_64() {
    let broker = dynamic_with_50_hits();
    let session = McpSession::begin(broker.address(), "/mcp");
    let mut registered = 0;
    let words = [
        "list", "create", "delete", "update", "search", "file", "issue", "page", "user", "query",
        "message", "get", "image", "browser", "table", "memory", "time", "graph", "project",
        "email",
    ];
    let queries = words
        .iter()
        .flat_map(|a| words.iter().map(move |b| format!("{a} {b}")));
    let count = harness::faults::scaled("MCP_BROKER_REGISTERED_SEARCHES", 60);
    for query in queries.cycle().take(count) {
        let answer = retrieve(&session, json!({"query": query}));
        registered += texts(&answer["newly_registered"]).len();
        assert!(listed(&session).len() <= 65);
    }
    assert!(registered > 500, "{registered} registrations");
}

#[test]
fn withdrawn_tool_leaves_the_list_at_once() {
    let chaos = Chaos::new();
    let args = [
        "127.0.0.1:0",
        "--mcp-mode",
        "search",
        "--routing",
        "DYNAMIC",
    ];
    let broker = Broker::start_ready(chaos.run("chaos-broker", &args));
    let session = McpSession::begin(broker.address(), ROUTE);
    let mut stream = session.stream();
    retrieve(&session, json!({"query": "echo arguments", "limit": 5}));
    assert!(listed(&session).contains(&"a-echo".to_owned()));
    let without = json!({"tools": Chaos::tools_without("echo"), "generation": 1});
    chaos.script("a", &without);
    wait_for_change(&mut stream, || {
        !listed(&session).contains(&"a-echo".to_owned())
    });
    // A tool that comes back is not found again by itself.
    chaos.script("a", &json!({"generation": 2}));
    wait_until("the tool is served again", || {
        let answer = broker
            .post("/meta_desc", &json!({"path": "/a/echo"}))
            .json();
        answer.get("withdrawn").is_none()
    });
    assert!(!listed(&session).contains(&"a-echo".to_owned()));
}

/// Reads announcements until a condition holds.
fn wait_for_change(stream: &mut EventReader, mut condition: impl FnMut() -> bool) {
    while !condition() {
        let announced = stream.next_message().expect("an announcement");
        assert_eq!(announced["method"], CHANGED);
    }
}

#[test]
fn client_over_stdio_gets_the_announcement_before_the_answer() {
    let mut client = Client::start(&["--mcp-mode", "search", "--routing", "DYNAMIC"]);
    let hello = client.request(json!(0), "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}));
    assert_eq!(
        hello["result"]["capabilities"]["tools"],
        json!({"listChanged": true})
    );
    client.ask(
        json!(1),
        "tools/call",
        json!({"name": "retrieve_tools", "arguments": {"query": "hash text", "limit": 1}}),
    );
    assert_eq!(client.read()["method"], CHANGED);
    let answer = client.read();
    assert_eq!(
        json_text(&answer["result"])["newly_registered"],
        json!(["util-hash_text"])
    );
    let list = client.request(json!(2), "tools/list", json!({}));
    assert_eq!(list["result"]["tools"][1]["name"], "util-hash_text");
    let called = client.tool(
        "util-hash_text",
        json!({"text": "hello", "algorithm": "sha256"}),
    );
    assert!(
        called["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("2cf24dba"))
    );
}
