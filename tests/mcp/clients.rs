//! The official clients of both generations, TypeScript and Python, against `mcp-broker stdio` on the
//! smoke config: the actions of `tests/clients` with each, and their results in the client.

use std::path::{Path, PathBuf};

use harness::{DirectServer, Run, binary};
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// The results in the client.
fn seen(program: &str, script: &str, mode: &str) -> Value {
    assert!(
        folder().join("installed").exists(),
        "the official clients are not installed; run tests/clients/install"
    );
    let program = match program {
        "node" => PathBuf::from("node"),
        venv => folder().join("venv").join(venv).join("bin/python"),
    };
    let output = Run::new(&program)
        .folder(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args([&folder().join(script), Path::new(mode)])
        .args([
            env!("CARGO_BIN_EXE_mcp-broker"),
            "stdio",
            "smoke_config.json",
        ])
        .output();
    assert_eq!(output.code, Some(0), "{script} {mode}: {}", output.stderr);
    serde_json::from_str(&output.stdout).expect("one JSON object")
}

fn hash(text: &str) -> Value {
    let mut direct = DirectServer::start(Run::new(&binary("toolbox-mcp")));
    direct.call("hash_text", &json!({ "text": text }))["result"]["structuredContent"].clone()
}

fn check(seen: &Value, protocol: Option<&str>) {
    assert_eq!(seen["protocol"].as_str(), protocol);
    assert_eq!(seen["server"]["name"], "mcp-broker");
    let instructions = seen["instructions"].as_str().expect("a text");
    assert!(instructions.contains("meta_tree"), "{instructions}");
    let tools = seen["tools"].as_array().expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["meta_tree", "meta_desc", "meta_call"]);

    let areas = seen["tree"]["structuredContent"]["children"].as_array();
    let areas: Vec<_> = areas
        .expect("a list")
        .iter()
        .map(|area| &area["path"])
        .collect();
    assert_eq!(areas, ["/text", "/util"]);
    let described = &seen["description"]["structuredContent"];
    assert_eq!(described["args_schema"]["required"], json!(["text"]));

    for (step, text) in [("call", "hello"), ("beside", "beside"), ("after", "after")] {
        assert_eq!(
            seen[step]["structuredContent"],
            hash(text),
            "{step}: {seen}"
        );
    }
    assert_eq!(seen["mistake"]["isError"], true);
    let error = seen["mistake"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    let error: Value = serde_json::from_str(error).expect("an error object");
    assert_eq!(error["code"], "args_invalid");
    assert_eq!(seen["failure"]["isError"], true);
    assert_eq!(seen["failure"]["content"][0]["text"], "planned");
    assert_eq!(seen["unknown"]["code"], -32602);
    assert_eq!(seen["cancelled"], "cancelled");
}

#[test]
fn typescript_client_of_the_first_generation_works() {
    check(&seen("node", "typescript_v1.mjs", "legacy"), None);
}

#[test]
fn typescript_client_of_the_second_generation_works() {
    check(&seen("node", "typescript_v2.mjs", "legacy"), Some(LEGACY));
    check(&seen("node", "typescript_v2.mjs", "auto"), Some(MODERN));
}

#[test]
fn python_client_of_the_first_generation_works() {
    check(&seen("v1", "python_v1.py", "legacy"), Some(LEGACY));
}

#[test]
fn python_client_of_the_second_generation_works() {
    check(&seen("v2", "python_v2.py", "legacy"), Some(LEGACY));
    check(&seen("v2", "python_v2.py", "auto"), Some(MODERN));
}
