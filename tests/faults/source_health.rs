//! What callers and operators see of the health of a source: the reason in a description, the last answer, failures in a
//! row, latencies, and another era than that of the lock.

use std::fs;

use harness::faults::{ECHO, FaultFixture, signal, source};
use harness::mcp_http::modern;
use harness::{Response, Run, binary, refusal, wait_until};
use serde_json::{Value, json};

/// Describes a tool over the meta API.
fn describe(stage: &FaultFixture, path: &str) -> Response {
    stage.broker.post("/meta_desc", &json!({"path": path}))
}

fn tag(response: &Response) -> String {
    response.header("etag").expect("it has a tag").to_owned()
}

/// Returns the text of `meta_desc` over MCP, as an agent reads it.
fn read_as_agent(stage: &FaultFixture, path: &str) -> String {
    let params = json!({"name": "meta_desc", "arguments": {"path": path}});
    let address = stage.broker.address();
    let answer = modern(address, "/mcp", &json!(1), "tools/call", &params).json();
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("a text: {answer}"))
        .to_owned()
}

/// The process of `/a` that runs now.
fn pid(stage: &FaultFixture) -> u32 {
    *stage.chaos.pids("a").last().expect("it was started")
}

/// `/a` as operators see it.
fn details(stage: &FaultFixture) -> Value {
    stage.broker.get("/sources").json()["sources"][0].clone()
}

#[test]
fn description_says_why_a_tool_is_unavailable_and_keeps_its_tag() {
    let stage = FaultFixture::new(&json!({}));
    let usable = describe(&stage, ECHO);
    let both = json!({"paths": [ECHO, "/b/echo"]});
    let both_usable = stage.broker.post("/meta_desc", &both);
    assert_eq!(usable.json()["unavailable"], Value::Null);
    assert!(!read_as_agent(&stage, ECHO).contains("unavailable"));
    let tree = stage
        .broker
        .post("/meta_tree", &json!({"path": "/a"}))
        .text();
    stage.chaos.script("a", &json!({"start_exit": 3}));
    signal(pid(&stage), "KILL");
    wait_until("the source waits for its next start", || {
        let reason = describe(&stage, ECHO).json()["unavailable"].clone();
        let is_known = reason["cause"] == "exit_before_ready";
        is_known
            && reason["retry_after_s"]
                .as_u64()
                .is_some_and(|wait| wait > 0)
    });
    let unusable = describe(&stage, ECHO);
    assert_eq!(tag(&unusable), tag(&usable), "the tag is that of the tool");
    let both_now = stage.broker.post("/meta_desc", &both);
    assert_eq!(tag(&both_now), tag(&both_usable));
    let entries = both_now.json()["entries"].clone();
    assert!(entries[0]["unavailable"].is_object(), "{entries}");
    assert_eq!(entries[1]["unavailable"], Value::Null);
    let text = read_as_agent(&stage, ECHO);
    assert!(
        text.contains(r#""unavailable":{"cause":"exit_before_ready""#),
        "{text}"
    );
    let listed = stage
        .broker
        .post("/meta_tree", &json!({"path": "/a"}))
        .text();
    assert_eq!(listed, tree, "listings stay whole");
    stage.chaos.script("a", &json!({}));
    stage.await_answer();
    let again = describe(&stage, ECHO);
    assert_eq!((again.text(), tag(&again)), (usable.text(), tag(&usable)));
    stage.is_as_before();
}

#[test]
fn sources_have_the_last_answer_failures_in_a_row_and_latencies() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 0)["tool_overrides"]["echo"]["timeout"] = json!(1);
    });
    let fresh = details(&stage);
    assert_eq!(
        (&fresh["last_ok"], &fresh["latency_ms"]),
        (&Value::Null, &Value::Null)
    );
    for _ in 0..3 {
        assert_eq!(stage.echo("x").status, 200);
    }
    let answered = details(&stage);
    assert!(
        answered["last_ok"]
            .as_str()
            .is_some_and(|at| at.ends_with('Z')),
        "{answered}"
    );
    let half = answered["latency_ms"]["p50"].as_u64().expect("a latency");
    assert!(
        answered["latency_ms"]["p99"].as_u64() >= Some(half),
        "{answered}"
    );
    assert_eq!(answered["counters"]["consecutive_failures"], 0);
    let silent = pid(&stage);
    signal(silent, "STOP");
    for failures in [1, 2] {
        refusal(&stage.echo("x"), 504, "call_timeout");
        assert_eq!(
            details(&stage)["counters"]["consecutive_failures"],
            failures
        );
    }
    let output = Run::new(&binary("mcp-broker"))
        .args(["status", stage.broker.address()])
        .output();
    assert!(
        output.stdout.contains("failures in a row: 2; p50 "),
        "{}",
        output.stdout
    );
    let slow = details(&stage);
    assert_eq!(slow["last_ok"], answered["last_ok"], "no answer since");
    assert!(slow["latency_ms"]["p99"].as_u64() > Some(half), "{slow}");
    signal(silent, "CONT");
    stage.await_answer();
    assert_eq!(details(&stage)["counters"]["consecutive_failures"], 0);
    // An error of a tool and of the server is an answer.
    stage.chaos.script(
        "a",
        &json!({"on_call": {"echo": {"rpc_error": {"code": -32050, "message": "no"}}}}),
    );
    refusal(&stage.echo("x"), 502, "source_error");
    assert_eq!(details(&stage)["counters"]["consecutive_failures"], 0);
    stage.is_as_before();
}

#[test]
fn source_with_another_era_is_a_finding_and_is_asked_for_its_locked_era_again() {
    let stage = FaultFixture::with(&json!({}), |config| {
        config["audit"] = json!({"file": "audit.jsonl"});
    });
    let findings = || {
        let file = stage.chaos.path().join("audit.jsonl");
        let text = fs::read_to_string(file).expect("the log");
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let drift = lines.filter(|line: &Value| line["kind"] == "drift");
        let of_revision = drift.filter(|line| line["finding"] == "protocol-revision-changed");
        of_revision.count()
    };
    assert_eq!(findings(), 0);
    let restart = |script: Value| {
        let starts = stage.chaos.pids("a").len();
        stage.chaos.script("a", &script);
        signal(pid(&stage), "KILL");
        stage.chaos.await_events("a", "start", starts + 1);
        stage.await_answer();
    };
    restart(json!({"era": "legacy"}));
    let initialized = stage.chaos.events("a", "initialize").len();
    assert!(initialized > 0, "it has the other era");
    wait_until("the finding has a line", || findings() == 1);
    restart(json!({}));
    assert_eq!(
        stage.chaos.events("a", "initialize").len(),
        initialized,
        "it was asked for the era of the lock first, and has it again"
    );
    stage.is_as_before();
}
