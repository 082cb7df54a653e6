//! Drift that withdraws one tool: `breaking`, `security`, `unknown`, `gone`.

use serde_json::json;

use super::replies::MARK;
use super::table::{ADD, ECHO, STRUCTURED, check_case, tool};

#[test]
fn argument_that_becomes_required_is_breaking() {
    let rules = ["input-required-added", "input-text-changed"];
    check_case("breaking", ECHO, &rules, |script| {
        let schema = &mut tool(script, "echo")["inputSchema"];
        schema["properties"][MARK] = json!({"type": "string", "description": MARK});
        schema["required"] = json!(["text", MARK]);
    });
}

#[test]
fn argument_of_another_type_is_breaking() {
    let rules = ["input-type-changed", "description-changed"];
    check_case("breaking", ADD, &rules, |script| {
        let add = tool(script, "add");
        add["inputSchema"]["properties"]["b"] = json!({"type": "string"});
        add["description"] = json!(MARK);
    });
}

#[test]
fn argument_that_is_removed_is_breaking() {
    check_case("breaking", ADD, &["input-property-removed"], |script| {
        let schema = &mut tool(script, "add")["inputSchema"];
        schema["properties"] = json!({"a": {"type": "number"}});
        schema["required"] = json!(["a"]);
    });
}

#[test]
fn output_with_another_member_is_breaking() {
    check_case(
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
fn description_with_hidden_characters_is_a_security_change() {
    let rules = ["hidden-characters", "description-changed"];
    check_case("security", ECHO, &rules, |script| {
        let text = format!("Echoes its arguments\u{200b}\u{e0041} {MARK}");
        tool(script, "echo")["description"] = json!(text);
    });
}

#[test]
fn argument_that_becomes_a_header_is_a_security_change() {
    check_case("security", ECHO, &["input-header-changed"], |script| {
        let text = &mut tool(script, "echo")["inputSchema"]["properties"]["text"];
        text["x-mcp-header"] = json!(MARK);
    });
}

#[test]
fn output_schema_that_cannot_be_read_is_unknown() {
    check_case("unknown", STRUCTURED, &["output-unproven"], |script| {
        let schema = &mut tool(script, "structured")["outputSchema"];
        *schema = json!({"$ref": format!("https://{MARK}.example/{MARK}.json")});
    });
}

#[test]
fn input_schema_that_cannot_be_read_is_unknown() {
    check_case("unknown", ECHO, &["input-unproven"], |script| {
        let text = &mut tool(script, "echo")["inputSchema"]["properties"]["text"];
        *text = json!({"$ref": format!("https://{MARK}.example/{MARK}.json")});
    });
}

#[test]
fn tool_that_is_removed_is_gone() {
    check_case("gone", ECHO, &["tool-gone"], |script| {
        let tools = script["tools"].as_array_mut().expect("a list");
        tools.retain(|tool| tool["name"] != "echo");
    });
}

#[test]
fn tool_that_is_renamed_is_gone() {
    check_case("gone", ECHO, &["tool-renamed"], |script| {
        tool(script, "echo")["name"] = json!(format!("echo_{MARK}"));
    });
}
