//! `mcp.split_calls`: three tools that call others, each with true annotations.

use std::fs;
use std::path::Path;

use harness::mcp_http::McpSession;
use harness::{Broker, Chaos};
use serde_json::{Value, json};

use super::listed;

/// A broker of scripted servers, whose tools have no annotations, with split calls.
fn split() -> (Chaos, Broker) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos-broker/config.json");
    let text = fs::read_to_string(file).expect("the config");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["mcp"] = json!({"split_calls": true});
    let chaos = Chaos::new();
    let file = chaos.file("given.json", &config.to_string());
    let name = file.to_str().expect("the path is text");
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", name]));
    (chaos, broker)
}

fn entry<'a>(list: &'a Value, name: &str) -> &'a Value {
    let tools = list["tools"].as_array().expect("a list");
    let found = tools.iter().find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {list}"))
}

#[test]
fn split_calls_take_only_the_tools_that_their_annotations_name() {
    let (_chaos, broker) = split();
    for (route, prefix, member) in [
        ("/mcp", "meta_call", "path"),
        ("/mcp/search", "call_tool", "name"),
    ] {
        let session = McpSession::begin(broker.address(), route);
        let names = listed(&session);
        let calls = ["read", "write", "destructive"].map(|end| format!("{prefix}_{end}"));
        assert_eq!(names[names.len() - 3..], calls);
        assert!(!names.contains(&prefix.to_owned()));
        let list = session.result("tools/list", &json!({}));
        let hints = |at: usize| {
            let annotations = &entry(&list, &calls[at])["annotations"];
            (
                annotations["readOnlyHint"].clone(),
                annotations["destructiveHint"].clone(),
            )
        };
        assert_eq!(hints(0), (json!(true), Value::Null));
        assert_eq!(hints(1), (json!(false), json!(false)));
        assert_eq!(hints(2), (json!(false), json!(true)));
        let arguments = if member == "path" {
            "args"
        } else {
            "arguments"
        };
        let call = |tool: &str| {
            let body = json!({member: "/a/echo", arguments: {"text": "hi"}});
            session.result("tools/call", &json!({"name": tool, "arguments": body}))
        };
        for wrong in &calls[..2] {
            let refused = call(wrong);
            let text = refused["content"][0]["text"].as_str().expect("a text");
            assert_eq!(refused["isError"], true);
            assert!(
                text.contains(&format!("Call it by `{}`", calls[2])),
                "{text}"
            );
        }
        assert_ne!(call(&calls[2])["isError"], true);
        let unknown = json!({"name": prefix, "arguments": {}});
        let reply = session.ask(&json!(1), "tools/call", &unknown).json();
        assert!(
            reply["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains(&calls[0]))
        );
    }
}

#[test]
fn tool_that_only_reads_is_called_by_the_tool_for_reading() {
    let text = fs::read_to_string("smoke_config.json").expect("the config");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["mcp"] = json!({"split_calls": true});
    config.as_object_mut().expect("an object").remove("$schema");
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("c.json");
    fs::write(&file, config.to_string()).expect("written");
    let broker = super::smoke_broker(&[file.to_str().expect("text")], &[]);
    let session = McpSession::begin(broker.address(), "/mcp");
    let body = json!({"path": "/text/text_case", "args": {"text": "a", "to": "upper"}});
    let call = |name: &str| session.result("tools/call", &json!({"name": name, "arguments": body}));
    assert_eq!(call("meta_call_read")["content"][0]["text"], "A");
    assert_eq!(call("meta_call_destructive")["isError"], true);
}
