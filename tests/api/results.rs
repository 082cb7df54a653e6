//! The forms of a result, and replies that are cut, through the real binary.

use std::fs;

use harness::{Broker, Chaos, DirectServer, refusal};
use serde_json::{Value, json};

/// A broker with these settings of the tools of `/a`, and lines of up to 32 MiB.
fn started(overrides: &Value, script: &Value) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    chaos.script("a", script);
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let file = chaos.config(compiled, |config| {
        config["limits"]["line_bytes"] = json!(32 << 20);
        for (tool, says) in overrides.as_object().expect("overrides") {
            for (key, value) in says.as_object().expect("one override") {
                config["tree"][0]["source"]["tool_overrides"][tool][key] = value.clone();
            }
        }
    });
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &file]));
    (chaos, broker)
}

/// Peak and current resident memory, in KiB.
fn memory(broker: &Broker) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{}/status", broker.pid())).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse().ok()).expect("a figure")
    };
    (field("VmHWM:"), field("VmRSS:"))
}

#[test]
fn render_mode_keeps_the_error_flag_of_a_result() {
    let result = json!({
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        "structuredContent": {"n": 1.5, "list": [1, 2]},
        "isError": true,
    });
    let script = json!({"on_call": {"*": {"result": result}}});
    let (_chaos, broker) = started(
        &json!({"echo": {"render_mode": "text"}, "structured": {"render_mode": "structured"}}),
        &script,
    );
    assert_eq!(
        broker.result("/a/echo", json!({"text": "x"})),
        json!({"content": [{"type": "text", "text": "one\ntwo"}], "isError": true})
    );
    assert_eq!(
        broker.result("/a/structured", json!({"n": 1})),
        json!({"content": [], "structuredContent": {"n": 1.5, "list": [1, 2]}, "isError": true})
    );
    let whole = broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(whole["content"], result["content"]);
}

#[test]
fn reply_over_its_limit_is_cut_and_marked() {
    let (_chaos, broker) = started(
        &json!({"echo": {"max_output_chars": 1000}}),
        &json!({"plain": true}),
    );
    let reply = broker.call("/a/echo", json!({"text": "é".repeat(5000)}));
    assert_eq!(reply.status, 200);
    assert!(reply.text().chars().count() <= 1000, "{}", reply.text());
    let reply = reply.json();
    assert_eq!(reply["truncated"]["limit"], 1000);
    assert_eq!(reply["truncated"]["cuts"][0]["kind"], "string");
    assert_eq!(reply["truncated"]["cuts"][0]["pointer"], "/content/0/text");
    let short = broker.call("/a/echo", json!({"text": "x"})).json();
    assert_eq!(short.get("truncated"), None);
}

#[test]
fn cut_of_15_mib_takes_at_most_four_times_its_size() {
    const SIZE: u64 = 15 << 20;
    let (_chaos, broker) = started(
        &json!({"echo": {"max_output_chars": 10000}}),
        &json!({"on_call": {"echo": {"big": SIZE}}}),
    );
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    let (_, before) = memory(&broker);
    let reply = broker.call("/a/echo", json!({"text": "x"}));
    let (peak, _) = memory(&broker);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.text().chars().count() <= 10000);
    let original = reply.json()["truncated"]["original_chars"].as_u64();
    assert!(original.is_some_and(|chars| chars >= SIZE), "{original:?}");
    let used = (peak - before) * 1024;
    assert!(used <= 4 * SIZE, "{} MiB were used", used >> 20);
}

#[test]
fn result_of_another_type_in_any_spelling_is_refused() {
    let form = r#"{"result\u0054ype":"input_required","inputRequests":{"password":{"method":"elicitation/create","params":{"message":"Type your password"}}}}"#;
    let script = json!({"on_call": {"echo": {"raw_result": form}}});
    let (chaos, broker) = started(&json!({}), &script);
    let reply = broker.call("/a/echo", json!({"text": "x"}));
    refusal(&reply, 502, "source_protocol");
    assert!(!reply.text().contains("password"), "{}", reply.text());

    let mut client = DirectServer::start(chaos.run("chaos-broker", &["stdio"]));
    let arguments = json!({"path": "/a/echo", "args": {"text": "x"}});
    let answer = client.call("meta_call", &arguments);
    let result = &answer["result"];
    assert_eq!(
        (&result["isError"], &result["resultType"]),
        (&json!(true), &json!("complete")),
        "{answer}"
    );
    let text = answer.to_string();
    assert!(text.contains("source_protocol"), "{text}");
    assert!(!text.contains("password"), "{text}");
}
