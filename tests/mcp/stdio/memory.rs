//! Lines for which there is no memory: refused under their ids, while others are answered.

use std::fs;

use harness::wait_until;
use serde_json::{Value, json};

use super::client::{Client, hello};

/// The broker with 16 MiB of memory.
fn started(folder: &tempfile::TempDir) -> Client {
    let file = folder.path().join("config.json");
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/smoke_config.json"));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("JSON");
    config["limits"] =
        json!({"memory_bytes": 16 << 20, "body_bytes": 8 << 20, "result_chars": 10_000_000});
    fs::write(&file, config.to_string()).expect("it can be written");
    let mut client = Client::start(&[file.to_str().expect("UTF-8")]);
    client.request(json!("init"), "initialize", hello("2025-11-25"));
    client
}

/// A call of the smoke config's slow tool with this many bytes.
fn long(bytes: usize) -> Value {
    json!({"name": "meta_call", "arguments": {
        "path": "/util/slow_echo",
        "args": {"text": "x".repeat(bytes), "milliseconds": 500},
    }})
}

/// The error object of a line that was refused before it was read whole.
fn refused_line(answer: &Value) -> Option<&Value> {
    let error = answer.get("error")?;
    assert_eq!(error["code"], -32000, "{error}");
    Some(&error["data"])
}

#[test]
fn stdio_line_that_never_fits_is_refused_with_both_figures() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let mut client = started(&folder);
    for id in [json!(7), json!("seven")] {
        let answer = client.request(id, "tools/call", long(5 << 20));
        let error = refused_line(&answer).expect("an error");
        assert_eq!(error["code"], "body_too_large", "{error}");
        let figures = ["needed_bytes", "limit_bytes"].map(|name| error["details"][name].as_u64());
        assert!(figures[0] > figures[1], "{error}");
        assert_eq!(figures[1], Some(4 << 20), "{error}");
    }
    assert_eq!(
        client.request(json!(8), "ping", json!({}))["result"],
        json!({})
    );
    assert_eq!(client.end().status.code(), Some(0));
}

#[test]
fn stdio_lines_without_memory_are_refused_by_id() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let mut client = started(&folder);
    // Some are answered while later ones are written.
    let calls = 24;
    for id in 0..calls {
        client.ask(json!(id), "tools/call", long(1_800_000));
    }
    client.ask(json!("ping"), "ping", json!({}));
    assert_eq!(client.answer(&json!("ping"))["result"], json!({}));
    let answers: Vec<_> = (0..calls).map(|id| client.answer(&json!(id))).collect();
    let refused: Vec<_> = answers.iter().filter_map(refused_line).collect();
    assert!(!refused.is_empty(), "some line has no room");
    for error in refused {
        assert_eq!(error["code"], "overloaded", "{error}");
        assert_eq!(error["retryable"], true, "{error}");
    }
    wait_until("there is room again", || {
        let answer = client.request(json!("again"), "tools/call", long(1_800_000));
        refused_line(&answer).is_none()
    });
    let end = client.end();
    assert_eq!(end.status.code(), Some(0), "{}", end.stderr);
    assert_eq!(end.rest, [Value::Null; 0], "each line was answered once");
}
