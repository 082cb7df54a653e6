//! The routing `CALL_TOOL`: `retrieve_tools` and `call_tool`, in both eras.

use harness::json_text;
use harness::mcp_http::{McpSession, modern};
use serde_json::{Value, json};

use super::{ROUTE, found, listed, retrieve, smoke_broker};
use crate::stdio::client::Client;

const UPPER: &str = "HELLO";

/// The params of a call of `/text/text_case` by a name.
fn upper(name: &str, arguments: &str) -> Value {
    let (name_member, name) = match name.split_once('=') {
        Some((member, name)) => (member, name),
        None => ("name", name),
    };
    let body = json!({name_member: name, arguments: {"text": "hello", "to": "upper"}});
    json!({"name": "call_tool", "arguments": body})
}

fn text_of(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("a text: {result}"))
}

#[test]
fn client_finds_a_tool_and_calls_it_by_name_or_path() {
    let broker = smoke_broker(&["--mcp-mode", "search"], &[]);
    let session = McpSession::begin(broker.address(), "/mcp");
    assert_eq!(listed(&session), ["retrieve_tools", "call_tool"]);
    let answer = retrieve(&session, json!({"query": "upper case text"}));
    let tool = &answer["tools"][0];
    assert_eq!(tool["name"], "text-text_case");
    assert_eq!(tool["path"], "/text/text_case");
    assert!(
        tool["description"]
            .as_str()
            .is_some_and(|text| text.starts_with("Writes a text in another case"))
    );
    let described = broker.post("/meta_desc", &json!({"path": "/text/text_case"}));
    assert_eq!(tool["input_schema"], described.json()["args_schema"]);
    assert_eq!(
        (&tool["score"], &tool["registered"]),
        (&json!(1.0), &json!(false))
    );
    assert_eq!(answer["newly_registered"], json!([]));
    assert_eq!(answer["evicted"], json!([]));
    assert!(
        answer["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("`call_tool`"))
    );
    assert_eq!(found(&answer).len(), 5);
    let limited = retrieve(&session, json!({"query": "upper case text", "limit": 2}));
    assert_eq!(found(&limited), found(&answer)[..2]);
    for params in [
        upper("text-text_case", "arguments"),
        upper("/text/text_case", "arguments"),
        upper("path=/text/text_case", "args"),
    ] {
        let result = session.result("tools/call", &params);
        assert_eq!(text_of(&result), UPPER, "{params}");
    }
    let flat = json!({"name": "text-text_case", "arguments": {"text": "hello", "to": "upper"}});
    assert_eq!(text_of(&session.result("tools/call", &flat)), UPPER);
}

#[test]
fn modern_requests_see_two_tools_with_both_routings() {
    for routing in ["CALL_TOOL", "DYNAMIC"] {
        let broker = smoke_broker(&["--routing", routing], &[]);
        let result = |method: &str, params: &Value| {
            let reply = modern(broker.address(), ROUTE, &json!(1), method, params).json();
            assert!(reply["result"].is_object(), "{reply}");
            reply["result"].clone()
        };
        let names = || {
            let list = result("tools/list", &json!({}));
            let tools = list["tools"].as_array().expect("a list").iter();
            tools.map(|tool| tool["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["retrieve_tools", "call_tool"]);
        let query = json!({"name": "retrieve_tools", "arguments": {"query": "hash text"}});
        let answer = json_text(&result("tools/call", &query));
        assert_eq!(answer["tools"][0]["name"], "util-hash_text");
        assert_eq!(answer["tools"][0]["registered"], false);
        assert_eq!(answer["newly_registered"], json!([]));
        assert!(
            answer["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("`call_tool`"))
        );
        assert_eq!(names(), ["retrieve_tools", "call_tool"]);
        let called = result("tools/call", &upper("text-text_case", "arguments"));
        assert_eq!(text_of(&called), UPPER);
        let discovered = result("server/discover", &json!({}));
        assert_eq!(discovered["capabilities"]["tools"], json!({}));
    }
}

#[test]
fn wrong_requests_say_what_to_change() {
    let broker = smoke_broker(&[], &[]);
    let session = McpSession::begin(broker.address(), ROUTE);
    let refused = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let result = session.result("tools/call", &params);
        assert_eq!(result["isError"], true, "{result}");
        text_of(&result).to_owned()
    };
    let text = refused("retrieve_tools", json!({"limit": 3}));
    assert!(text.contains("`query` is missing"), "{text}");
    let text = refused("retrieve_tools", json!({"query": "x", "limit": 51}));
    assert!(
        text.contains("`limit` must be an integer from 1 to 50"),
        "{text}"
    );
    let text = refused("retrieve_tools", json!({"query": "é".repeat(401)}));
    assert!(text.contains("1 to 400 characters"), "{text}");
    let text = refused("call_tool", json!({"name": "text-nope"}));
    assert!(text.contains("no tool has the name `text-nope`"), "{text}");
    for wrong in [
        "text_text_case",
        "text-text_cases",
        "text_case",
        "text/text_case",
    ] {
        let text = refused("call_tool", json!({ "name": wrong }));
        assert!(
            text.contains(r#"Send `\"name\": \"/text/text_case\"`"#),
            "{wrong}: {text}"
        );
    }
    let text = refused("call_tool", json!({"name": "/text/text_cas"}));
    assert!(text.contains("/text/text_case"), "{text}");
    let text = refused(
        "call_tool",
        json!({"name": "text-text_case", "arguments": {"text": 1}}),
    );
    assert!(text.contains("args_invalid"), "{text}");
    let unknown = json!({"name": "/text/text_case"});
    let reply = session.ask(&json!(1), "tools/call", &unknown).json();
    let message = reply["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("call it by `call_tool` with this as `name`"),
        "{message}"
    );
}

#[test]
fn number_of_hits_and_mode_come_from_the_first_setting_that_is_made() {
    let other_proxy = [
        ("MCPPROXY_ROUTING_TYPE", "CALL_TOOL"),
        ("MCPPROXY_TOP_K", "3"),
    ];
    let broker = smoke_broker(&[], &other_proxy);
    let session = McpSession::begin(broker.address(), "/mcp");
    let query = json!({"query": "text"});
    assert_eq!(found(&retrieve(&session, query.clone())).len(), 3);
    drop(broker);
    let both = [
        ("MCP_BROKER_TOP_K", "4"),
        ("MCPPROXY_TOP_K", "3"),
        ("MCP_BROKER_MCP_MODE", "search"),
    ];
    let broker = smoke_broker(&[], &both);
    let session = McpSession::begin(broker.address(), "/mcp");
    assert_eq!(found(&retrieve(&session, query.clone())).len(), 4);
    let warning = "`MCP_BROKER_TOP_K` and `MCPPROXY_TOP_K` differ";
    assert_eq!(broker.stderr().matches(warning).count(), 1);
    drop(broker);
    let broker = smoke_broker(&["--top-k", "2"], &both);
    let session = McpSession::begin(broker.address(), "/mcp");
    assert_eq!(found(&retrieve(&session, query)).len(), 2);
}

#[test]
fn client_over_stdio_finds_and_calls() {
    let mut client = Client::start(&["--mcp-mode", "search"]);
    client.request(json!(0), "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}));
    let found = client.tool("retrieve_tools", json!({"query": "hash text"}));
    assert_eq!(json_text(&found)["tools"][0]["name"], "util-hash_text");
    let call = json!({"name": "text-text_case", "arguments": {"text": "hello", "to": "upper"}});
    assert_eq!(text_of(&client.tool("call_tool", call)), UPPER);
}
