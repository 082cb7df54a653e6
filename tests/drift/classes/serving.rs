//! Drift that leaves all tools served: `same`, `equivalent`, `text`, `compatible`, `added`.

use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

use super::replies::MARK;
use super::table::{ADD, ECHO, SLOW, Subject, check_case, tool};

#[test]
fn annotations_with_the_same_meaning_are_equivalent() {
    check_case("equivalent", ECHO, &["annotations-respelled"], |script| {
        tool(script, "echo")["annotations"] = json!({"readOnlyHint": false});
    });
}

#[test]
fn schema_in_another_form_is_equivalent() {
    check_case("equivalent", ADD, &["input-rearranged"], |script| {
        let schema = &mut tool(script, "add")["inputSchema"];
        schema["$defs"] = json!({ MARK: {"type": "number"} });
        schema["properties"]["a"] = json!({"$ref": format!("#/$defs/{MARK}")});
    });
}

#[test]
fn description_change_is_text_drift() {
    check_case("text", ECHO, &["description-changed"], |script| {
        tool(script, "echo")["description"] = json!(format!("Sends it away, {MARK}"));
    });
}

#[test]
fn text_member_changes_are_text_drift() {
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
    check_case("text", ECHO, &rules, |script| {
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
fn parameter_added_as_a_free_text_is_compatible() {
    let rules = ["input-channel-added", "input-text-changed"];
    check_case("compatible", ECHO, &rules, |script| {
        let more = json!({"type": "string", "description": format!("Your notes, {MARK}")});
        tool(script, "echo")["inputSchema"]["properties"][MARK] = more;
    });
}

#[test]
fn limits_widened_and_another_default_are_compatible() {
    let rules = ["input-default-changed", "input-limit-widened"];
    check_case("compatible", SLOW, &rules, |script| {
        let schema = json!({"type": "integer", "minimum": -5, "default": 1});
        tool(script, "slow")["inputSchema"]["properties"]["ms"] = schema;
    });
}

#[test]
fn compatible_change_keeps_the_reviewed_schema_for_callers() {
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
fn tool_added_without_review_is_not_served() {
    const NEW: &str = "qzmark_new";
    check_case("added", Subject::New(NEW), &["tool-added"], |script| {
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
fn order_change_at_run_time_is_not_logged() {
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
    wait_until("the withdrawal is logged", || {
        broker.stderr().contains("tool withdrawn")
    });
    let log = broker.stderr();
    assert_eq!(log.matches("tool withdrawn").count(), 1, "{log}");
    assert!(!log.contains("differs") && !log.contains("news"), "{log}");
}
