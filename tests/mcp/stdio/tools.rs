//! The three tools as a client sees them.

use harness::{json_text, tree_paths};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Client, hello, modern, quick, slow};

/// Starts the broker on the smoke config with one setting of one tool changed, and greets it.
///
/// `node` is the index of the tool's source in the tree. The folder is that of the config, in which the sources start.
fn start_with_override(node: usize, tool: &str, setting: &str, value: u64) -> (TempDir, Client) {
    let compiled = concat!(env!("CARGO_MANIFEST_DIR"), "/smoke_config.json");
    let text = std::fs::read_to_string(compiled).expect("the config is there");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["tree"][node]["source"]["tool_overrides"][tool][setting] = json!(value);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.json");
    std::fs::write(&file, config.to_string()).expect("the config is written");

    let mut client = Client::start(&[file.to_str().expect("a name in UTF-8")]);
    client.request(json!(0), "initialize", hello("2025-11-25"));
    (folder, client)
}

#[test]
fn meta_tools_describe_themselves_and_each_other() {
    let mut client = Client::legacy("2025-11-25");
    let listed = client.request(json!(1), "tools/list", json!({}));
    let tools = listed["result"]["tools"]
        .as_array()
        .expect("a list")
        .clone();
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["meta_tree", "meta_desc", "meta_call"]);
    let read_only: Vec<_> = tools
        .iter()
        .map(|tool| &tool["annotations"]["readOnlyHint"])
        .collect();
    assert_eq!(read_only, [true, true, false]);
    assert_eq!(tools[2]["annotations"]["openWorldHint"], true);
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["title"].is_string() && tool["description"].is_string());
        // Some model interfaces refuse a schema with `anyOf` at its top.
        for word in ["oneOf", "anyOf", "allOf"] {
            assert!(tool["inputSchema"].get(word).is_none());
        }
    }
    let tree = client.tool("meta_tree", json!({}));
    assert!(tree.get("structuredContent").is_none(), "no second copy");
    let areas = tree_paths(&tree);
    assert_eq!(areas, ["/text", "/util"]);
    let text = tree["content"][0]["text"].as_str().expect("a text");
    assert!(text.lines().all(|line| line.contains("/  ")), "{text}");
    let listed = client.tool("meta_tree", json!({"path": "/util/"}));
    let below = client.tool("meta_tree", json!({"path": "/util"}));
    assert_eq!(listed["content"], below["content"], "with and without `/`");
    let paths = tree_paths(&below);
    let hash = paths.iter().find(|path| *path == "/util/hash_text");
    let path = hash.expect("the tool is listed");
    let described = json_text(&client.tool("meta_desc", json!({"path": path})));
    let example = &described["example_args"];
    let called = client.tool("meta_call", json!({"path": path, "args": example}));
    assert_eq!(called["structuredContent"]["bytes"], 5);
    let several = client.tool("meta_desc", json!({"paths": [path, "/nope"]}));
    let entries = &json_text(&several)["entries"];
    assert_eq!(entries[0], described);
    assert_eq!(entries[1]["error"]["code"], "path_not_found");
}

#[test]
fn text_of_a_description_is_short_unless_all_is_asked_for() {
    let mut client = Client::legacy("2025-11-25");
    let path = "/util/hash_text";
    let mut described = |arguments: Value| {
        let result = client.tool("meta_desc", arguments);
        assert!(result.get("structuredContent").is_none());
        json_text(&result)
    };
    let short = described(json!({"path": path}));
    let whole = described(json!({"path": path, "full": true}));
    for member in ["digest", "output_schema"] {
        assert!(whole[member].is_string() || whole[member].is_object());
        assert!(short.get(member).is_none(), "{short}");
    }
    for member in ["path", "description", "args_schema", "annotations"] {
        assert_eq!(short[member], whole[member]);
    }
    let several = described(json!({"paths": [path, path]}));
    assert_eq!(several["entries"], json!([short, short]));
    let error = client.tool_error("meta_desc", json!({"path": path, "full": 1}));
    assert_eq!(error["code"], "field_invalid");
}

