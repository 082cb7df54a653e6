//! The mode `direct`: every tool by a flat name, with its reviewed text; changes of the list.

use harness::mcp_http::{EventReader, McpSession, modern, send_modern};
use harness::{Chaos, wait_until};
use serde_json::{Value, json};

use super::{chaos_broker, echo, echoed, names, text_of};

#[test]
fn direct_list_has_every_tool_with_its_reviewed_text() {
    let (_chaos, broker) = chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let list = session.result("tools/list", &json!({}));
    let names = names(&list);
    assert!(names.contains(&"a-echo".to_owned()) && names.contains(&"b-add".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("meta_")));
    assert!(list.get("nextCursor").is_none() && list.get("resultType").is_none());
    let tools = list["tools"].as_array().expect("a list");
    for tool in tools {
        assert!(tool["inputSchema"].is_object(), "{tool}");
        assert!(
            tool.get("execution").is_none() && tool.get("_meta").is_none(),
            "{tool}"
        );
    }
    let modern_list = modern(
        broker.address(),
        "/mcp/direct",
        &json!(1),
        "tools/list",
        &json!({}),
    );
    let result = &modern_list.json()["result"];
    assert_eq!(result["tools"], list["tools"]);
    assert_eq!(result["resultType"], "complete");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string());
    let mode_of_the_config = McpSession::begin(broker.address(), "/mcp");
    let meta = mode_of_the_config.result("tools/list", &json!({}));
    assert_eq!(super::names(&meta), ["meta_tree", "meta_desc", "meta_call"]);
}

#[test]
fn direct_call_returns_the_result_of_the_server() {
    let (_chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    let session = McpSession::begin(broker.address(), "/mcp");
    let result = session.result("tools/call", &echo("hello"));
    assert_eq!(echoed(&result), "hello");
    let sum = json!({"name": "a-add", "arguments": {"a": 1, "b": 2}});
    let over_meta = broker.result("/a/add", json!({"a": 1, "b": 2}));
    let same = |result: &Value| result["structuredContent"] == over_meta["structuredContent"];
    assert!(same(&session.result("tools/call", &sum)), "{over_meta}");
    let reply = modern(
        broker.address(),
        "/mcp",
        &json!("x"),
        "tools/call",
        &echo("hello"),
    );
    assert_eq!(echoed(&reply.json()["result"]), "hello");
    assert_eq!(reply.json()["id"], "x");
}

#[test]
fn direct_call_that_the_broker_refuses_is_a_result_with_the_error() {
    let (_chaos, broker) = chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let wrong = json!({"name": "a-add", "arguments": {"a": "one", "b": 2}});
    let refused = session.result("tools/call", &wrong);
    assert_eq!(refused["isError"], true);
    assert!(refused.get("structuredContent").is_none());
    assert!(text_of(&refused).contains("args_invalid"), "{refused}");
}

#[test]
fn tool_that_is_unknown_or_hidden_is_refused_in_the_same_words() {
    let (_chaos, broker) = chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let code_and_message = |name: &str| {
        let reply = session.ask(&json!(1), "tools/call", &json!({"name": name}));
        let error = reply.json()["error"].clone();
        let message = error["message"]
            .as_str()
            .expect("a message")
            .replace(name, "NAME");
        (
            reply.status,
            error["code"].clone(),
            error.get("data").cloned(),
            message,
        )
    };
    let unknown = code_and_message("a-nope");
    assert_eq!((unknown.0, &unknown.1), (200, &json!(-32602)));
    // The filter of `/b` hides it.
    assert_eq!(code_and_message("b-fail"), unknown);
    assert_eq!(code_and_message("/a/echo"), unknown);
    assert_eq!(code_and_message("meta_call"), unknown);
}

#[test]
fn error_of_a_server_stays_a_json_rpc_error_in_direct_mode() {
    let (chaos, broker) = chaos_broker(&[]);
    let error = |code: i64| json!({"code": code, "message": "no luck", "data": {"why": [1]}});
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let mut generation = 0;
    let mut answers = |code: i64| {
        generation += 1;
        chaos.script(
            "a",
            &json!({"on_call": {"echo": {"rpc_error": error(code)}}, "generation": 0}),
        );
        let legacy = session.ask(&json!(1), "tools/call", &echo("x")).json()["error"].clone();
        let route = "/mcp/direct";
        let reply = modern(broker.address(), route, &json!(1), "tools/call", &echo("x"));
        (legacy, reply.json()["error"].clone(), reply.status)
    };
    let (legacy, modern, status) = answers(-32603);
    assert_eq!(
        (&legacy, &modern, status),
        (&error(-32603), &error(-32603), 200)
    );
    let (legacy, modern, _) = answers(-32001);
    assert_eq!(legacy, error(-32001));
    assert_eq!(modern["code"], -32603);
    assert_eq!(modern["data"]["dev.mcp-broker/original"], error(-32001));
    let (legacy, modern, status) = answers(-32021);
    assert_eq!(
        (legacy["code"].clone(), &modern, status),
        (json!(-32603), &error(-32021), 400)
    );
}

/// The tools of `/a` without `echo`.
fn without_echo(generation: u64) -> Value {
    json!({"tools": Chaos::tools_without("echo"), "generation": generation})
}

#[test]
fn tool_that_is_withdrawn_leaves_the_list_and_its_call_says_why() {
    let (chaos, broker) = chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let mut stream = session.stream();
    assert!(stream.head.contains("x-accel-buffering: no"));
    let listen = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let route = "/mcp/direct";
    let sent = send_modern(
        broker.address(),
        route,
        &json!("sub"),
        "subscriptions/listen",
        &listen,
    );
    let mut subscription = EventReader::open(sent);
    let acknowledged = subscription.next_message().expect("an acknowledgement");
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    let before = names(&session.result("tools/list", &json!({})));

    chaos.script("a", &without_echo(1));
    let changed = stream.next_message().expect("the change is announced");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let changed = subscription
        .next_message()
        .expect("the change is announced");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let id = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(id, "sub");
    let during = names(&session.result("tools/list", &json!({})));
    let lost: Vec<_> = before
        .iter()
        .filter(|name| !during.contains(name))
        .collect();
    assert_eq!(lost, ["a-echo"]);
    let refused = session.result("tools/call", &echo("x"));
    assert!(text_of(&refused).contains("tool_withdrawn"), "{refused}");

    chaos.script("a", &json!({"generation": 2}));
    assert!(stream.next_message().is_some() && subscription.next_message().is_some());
    wait_until("the tool is back", || {
        names(&session.result("tools/list", &json!({}))) == before
    });
}

#[test]
fn cursor_that_is_not_one_of_the_list_is_refused() {
    let (_chaos, broker) = chaos_broker(&[]);
    for (route, cursor) in [
        ("/mcp/direct", json!("nope")),
        ("/mcp/direct", json!(1)),
        ("/mcp", json!("a-echo")),
    ] {
        let session = McpSession::begin(broker.address(), route);
        let (id, params) = (json!(1), json!({"cursor": cursor}));
        for reply in [
            session.ask(&id, "tools/list", &params),
            modern(broker.address(), route, &id, "tools/list", &params),
        ] {
            assert_eq!(
                (reply.status, &reply.json()["error"]["code"]),
                (200, &json!(-32602))
            );
        }
    }
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let rest = session.result("tools/list", &json!({"cursor": "a-echo"}));
    assert!(
        !names(&rest).contains(&"a-echo".to_owned()) && names(&rest).contains(&"b-add".to_owned())
    );
}
