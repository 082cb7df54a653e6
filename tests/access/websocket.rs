//! Keys over WebSocket: what a connection lists, and its end with the right of its caller.

use harness::websocket::WebSocketClient;
use serde_json::{Value, json};

use crate::caller::Key;
use crate::stage::Stage;

/// `ada` sees `/a/echo`, `bob` sees `/a/add`.
fn stage() -> (Stage, Key, Key) {
    let access = json!({
        "groups": ["ada", "bob"],
        "rules": [{"allow": ["/a/echo"], "to": ["ada"]}, {"allow": ["/a/add"], "to": ["bob"]}],
        "anonymous": [],
    });
    let keys = ["ada", "bob"].map(|name| Key::new(name, &[name]));
    let stage = Stage::new(access, &keys.each_ref());
    let [ada, bob] = keys;
    (stage, ada, bob)
}

fn connect(stage: &Stage, key: &Key) -> WebSocketClient {
    let target = format!("/v1/ws/mcp?api_key={}", key.text);
    let client = WebSocketClient::try_connect(stage.broker.address(), &target, &[]);
    client.expect("it is upgraded")
}

fn names(client: &mut WebSocketClient) -> Vec<Value> {
    let list = client.result("tools/list", &json!({}));
    let tools = list["tools"].as_array().expect("a list").iter();
    tools.map(|tool| tool["name"].clone()).collect()
}

#[test]
fn connection_lists_and_calls_what_its_key_may() {
    let (stage, ada, bob) = stage();
    let (mut of_ada, mut of_bob) = (connect(&stage, &ada), connect(&stage, &bob));
    assert_eq!(names(&mut of_ada), [json!("a-echo")]);
    assert_eq!(names(&mut of_bob), [json!("a-add")]);
    let call = json!({"name": "a-echo", "arguments": {"text": "x"}});
    assert_eq!(of_ada.result("tools/call", &call)["status"], "ok");
    assert_eq!(of_bob.answer("tools/call", &call)["error"]["code"], -32602);
    let command = json!({"stage": "a", "command": "echo", "args": {"text": "x"}});
    assert_eq!(of_bob.answer("callTool", &command)["error"]["code"], -32602);
}

#[test]
fn connection_closes_when_its_key_is_removed() {
    let (stage, ada, bob) = stage();
    let (mut of_ada, mut of_bob) = (connect(&stage, &ada), connect(&stage, &bob));
    assert_eq!(names(&mut of_ada).len(), 1);
    stage.keys(std::slice::from_ref(&bob.entry));
    let (code, reason) = of_ada.close_code();
    assert_eq!(
        (code, reason.as_str()),
        (1008, "the right of the caller has ended")
    );
    assert_eq!(names(&mut of_bob).len(), 1, "the other one goes on");
}

#[test]
fn discovery_shows_what_a_caller_may_see_and_has_its_own_tag() {
    let (stage, ada, bob) = stage();
    let get = |key: &Key, tag: &str| {
        let key = format!("Bearer {}", key.text);
        let headers = [("Authorization", key.as_str()), ("If-None-Match", tag)];
        harness::request(stage.broker.address(), "GET", "/v1/mcp", &headers, b"")
    };
    let (of_ada, of_bob) = (get(&ada, ""), get(&bob, ""));
    let first =
        |reply: &harness::Response| reply.json()["capabilities"]["commands"][0]["name"].clone();
    assert_eq!(
        (first(&of_ada), first(&of_bob)),
        (json!("a-echo"), json!("a-add"))
    );
    let tag = of_ada.header("etag").expect("a tag");
    assert_ne!(Some(tag), of_bob.header("etag"));
    assert_eq!(get(&ada, tag).status, 304);
    assert_eq!(get(&bob, tag).status, 200);
    let anonymous = harness::request(stage.broker.address(), "OPTIONS", "/v1/mcp", &[], b"");
    assert_eq!(anonymous.status, 401);
}
