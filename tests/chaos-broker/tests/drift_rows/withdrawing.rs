//! Rows that withdraw one tool: `breaking`, `security`, `unknown`, `gone`.

use serde_json::json;

use crate::replies::MARK;
use crate::row::{ADD, ECHO, STRUCTURED, row, tool};

#[test]
fn breaking_an_argument_is_required() {
    let rules = ["input-required-added", "input-text-changed"];
    row("breaking", ECHO, &rules, |script| {
        let schema = &mut tool(script, "echo")["inputSchema"];
        schema["properties"][MARK] = json!({"type": "string", "description": MARK});
        schema["required"] = json!(["text", MARK]);
    });
}

#[test]
fn breaking_another_type_and_another_text() {
    let rules = ["input-type-changed", "description-changed"];
    row("breaking", ADD, &rules, |script| {
        let add = tool(script, "add");
        add["inputSchema"]["properties"]["b"] = json!({"type": "string"});
        add["description"] = json!(MARK);
    });
}

#[test]
fn breaking_a_declared_argument_left() {
    row("breaking", ADD, &["input-property-removed"], |script| {
        let schema = &mut tool(script, "add")["inputSchema"];
        schema["properties"] = json!({"a": {"type": "number"}});
        schema["required"] = json!(["a"]);
    });
}

#[test]
fn breaking_answers_have_another_member() {
    row(
        "breaking",
        STRUCTURED,
        &["output-property-added"],
        |script| {
            let schema = &mut tool(script, "structured")["outputSchema"];
            schema["properties"][MARK] = json!({"const": MARK});
        },
    );
}

#[test]
fn security_an_invisible_sentence() {
    let rules = ["hidden-characters", "description-changed"];
    row("security", ECHO, &rules, |script| {
        let text = format!("Echoes its arguments\u{200b}\u{e0041} {MARK}");
        tool(script, "echo")["description"] = json!(text);
    });
}

#[test]
fn security_an_argument_becomes_a_header() {
    row("security", ECHO, &["input-header-changed"], |script| {
        let text = &mut tool(script, "echo")["inputSchema"]["properties"]["text"];
        text["x-mcp-header"] = json!(MARK);
    });
}

#[test]
fn unknown_answers_under_a_schema_that_cannot_be_read() {
    row("unknown", STRUCTURED, &["output-unproven"], |script| {
        let schema = &mut tool(script, "structured")["outputSchema"];
        *schema = json!({"$ref": format!("https://{MARK}.example/{MARK}.json")});
    });
}

#[test]
fn unknown_a_schema_that_cannot_be_read() {
    row("unknown", ECHO, &["input-unproven"], |script| {
        let text = &mut tool(script, "echo")["inputSchema"]["properties"]["text"];
        *text = json!({"$ref": format!("https://{MARK}.example/{MARK}.json")});
    });
}

#[test]
fn gone_without_a_trace() {
    row("gone", ECHO, &["tool-gone"], |script| {
        let tools = script["tools"].as_array_mut().expect("a list");
        tools.retain(|tool| tool["name"] != "echo");
    });
}

#[test]
fn gone_to_another_name() {
    row("gone", ECHO, &["tool-renamed"], |script| {
        tool(script, "echo")["name"] = json!(format!("echo_{MARK}"));
    });
}
