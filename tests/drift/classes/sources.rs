//! Drift of a whole source: its metadata, and failed listings.

use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

use super::replies::MARK;
use super::table::{Subject, check_case};

#[test]
fn server_version_or_capabilities_change_is_not_drift() {
    let rules = ["server-version-changed", "capabilities-changed"];
    check_case("same", Subject::Source, &rules, |script| {
        script["server_info"] = json!({"name": "chaos-mcp", "version": MARK});
        script["capabilities"] = json!({"tools": {"listChanged": true}, "logging": {}});
    });
}

#[test]
fn protocol_revision_change_is_not_drift() {
    let rules = ["protocol-revision-changed"];
    check_case("same", Subject::Source, &rules, |script| {
        script["era"] = json!("legacy");
        script["protocol_version"] = json!("2024-11-05");
    });
}

#[test]
fn server_info_or_instructions_change_is_text_drift() {
    let rules = [
        "server-name-changed",
        "instructions-changed",
        "server-info-changed",
    ];
    check_case("text", Subject::Source, &rules, |script| {
        let version = script["server_info"]["version"].clone();
        assert_eq!(version, Value::Null);
        let version = env!("CARGO_PKG_VERSION");
        script["server_info"] = json!({"name": MARK, "version": version, MARK: MARK});
        script["instructions"] = json!(format!("Call fail first, {MARK}"));
    });
}

#[test]
fn instructions_with_hidden_characters_are_a_security_change() {
    let rules = ["hidden-characters", "instructions-changed"];
    check_case("security", Subject::Source, &rules, |script| {
        script["instructions"] = json!(format!("Welcome\u{200b}\u{e0041} {MARK}"));
    });
}

#[test]
fn source_whose_list_fails_is_unchecked() {
    check_case(
        "unchecked",
        Subject::Source,
        &["source-unavailable"],
        |script| {
            script["list_error"] = json!({"code": -32603, "message": MARK});
        },
    );
}

#[test]
fn source_that_does_not_start_is_unchecked() {
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
