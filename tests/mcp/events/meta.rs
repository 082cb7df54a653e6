//! `_meta` of callers on its way to a server, and errors of servers with much data.

use harness::mcp_http::{McpSession, modern};
use serde_json::{Value, json};

use super::{broker, broker_of, direct, last_meta, through_meta};

/// A caller's `_meta` with members that the protocol reserves, and the part that a server gets.
fn both() -> (Value, Value) {
    let sent = json!({
        "traceparent": "00-1",
        "com.example/x": {"n": [1, null]},
        "io.modelcontextprotocol/related-task": {"taskId": "1"},
        "dev.mcp/x": 1,
        "progressToken": "token of the caller",
    });
    let passed = json!({"traceparent": "00-1", "com.example/x": {"n": [1, null]}});
    (sent, passed)
}

/// The members that the server of `/a` got, without those of the broker.
fn received(chaos: &harness::Chaos) -> Value {
    let mut meta = last_meta(chaos);
    if let Some(members) = meta.as_object_mut() {
        members.retain(|name, _| !name.starts_with("io.modelcontextprotocol/"));
        let token = members.remove("progressToken");
        assert!(token.is_none_or(|token| token.is_u64()));
    }
    meta
}

#[test]
fn meta_of_a_caller_reaches_the_server_without_reserved_members() {
    for era in ["legacy", "modern"] {
        let (chaos, broker) = broker(&json!({"era": era}));
        let (sent, passed) = both();
        for (route, params) in [
            ("/mcp/direct", direct(&sent)),
            ("/mcp/meta", through_meta(&sent)),
        ] {
            let session = McpSession::begin(broker.address(), route);
            session.result("tools/call", &params);
            assert_eq!(received(&chaos), passed, "{era} {route}");
            let id = json!(1);
            let reply = modern(broker.address(), route, &id, "tools/call", &params);
            assert!(reply.json()["result"].is_object(), "{}", reply.text());
            assert_eq!(received(&chaos), passed, "{era} {route}");
        }
        let body = json!({"path": "/a/echo", "args": {"text": "x"}, "meta": sent});
        assert_eq!(broker.post("/meta_call", &body).status, 200);
        assert_eq!(received(&chaos), passed, "{era}");
        broker.result("/a/echo", json!({"text": "x"}));
        assert!(matches!(received(&chaos), Value::Null | Value::Object(_)));
        assert!(received(&chaos).get("traceparent").is_none());
    }
}

#[test]
fn baggage_of_a_caller_reaches_trusted_sources_only() {
    for (level, gets_it) in [("trusted", true), ("verified", false), ("untrusted", false)] {
        let (chaos, broker) = broker_of(&json!({}), |config| {
            let source = &mut config["tree"][0]["source"];
            source["trust"] = json!(level);
            source["tool_filter"] = json!(["*"]);
        });
        let sent = json!({"baggage": "user=canary", "traceparent": "00-1"});
        let body = json!({"path": "/a/echo", "args": {"text": "x"}, "meta": sent});
        assert_eq!(broker.post("/meta_call", &body).status, 200);
        assert_eq!(received(&chaos)["traceparent"], "00-1");
        let session = McpSession::begin(broker.address(), "/mcp/direct");
        session.result("tools/call", &direct(&sent));
        let meta = received(&chaos);
        assert_eq!(meta["traceparent"], "00-1", "{level}");
        assert_eq!(meta["baggage"] == "user=canary", gets_it, "{level}: {meta}");
    }
}

#[test]
fn meta_over_its_limit_is_refused_before_the_call() {
    let (chaos, broker) = broker(&json!({}));
    let of = |length: usize| json!({"a": "x".repeat(length)});
    let most = (8 << 10) - of(0).to_string().len();
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    session.result("tools/call", &direct(&of(most)));
    assert_eq!(received(&chaos), of(most));
    let refused = session.ask(&json!(1), "tools/call", &direct(&of(most + 1)));
    assert_eq!(
        refused.json()["error"]["code"],
        -32602,
        "{}",
        refused.text()
    );
    for wrong in [of(most + 1), json!([1]), json!("x")] {
        let body = json!({"path": "/a/echo", "args": {"text": "x"}, "meta": wrong});
        let refused = broker.post("/meta_call", &body);
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
    assert_eq!(chaos.events("a", "call").len(), 1);
}

#[test]
fn error_of_a_server_has_its_data_up_to_sixteen_kibibytes() {
    let error = |bytes: usize| json!({"code": -32603, "message": "no luck", "data": {"text": "x".repeat(bytes)}});
    let script = |bytes: usize| json!({"on_call": {"echo": {"rpc_error": error(bytes)}}, "generation": bytes});
    let most = (16 << 10) - error(0).to_string().len();
    let (chaos, broker) = broker(&script(most));
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let answer = || {
        let reply = session.ask(&json!(1), "tools/call", &direct(&json!({})));
        reply.json()["error"].clone()
    };
    assert_eq!(answer(), error(most));
    chaos.script("a", &script(most + 1024));
    let cut = answer();
    assert_eq!(
        (&cut["code"], &cut["message"]),
        (&json!(-32603), &json!("no luck"))
    );
    let data = cut["data"]
        .as_str()
        .unwrap_or_else(|| panic!("a text: {cut}"));
    assert!(data.ends_with("… (cut)") && cut.to_string().len() <= 17 << 10);
}
