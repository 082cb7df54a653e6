//! Log messages of servers, on their way to the caller to whose request they certainly belong.

use harness::mcp_http::McpSession;
use harness::{Broker, Chaos, wait_until};
use serde_json::{Value, json};

use super::{MESSAGE, broker, direct, in_session, last_meta, messages, modern, stdio};

/// A server of `/a` that logs these messages and then answers.
fn logging(era: &str, messages: &[Value]) -> Value {
    json!({
        "era": era,
        "capabilities": {"tools": {"listChanged": true}, "logging": {}},
        "on_call": {"echo": {"log": messages}},
    })
}

/// A message of each of three levels.
fn three_levels() -> Vec<Value> {
    vec![
        json!({"level": "debug", "data": "small"}),
        json!({"level": "info", "data": {"a": [1, 2.0]}, "logger": "part"}),
        json!({"level": "error", "data": "large"}),
    ]
}

/// The levels of log messages, which are all that came.
fn levels(messages: &[Value]) -> Vec<&str> {
    let level = |message: &Value| message["method"] == MESSAGE;
    assert!(messages.iter().all(level), "{messages:?}");
    let levels = messages.iter().map(|message| &message["params"]["level"]);
    levels.filter_map(Value::as_str).collect()
}

fn set_level(session: &McpSession, level: &str) {
    let result = session.result("logging/setLevel", &json!({"level": level}));
    assert_eq!(result, json!({}));
}

fn dropped(broker: &Broker) -> u64 {
    let all = broker.get("/sources").json();
    let source = &all["sources"][0];
    assert_eq!(source["path"], "/a");
    let dropped = &source["counters"]["dropped_log_messages"];
    dropped.as_u64().unwrap_or_else(|| panic!("a count: {all}"))
}

#[test]
fn log_messages_of_a_call_right_after_the_level_was_set_reach_its_caller() {
    for era in ["legacy", "modern"] {
        let (chaos, broker) = broker(&logging(era, &three_levels()));
        let session = McpSession::begin(broker.address(), "/mcp/direct");
        // The session has set no level: the reply is one JSON message.
        session.result("tools/call", &direct(&json!({})));
        set_level(&session, "info");
        let (before, _) = in_session(&session, &direct(&json!({})));
        assert_eq!(levels(&before), ["info", "error"], "{era}");
        let params = json!({"level": "info", "logger": "part", "data": {"a": [1, 2.0]}});
        assert_eq!(before[0]["params"], params);
        let asked = &last_meta(&chaos)["io.modelcontextprotocol/logLevel"];
        let sent = chaos.events("a", "set-level");
        match era {
            "legacy" => assert_eq!((asked, &sent[0]["level"]), (&Value::Null, &json!("info"))),
            _ => assert_eq!((asked, sent.len()), (&json!("info"), 0)),
        }
        assert_eq!(
            dropped(&broker),
            0,
            "messages below the level are not counted"
        );
    }
}

#[test]
fn log_messages_over_stdio_come_before_the_result() {
    let chaos = Chaos::new();
    let script = logging("legacy", &three_levels());
    let mut client = stdio(&chaos, &script, &["--mcp-mode", "direct"]);
    // The call is sent before the level was answered.
    client.ask(json!(1), "logging/setLevel", json!({"level": "debug"}));
    client.ask(json!(2), "tools/call", direct(&json!({})));
    assert_eq!(client.read()["result"], json!({}));
    let before: Vec<_> = (0..3).map(|_| client.read()).collect();
    assert_eq!(levels(&before), ["debug", "info", "error"]);
    assert_eq!(client.read()["id"], 2);
    assert_eq!(
        client.refusal("logging/setLevel", json!({"level": "loud"})),
        -32602
    );
}

