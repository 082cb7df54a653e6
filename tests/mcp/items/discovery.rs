//! What the modern era declares: only what a caller has.

use harness::mcp_http::modern;
use serde_json::{Value, json};

use super::Items;

/// The capabilities that `server/discover` declares for a broker with these members of its source.
fn declared(members: &Value) -> Value {
    let lists = json!({
        "prompts": [{"name": "ask", "description": "Asks."}],
        "resources": [{"uri": "x://a", "name": "a"}],
    });
    let broker = Items::new(&lists, members).serve();
    let reply = modern(
        broker.address(),
        "/mcp",
        &json!(1),
        "server/discover",
        &json!({}),
    );
    reply.json()["result"]["capabilities"].clone()
}

#[test]
fn discovery_declares_only_what_the_caller_has() {
    let tools = declared(&json!({}));
    for name in ["prompts", "resources", "completions"] {
        assert_eq!(tools.get(name), None, "{tools}");
    }
    let prompts = declared(&json!({"prompt_filter": ["*"]}));
    assert!(prompts["prompts"].is_object() && prompts["completions"].is_object());
    assert_eq!(prompts.get("resources"), None, "{prompts}");
    let resources = declared(&json!({"resources": "locked", "resource_filter": ["*"]}));
    assert!(resources["resources"].is_object(), "{resources}");
    assert_eq!(resources.get("prompts"), None, "{resources}");
}
