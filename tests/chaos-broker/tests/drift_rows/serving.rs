//! Rows that serve: `same`, `equivalent`, `text`, `compatible`, `added`.

use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

use crate::replies::MARK;
use crate::row::{ADD, About, ECHO, SLOW, row, tool};

#[test]
fn equivalent_annotations_that_make_the_same_claim() {
    row("equivalent", ECHO, &["annotations-respelled"], |script| {
        tool(script, "echo")["annotations"] = json!({"readOnlyHint": false});
    });
}

#[test]
fn equivalent_a_schema_written_otherwise() {
    row("equivalent", ADD, &["input-rearranged"], |script| {
        let schema = &mut tool(script, "add")["inputSchema"];
        schema["$defs"] = json!({ MARK: {"type": "number"} });
        schema["properties"]["a"] = json!({"$ref": format!("#/$defs/{MARK}")});
    });
}

#[test]
fn text_a_description() {
    row("text", ECHO, &["description-changed"], |script| {
        tool(script, "echo")["description"] = json!(format!("Sends it away, {MARK}"));
    });
}

#[test]
fn text_everything_else_that_is_text() {
    let rules = [
        "input-text-changed",
        "meta-changed",
        "annotations-safer",
        "annotations-changed",
        "execution-changed",
        "icons-changed",
        "title-changed",
        "member-changed",
    ];
    row("text", ECHO, &rules, |script| {
        let echo = tool(script, "echo");
        echo["_meta"] = json!({ MARK: MARK });
        echo["annotations"] = json!({"readOnlyHint": true, "title": MARK});
        echo["execution"] = json!({"taskSupport": MARK});
        echo["icons"] = json!([{"src": format!("https://{MARK}.example/x.png")}]);
        echo["inputSchema"]["properties"]["text"]["description"] = json!(MARK);
        echo["title"] = json!(MARK);
        echo["x-more"] = json!({ MARK: [MARK] });
    });
}

#[test]
fn compatible_a_new_channel() {
    let rules = ["input-channel-added", "input-text-changed"];
    row("compatible", ECHO, &rules, |script| {
        let more = json!({"type": "string", "description": format!("Your notes, {MARK}")});
        tool(script, "echo")["inputSchema"]["properties"][MARK] = more;
    });
}

#[test]
fn compatible_wider_bounds_and_another_default() {
    let rules = ["input-default-changed", "input-limit-widened"];
    row("compatible", SLOW, &rules, |script| {
        let schema = json!({"type": "integer", "minimum": -5, "default": 1});
        tool(script, "slow")["inputSchema"]["properties"]["ms"] = schema;
    });
}

#[test]
fn compatible_callers_are_held_to_the_reviewed_schema() {
    let chaos = Chaos::new();
    let tools = Chaos::tools_with("echo", |echo| {
        echo["inputSchema"]["properties"]["more"] = json!({"type": "string"});
    });
    chaos.script("a", &json!({ "tools": tools }));
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]);
    let broker = Broker::start_ready(run);
    broker.result("/a/echo", json!({"text": "x"}));
    let call = broker.call("/a/echo", json!({"text": "x", "more": "y"}));
    let error = refusal(&call, 422, "args_invalid");
    assert!(!error.to_string().contains("\"type\":\"string\",\"more\""));
    let schema = &error["details"]["args_schema"]["properties"];
    assert_eq!(*schema, json!({"text": {"type": "string"}}), "{error}");
    assert_eq!(chaos.events("a", "call").len(), 1);
}

#[test]
fn added_an_unreviewed_tool() {
    const NEW: &str = "qzmark_new";
    row("added", About::New(NEW), &["tool-added"], |script| {
        let tools = script["tools"].as_array_mut().expect("a list");
        tools.push(json!({"name": NEW, "description": MARK, "inputSchema": {"type": "object"}}));
    });
}

/// The value as JSON text with the members of each object in falling order.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            let members: Vec<_> = members
                .map(|(name, value)| format!("{}: {}", json!(name), reversed(value)))
                .collect();
            format!("{{{}}}", members.join(" , "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(reversed).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn same_another_order_while_running_is_not_logged() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let mut tools = Chaos::tools();
    tools.reverse();
    let lists = chaos.await_events("a", "list", 1).len();
    let script = format!(
        r#"{{"generation": 1, "tools": {}}}"#,
        reversed(&json!(tools))
    );
    chaos.raw_script("a", &script);
    chaos.await_events("a", "list", lists + 1);
    // An announced change, after which the previous one has certainly been applied.
    chaos.script(
        "a",
        &json!({"generation": 2, "tools": Chaos::tools_without("fail")}),
    );
    wait_until("the next change is known", || {
        broker.source("/a")["withdrawn"] == 1
    });
    let log = broker.stderr();
    assert_eq!(log.matches("tool withdrawn").count(), 1, "{log}");
    assert!(!log.contains("differs") && !log.contains("news"), "{log}");
}
