//! No text of a live server controls a terminal: `lock` and `check` over servers that put control
//! characters into each field of each message.

use harness::{Bench, FLOOD, assert_inert, assert_no_commands, flooded, flooded_places};
use serde_json::{Value, json};

use super::bench::tool;

/// Scripts of servers, each with the name of the field that it floods.
fn scripts() -> Vec<Value> {
    let mut rich = tool("x");
    rich["title"] = json!("X");
    rich["annotations"] = json!({"title": "X"});
    rich["inputSchema"] = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {"d": {"type": "string"}},
        "properties": {"id": {"$ref": "#/$defs/d", "pattern": "^a$"}}, "required": ["id"],
    });
    let mut scripts = vec![
        json!({"start_exit": 3, "start_stderr": FLOOD, "stderr_lines": [FLOOD]}),
        json!({"start_noise": [FLOOD], "stderr_lines": [FLOOD], "tools": [rich]}),
        json!({"list_error": {"code": -32603, "message": FLOOD, "data": {FLOOD: FLOOD}}}),
        json!({"era": "legacy", "protocol_version": FLOOD}),
        json!({"era": "modern", "supported_versions": [FLOOD]}),
        json!({"era": "modern", "probe_error": {"code": -32022, "message": FLOOD, "data": FLOOD}}),
        json!({"on_method": {"initialize": {"rpc_error": {"code": 1, "message": FLOOD}}}}),
        json!({"on_method": {"tools/list": {"result": {"tools": [{"name": FLOOD, FLOOD: 1}]}}}}),
        json!({"on_method": {"tools/list": {"raw_result": format!("[{}]", json!(FLOOD))}}}),
        json!({"on_method": {"tools/list": {"raw_line": format!("{{\"id\":$ID,\"error\":{}}}", json!(FLOOD))}}}),
    ];
    let own = json!({
        "server_info": {"name": "n", "version": "1", "title": "t", "icons": [{"src": "s"}]},
        "instructions": "Be kind.", "capabilities": {"tools": {}, "experimental": {"e": "v"}},
    });
    for (member, value) in own.as_object().expect("an object") {
        scripts.push(json!({"tools": [rich], member: flooded(value, false)}));
    }
    let tools = flooded_places(&rich).into_iter();
    scripts
        .extend(tools.map(
            |tool| json!({"tools": [tool, {"name": "y", "inputSchema": {"type": "object"}}]}),
        ));
    scripts
}

#[test]
fn live_server_texts_reach_no_terminal_unescaped() {
    let bench = Bench::with_sources(&["a"]);
    bench.one_tool("a", tool("x"));
    bench.lock();
    let clean = bench.lock_text();
    for (at, script) in scripts().iter().enumerate() {
        bench.script("a", script);
        // Each form once in a while, so that all of them meet many scripts.
        let format = ["human", "json", "sarif", "junit", "github", "markdown"][at % 6];
        for args in [
            &["lock", "--once"][..],
            &["lock", "--once", "--dry-run"],
            &["check", "--format", format],
        ] {
            bench.write("c.lock.json", &clean);
            let output = bench.verb(args);
            let what = format!("{args:?} of {script}");
            assert_inert(&what, &output.stdout);
            assert_inert(&what, &output.stderr);
            assert_no_commands(&what, &output.stderr);
            if format == "human" || !args.contains(&"--format") {
                assert_no_commands(&what, &output.stdout);
            }
        }
    }
}