#[test]
fn meta_call_with_wrong_arguments_is_refused_where_they_are() {
    let mut client = Client::legacy("2025-11-25");
    let params = json!({"name": "meta_cal", "arguments": {}});
    let refused = client.request(json!(1), "tools/call", params)["error"].clone();
    assert_eq!(refused["code"], -32602);
    assert_eq!(refused["data"]["did_you_mean"][0], "meta_call");
    let params = json!({"name": "/util/hash_text", "arguments": {}});
    let refused = client.request(json!(2), "tools/call", params)["error"].clone();
    assert!(
        refused["message"]
            .as_str()
            .is_some_and(|text| text.contains("meta_call"))
    );
    for params in [
        json!({}),
        json!({"name": 1}),
        json!({"name": "meta_tree", "arguments": []}),
    ] {
        assert_eq!(
            client.refusal("tools/call", params.clone()),
            -32602,
            "{params}"
        );
    }

    let error = client.tool_error(
        "meta_call",
        json!({"path": "/util/hash_text", "args": {"txt": "a"}}),
    );
    assert_eq!(error["code"], "args_invalid");
    assert!(error["details"]["args_schema"].is_object(), "{error}");
    for member in ["message", "hint"] {
        assert!(error[member].is_string(), "{member}: {error}");
    }
    let error = client.tool_error("meta_call", json!({"path": "/util/hash_txt"}));
    assert_eq!(
        (&error["code"], &error["did_you_mean"][0]),
        (&json!("path_not_found"), &json!("/util/hash_text"))
    );
    for (name, arguments, code) in [
        ("meta_call", json!({}), "path_invalid"),
        ("meta_call", json!({"path": "/util"}), "path_is_node"),
        (
            "meta_call",
            json!({"path": "/util/hex", "argz": {}}),
            "field_unknown",
        ),
        (
            "meta_call",
            json!({"path": "/util/hex", "args": "[]"}),
            "field_invalid",
        ),
        ("meta_tree", json!({"path": "/util/hex"}), "path_is_tool"),
        ("meta_tree", json!({"depth": 99}), "field_invalid"),
        ("meta_desc", json!({}), "field_invalid"),
    ] {
        assert_eq!(
            client.tool_error(name, arguments.clone())["code"],
            code,
            "{name} {arguments}"
        );
    }
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"meta_call\",\"arguments\":{\"path\":\"/util/hex\",\"args\":{\"a\":1,\"a\":2}}}}\n");
    let doubled = client.answer(&json!(5));
    assert!(
        doubled["result"]["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("json_invalid"))
    );
}

#[test]
fn meta_call_forwards_results_and_reports_errors_of_the_server() {
    let mut client = Client::legacy("2025-11-25");
    let failed = client.tool(
        "meta_call",
        json!({"path": "/util/fail", "args": {"message": "planned"}}),
    );
    assert_eq!(
        failed,
        json!({"content": [{"type": "text", "text": "planned"}], "isError": true})
    );
    let arguments = json!({"path": "/util/fail", "args": {"message": "planned", "kind": "rpc"}});
    let error = client.tool_error("meta_call", arguments.clone());
    assert_eq!(error["code"], "source_error");
    assert_eq!(error["details"]["rpc"]["code"], 1000);
    let params = modern(json!({"name": "meta_call", "arguments": arguments}));
    let answer = client.request(json!(1), "tools/call", params);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["isError"], true);
}

#[test]
fn answers_are_sent_when_ready_and_ids_keep_their_type() {
    let mut client = Client::legacy("2025-11-25");
    client.ask(json!(1), "tools/call", slow(3_000));
    client.ask(json!("1"), "tools/call", quick());
    let first = client.read();
    assert_eq!(first["id"], "1", "the quick one is not held up");
    client.ask(json!(1), "tools/call", quick());
    let refused = client.read();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(1), &json!(-32600))
    );
    let late = client.read();
    assert_eq!(
        (&late["id"], &late["result"]["content"][0]["text"]),
        (&json!(1), &json!("late"))
    );
    client.ask(json!(1), "tools/call", quick());
    assert!(
        client.read()["result"].is_object(),
        "an id is free again once it was answered"
    );
}

#[test]
fn requests_over_the_limit_are_refused_as_overloaded() {
    let (_folder, mut client) = start_with_override(1, "slow_echo", "timeout", 120);
    // While a source starts, its callers have a smaller share.
    assert!(client.request(json!("q"), "tools/call", quick())["result"].is_object());
    for id in 0..257 {
        client.ask(json!(id), "tools/call", slow(30_000));
    }
    let refused = client.answer(&json!(256));
    let text = refused["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    let error: Value = serde_json::from_str(text).expect("an error object");
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("overloaded"), &json!(true))
    );
    assert_eq!(error["message"], "256 requests are open already");
    assert!(client.request(json!("p"), "ping", json!({}))["result"].is_object());
}

#[test]
fn result_over_its_limit_ends_with_a_note_within_the_limit() {
    let (_folder, mut client) = start_with_override(0, "text_lorem", "max_output_chars", 1500);
    let call = |paragraphs| json!({"path": "/text/text_lorem", "args": {"paragraphs": paragraphs}});
    let result = client.tool("meta_call", call(50));
    assert!(result.to_string().chars().count() <= 1500, "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let note = text.rsplit("\n\n").next().expect("the last part");
    for part in ["The broker cut this result", "1500", "Ask for less"] {
        assert!(note.contains(part) && note.ends_with(']'), "{text}");
    }
    assert!(result["_meta"]["dev.mcp-broker/truncated"].is_object());
    let whole = client.tool("meta_call", call(1));
    assert!(!whole.to_string().contains("Ask for less"), "{whole}");
}
