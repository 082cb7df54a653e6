//! Every result through the broker equals the one that the same client gets from the same server
//! directly, in both eras. The client is the official SDK's, on both sides.

use std::collections::BTreeMap;
use std::path::Path;

use harness::{Run, binary, fixture_config};
use serde_json::{Value, json};

/// The results of the SDK's client, by call.
fn outcomes(era: &str, server: &[&str], calls: &[Value]) -> Vec<Value> {
    let file = tempfile_of(calls);
    let program = binary(server[0]);
    // The client reads its calls from standard input; a shell redirects a file.
    let output = Run::new(Path::new("/bin/sh"))
        .args(["-c", "exec \"$@\" < \"$CALLS\"", "sh"])
        .env("CALLS", file.path())
        .args([binary("oracle-client")])
        .args([era])
        .args([program])
        .args(&server[1..])
        .output();
    assert_eq!(output.code, Some(0), "{server:?}: {}", output.stderr);
    let lines = output.stdout.lines().skip(1);
    let outcomes: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(outcomes.len(), calls.len());
    outcomes
}

fn tempfile_of(calls: &[Value]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    std::fs::write(file.path(), lines).expect("it is written");
    file
}

/// The calls through the broker.
fn through(node: &str, calls: &[Value]) -> Vec<Value> {
    let wrap = |call: &Value| {
        let path = format!("{node}/{}", call["tool"].as_str().expect("a name"));
        json!({"tool": "meta_call", "args": {"path": path, "args": call["args"]}})
    };
    calls.iter().map(wrap).collect()
}

/// The JSON-RPC error that the broker reports, in the form of the client's outcome.
fn rpc_of(outcome: &Value) -> Option<Value> {
    let text = outcome["result"]["content"][0]["text"].as_str()?;
    let error: Value = serde_json::from_str(text).ok()?;
    (error["code"] == "source_error").then(|| json!({"rpc": error["details"]["rpc"]}))
}

fn assert_equal(era: &str, node: &str, server: &[&str], server_era: &str, calls: &[Value]) {
    let mut direct = outcomes(server_era, server, calls);
    if (era, server_era) == ("modern", "legacy") {
        // The members that the broker must add for a client of the modern era.
        for outcome in &mut direct {
            if let Some(result) = outcome.get_mut("result") {
                result["resultType"] = json!("complete");
            }
        }
    }
    let config = fixture_config("oracle-broker");
    let config = config.to_str().expect("the path is text");
    let serve = ["broker-gen", "serve", "stdio", "--config", config];
    let broker = [&serve[..], &["--log-level", "error"]].concat();
    let brokered = outcomes(era, &broker, &through(node, calls));
    let mut failures = BTreeMap::new();
    for ((call, direct), brokered) in calls.iter().zip(direct).zip(brokered) {
        let same = match direct.get("rpc") {
            Some(_) => rpc_of(&brokered).as_ref() == Some(&direct),
            None => brokered == direct,
        };
        if !same {
            failures.insert(
                call.to_string(),
                json!({"direct": direct, "brokered": brokered}),
            );
        }
    }
    assert!(failures.is_empty(), "{era} through {node}: {failures:#?}");
}

fn call(tool: &str, args: Value) -> Value {
    json!({"tool": tool, "args": args})
}

fn sdk_calls() -> Vec<Value> {
    vec![
        call("echo", json!({"text": "plain"})),
        call("echo", json!({"text": "\u{0}\u{2028}\u{1f600}\\\" é\n"})),
        call("add", json!({"a": 0.1, "b": 0.2})),
        call("add", json!({"a": 1, "b": 9_007_199_254_740_991_u64})),
        call("blocks", json!({})),
        call("values", json!({})),
        call("refuse", json!({})),
        call("fail", json!({})),
    ]
}

fn toolbox_calls() -> Vec<Value> {
    vec![
        call("hash_text", json!({"text": "hello"})),
        call("hash_text", json!({"text": "", "algorithm": "fnv1a"})),
        call("hex", json!({"text": "é\u{1f600}", "direction": "encode"})),
        call("hex", json!({"text": "c3a9", "direction": "decode"})),
        call("hex", json!({"text": "***", "direction": "decode"})),
        call("text_case", json!({"text": "hello world", "to": "title"})),
        call("text_lorem", json!({"paragraphs": 40})),
        call("json_format", json!({"text": "{\"b\":1,\"a\":[1.0,{}]}"})),
        call("slow_echo", json!({"text": "x", "milliseconds": 5})),
        call("fail", json!({"message": "planned"})),
        call("fail", json!({"message": "planned", "kind": "rpc"})),
    ]
}

#[test]
fn sdk_server_results_through_the_broker_equal_direct_ones() {
    for era in ["legacy", "modern"] {
        assert_equal(era, "/sdk/modern", &["oracle-server"], era, &sdk_calls());
    }
}

#[test]
fn legacy_server_results_equal_direct_ones_in_both_eras() {
    for era in ["legacy", "modern"] {
        let server = ["oracle-server", "legacy"];
        assert_equal(era, "/sdk/legacy", &server, "legacy", &sdk_calls());
    }
}

#[test]
fn toolbox_results_through_the_broker_equal_direct_ones() {
    for era in ["legacy", "modern"] {
        assert_equal(era, "/toolbox", &["toolbox-mcp"], era, &toolbox_calls());
    }
}
