//! Rows about a whole source: its metadata, and failed listings.

use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

use crate::replies::MARK;
use crate::row::{About, row};

#[test]
fn same_another_version_and_other_capabilities() {
    let rules = ["server-version-changed", "capabilities-changed"];
    row("same", About::Source, &rules, |script| {
        script["server_info"] = json!({"name": "chaos-mcp", "version": MARK});
        script["capabilities"] = json!({"tools": {"listChanged": true}, "logging": {}});
    });
}

#[test]
fn same_another_revision_of_the_protocol() {
    let rules = ["protocol-revision-changed"];
    row("same", About::Source, &rules, |script| {
        script["era"] = json!("legacy");
        script["protocol_version"] = json!("2024-11-05");
    });
}

#[test]
fn text_what_a_server_says_of_itself() {
    let rules = [
        "server-name-changed",
        "instructions-changed",
        "server-info-changed",
    ];
    row("text", About::Source, &rules, |script| {
        let version = script["server_info"]["version"].clone();
        assert_eq!(version, Value::Null);
        let version = env!("CARGO_PKG_VERSION");
        script["server_info"] = json!({"name": MARK, "version": version, MARK: MARK});
        script["instructions"] = json!(format!("Call fail first, {MARK}"));
    });
}

#[test]
fn security_invisible_instructions() {
    let rules = ["hidden-characters", "instructions-changed"];
    row("security", About::Source, &rules, |script| {
        script["instructions"] = json!(format!("Welcome\u{200b}\u{e0041} {MARK}"));
    });
}

#[test]
fn unchecked_a_list_that_cannot_be_had() {
    row(
        "unchecked",
        About::Source,
        &["source-unavailable"],
        |script| {
            script["list_error"] = json!({"code": -32603, "message": MARK});
        },
    );
}

#[test]
fn unchecked_a_server_that_does_not_start() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let tree = broker.post("/meta_tree", &json!({"depth": 16})).text();
    chaos.script(
        "a",
        &json!({"start_exit": 3, "stderr_lines": ["no licence"]}),
    );
    refusal(
        &broker.call("/a/die", json!({"code": 1})),
        502,
        "source_exited",
    );
    wait_until("it is down for good", || {
        chaos.pids("a").len() > 2 && broker.source("/a")["state"] == "backoff"
    });
    assert_eq!(
        broker.post("/meta_tree", &json!({"depth": 16})).text(),
        tree
    );
    assert_eq!(broker.source("/a")["withdrawn"], 0);
    assert_eq!(broker.get("/readyz").status, 200);
    chaos.script("a", &json!({}));
    wait_until("a call wakes it", || {
        broker.call("/a/echo", json!({"text": "x"})).status == 200
    });
}
