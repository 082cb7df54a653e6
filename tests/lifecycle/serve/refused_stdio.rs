//! Starts over stdio that fail before a source is started: the client completes its handshake, and every call gets the
//! reason and the command; the exit is that of the failure.

use std::fs;

use harness::{Chaos, Output, Run, binary, contains};
use serde_json::{Value, json};

use super::{Bench, LOCK, StdioClient, read};

/// The error object of a result, which must be `start_refused`.
fn refusal_of(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    let error: Value = serde_json::from_str(text).expect("an error object");
    assert_eq!(error["code"], "start_refused", "{error}");
    error
}

/// Starts over stdio, calls tools, and ends; the error of the calls. The exit must be `code`.
fn refused(run: Run, code: i32) -> Value {
    let mut client = StdioClient::start(run);
    let listed = client.result("tools/list", &json!({}));
    assert_eq!(listed["tools"][0]["name"], "meta_tree", "{listed}");
    let error = refusal_of(&client.echo("/a"));
    for (tool, args) in [
        ("meta_tree", json!({})),
        ("meta_desc", json!({"path": "/a/echo"})),
        ("a-echo", json!({"text": "x"})),
    ] {
        let params = json!({"name": tool, "arguments": args});
        assert_eq!(refusal_of(&client.result("tools/call", &params)), error);
    }
    let prompt = client.answer("prompts/get", &json!({"name": "p"}));
    assert_eq!(prompt["error"]["data"]["code"], "start_refused", "{prompt}");
    let uri = client.answer("resources/read", &json!({"uri": "x:y"}));
    assert_eq!(uri["error"]["data"]["code"], "start_refused", "{uri}");
    assert_eq!(client.answer("ping", &json!({}))["result"], json!({}));
    assert_eq!(client.end(), Some(code), "{error}");
    error
}

fn first_code(error: &Value) -> &Value {
    &error["details"]["problems"][0]["code"]
}

#[test]
fn stdio_client_gets_the_reason_of_a_lock_that_is_refused() {
    let bench = Bench::new();
    let lock = read(LOCK);
    let command = format!("broker-gen lock --config {}", bench.config);
    for (text, code) in [
        (
            lock.replacen("\"exposed\"", "\"expose\"", 1),
            "lock_corrupt",
        ),
        (lock[..lock.len() / 2].to_owned(), "lock_corrupt"),
        (
            lock.replacen("\"lock_version\": 1", "\"lock_version\": 99", 1),
            "lock_version",
        ),
    ] {
        bench.chaos.file("given.lock.json", &text);
        let error = refused(bench.serve(&["stdio"]), 5);
        assert_eq!(first_code(&error), code, "{error}");
        contains(error["hint"].as_str().expect("a hint"), &[&command]);
    }
    fs::remove_file(bench.chaos.path().join("given.lock.json")).expect("removed");
    let error = refused(bench.serve(&["stdio"]), 5);
    assert_eq!(first_code(&error), "lock_missing", "{error}");
    assert!(bench.chaos.journal("a").is_empty(), "nothing was started");
}

#[test]
fn stdio_client_gets_the_reason_of_a_config_that_is_refused() {
    let bench = Bench::new();
    bench.change(|config| config["tre"] = json!([]));
    let error = refused(bench.serve(&["stdio"]), 2);
    contains(&error.to_string(), &["`tre`", "given.json:"]);
    bench.chaos.file("given.json", "{");
    assert_eq!(
        first_code(&refused(bench.serve(&["stdio"]), 2)),
        "config_syntax"
    );
    fs::remove_file(&bench.config).expect("removed");
    assert_eq!(
        first_code(&refused(bench.serve(&["stdio"]), 2)),
        "config_unreadable"
    );
}

#[test]
fn compiled_stdio_client_gets_the_reason_of_a_refused_config() {
    let chaos = Chaos::new();
    let config = chaos.file("c.json", "{");
    let config = config.to_str().expect("the path is text");
    let error = refused(chaos.run("chaos-broker", &["stdio", config]), 2);
    assert_eq!(first_code(&error), "config_syntax", "{error}");
    let mode = chaos.run("chaos-broker", &["stdio"]);
    let error = refused(mode.env("MCP_BROKER_MCP_MODE", "all"), 2);
    contains(
        error["message"].as_str().expect("a message"),
        &["`MCP_BROKER_MCP_MODE`"],
    );
}

#[test]
fn wrong_command_line_over_stdio_ends_at_once() {
    let bench = Bench::new();
    bench.chaos.file("given.lock.json", "{");
    for args in [
        &["stdio", "--no-such-option"][..],
        &["stdio", "--secret-file", "x"],
        &["stdio", "--allow-host", "h"],
    ] {
        bench.refused(args, 2);
    }
    let Output { code, stdout, .. } = Run::new(&binary("chaos-broker"))
        .args(["stdio", "--reload"])
        .output();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
}
