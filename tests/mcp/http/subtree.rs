//! Clients that see a part of the tree.

use harness::mcp_http::McpSession;
use harness::tree_paths;
use serde_json::{Value, json};

use crate::stdio::client::{Client, hello};

use super::{chaos_broker, names, text_of};

#[test]
fn session_of_a_subtree_finds_nothing_outside_of_it() {
    let (_chaos, broker) = chaos_broker(&[]);
    let direct = McpSession::begin(broker.address(), "/mcp/direct?under=/b");
    let names = names(&direct.result("tools/list", &json!({})));
    assert!(
        names.contains(&"b-echo".to_owned()) && names.iter().all(|name| name.starts_with("b-"))
    );
    let outside = direct.ask(&json!(1), "tools/call", &json!({"name": "a-echo"}));
    assert_eq!(outside.json()["error"]["code"], -32602);

    let meta = McpSession::begin(broker.address(), "/mcp?under=/b");
    let call = |name: &str, arguments: Value| {
        meta.result("tools/call", &json!({"name": name, "arguments": arguments}))
    };
    let tree = call("meta_tree", json!({}));
    let paths = tree_paths(&tree);
    assert!(!paths.is_empty() && paths.iter().all(|path| path.starts_with("/b/")));
    for (tool, arguments) in [
        ("meta_tree", json!({"path": "/"})),
        ("meta_tree", json!({"path": "/a"})),
        ("meta_desc", json!({"path": "/a/echo"})),
        (
            "meta_call",
            json!({"path": "/a/echo", "args": {"text": "x"}}),
        ),
    ] {
        let refused = call(tool, arguments);
        let text = text_of(&refused);
        assert!(
            text.contains("path_not_found") && !text.contains("/a/add"),
            "{text}"
        );
    }
    let sum = call(
        "meta_call",
        json!({"path": "/b/add", "args": {"a": 1, "b": 2}}),
    );
    assert_ne!(sum["isError"], true, "{sum}");
}

#[test]
fn session_keeps_the_mode_and_the_subtree_that_it_began_with() {
    let (_chaos, broker) = chaos_broker(&[]);
    let began = McpSession::begin(broker.address(), "/mcp/direct?under=/b");
    let elsewhere = began.on_route("/mcp");
    let names = names(&elsewhere.result("tools/list", &json!({})));
    assert!(names.iter().all(|name| name.starts_with("b-")), "{names:?}");
}

#[test]
fn stdio_client_of_a_subtree_sees_only_that() {
    let mut client = Client::start(&["--mcp-mode", "direct", "--under", "/text"]);
    client.request(json!(0), "initialize", hello("2025-11-25"));
    let list = client.request(json!(1), "tools/list", json!({}));
    let names = names(&list["result"]);
    assert!(
        !names.is_empty() && names.iter().all(|name| name.starts_with("text-")),
        "{names:?}"
    );
}