#[test]
fn session_gets_messages_of_its_own_level_and_the_server_has_the_lowest() {
    let (chaos, broker) = broker(&logging("legacy", &three_levels()));
    let quiet = McpSession::begin(broker.address(), "/mcp/direct");
    let verbose = McpSession::begin(broker.address(), "/mcp/direct");
    let silent = McpSession::begin(broker.address(), "/mcp/direct");
    set_level(&quiet, "error");
    chaos.await_events("a", "set-level", 1);
    set_level(&verbose, "debug");
    chaos.await_events("a", "set-level", 2);
    set_level(&quiet, "warning");
    let call = direct(&json!({}));
    assert_eq!(levels(&in_session(&quiet, &call).0), ["error"]);
    assert_eq!(levels(&in_session(&verbose, &call).0).len(), 3);
    assert!(silent.ask(&json!(1), "tools/call", &call).json()["result"].is_object());
    // A modern request names its level, or gets no messages.
    let own = direct(&json!({"io.modelcontextprotocol/logLevel": "info"}));
    let (before, _) = modern(&broker, "/mcp/direct", &own);
    assert_eq!(levels(&before), ["info", "error"]);
    let levels: Vec<_> = chaos.events("a", "set-level");
    let levels: Vec<_> = levels.iter().map(|event| &event["level"]).collect();
    assert_eq!(levels, ["error", "debug"], "the level is only lowered");
}

#[test]
fn server_that_is_restarted_gets_the_level_again() {
    let mut script = logging("legacy", &three_levels());
    script["on_call"]["add"] = json!("exit:3");
    let (chaos, broker) = broker(&script);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    set_level(&session, "info");
    chaos.await_events("a", "set-level", 1);
    let failed = broker.call("/a/add", json!({"a": 1, "b": 2}));
    assert_ne!(failed.status, 200);
    let sent = chaos.await_events("a", "set-level", 2);
    assert_eq!(sent[1]["level"], "info");
    assert_ne!(sent[0]["pid"], sent[1]["pid"]);
    let (before, _) = in_session(&session, &direct(&json!({})));
    assert_eq!(levels(&before), ["info", "error"]);
}

#[test]
fn log_messages_during_two_calls_of_a_server_are_dropped_and_counted() {
    let mut script = logging("legacy", &three_levels());
    script["on_call"]["add"] = json!("hang");
    let (chaos, broker) = broker(&script);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    set_level(&session, "debug");
    let add = json!({"name": "a-add", "arguments": {"a": 1, "b": 2}});
    let other = McpSession::begin(broker.address(), "/mcp/direct");
    let open = other.send(&json!(1), "tools/call", &add);
    chaos.await_events("a", "call", 1);
    let reply = session.ask(&json!(1), "tools/call", &direct(&json!({})));
    assert!(reply.json()["result"].is_object(), "{}", reply.text());
    wait_until("the messages are counted", || dropped(&broker) == 3);
    drop(open);
}

#[test]
fn log_messages_are_bounded_and_their_hidden_characters_are_visible() {
    let long = "x".repeat(64 << 10);
    let hidden = "\u{1b}[31m\u{202e}";
    let mut all = vec![
        json!({"level": "info", "data": long, "logger": long}),
        json!({"level": "info", "data": {"a": hidden}, "logger": hidden}),
    ];
    let (chaos, broker) = broker(&logging("legacy", &all));
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    set_level(&session, "info");
    let (before, _) = in_session(&session, &direct(&json!({})));
    assert_eq!(before.len(), 2);
    for text in ["data", "logger"] {
        let text = before[0]["params"][text].as_str().expect("a text");
        assert!((2048..=4096).contains(&text.len()), "{}", text.len());
    }
    let shown = before[1]["params"].to_string();
    assert!(
        !shown.contains('\u{202e}') && !shown.contains("\\u001b"),
        "{shown}"
    );
    assert!(shown.contains("202e"), "{shown}");

    all = vec![json!({"level": "info", "data": "again"}); 200];
    chaos.script("a", &logging("legacy", &all));
    let sent = session.send(&json!(9), "tools/call", &direct(&json!({})));
    let (before, answer) = messages(sent);
    assert_eq!(answer["id"], 9);
    // Those above the rate of one second are dropped; a slow machine may need more than one.
    assert!((1..200).contains(&before.len()), "{}", before.len());
}
