//! The plain start with sources that differ from the lock: which differences refuse it, with which exit
//! code and report.

use harness::{Broker, Chaos, Output, is_alive, refusal, wait_until};
use serde_json::{Map, Value, json};

/// Runs a plain start to its end; checks that nothing was executed and no process is left.
fn refused(chaos: &Chaos) -> (Option<i32>, Value, Output) {
    let output = chaos
        .run("chaos-broker", &["127.0.0.1:0", "--log-format", "json"])
        .output();
    assert_eq!(output.stdout, "");
    let lines: Vec<Value> = output
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let mut reports = lines
        .into_iter()
        .filter(|line| line.get("format_version").is_some());
    let report = reports
        .next()
        .unwrap_or_else(|| panic!("no report: {}", output.stderr));
    assert_eq!(reports.next(), None, "one report");
    for source in ["a", "b", "optional"] {
        assert_eq!(chaos.events(source, "call"), Vec::<Value>::new());
        for pid in chaos.pids(source) {
            assert!(!is_alive(pid), "process {pid} of {source} is left");
        }
    }
    (output.code, report, output)
}

fn refused_over_drift(script: &Value) -> Value {
    let chaos = Chaos::new();
    chaos.script("a", script);
    let (code, report, output) = refused(&chaos);
    assert_eq!(code, Some(3), "{}", output.stderr);
    report
}

/// The one tool that a report is about, its members checked.
fn only_tool(report: &Value, name: &str, class: &str) -> Value {
    let tools = report["tools"].as_array().expect("`tools` is a list");
    assert_eq!(tools.len(), 1, "{report}");
    let tool = tools[0].clone();
    let path = format!("/a/{name}");
    assert_eq!(
        (
            &tool["source"],
            &tool["tool"],
            &tool["path"],
            &tool["class"]
        ),
        (&json!("/a"), &json!(name), &json!(path), &json!(class))
    );
    assert_eq!(report["summary"][class], 1, "{report}");
    assert_eq!(report["format_version"], 1);
    tool["findings"]
        .as_array()
        .expect("`findings` is a list")
        .iter()
        .for_each(finding);
    tool
}

/// The one source that a report is about, and its one finding.
fn only_source(report: &Value, source: &str, class: &str) -> Value {
    let sources = report["sources"].as_array().expect("`sources` is a list");
    assert_eq!(sources.len(), 1, "{report}");
    assert_eq!(
        (&sources[0]["source"], &sources[0]["class"]),
        (&json!(source), &json!(class))
    );
    let findings = sources[0]["findings"]
        .as_array()
        .expect("`findings` is a list");
    assert_eq!(findings.len(), 1, "{report}");
    finding(&findings[0]);
    findings[0].clone()
}

fn finding(finding: &Value) {
    let mut names: Vec<&str> = finding
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "class", "message", "new", "old", "pointer", "remedy", "rule", "severity", "witness"
        ]
    );
    for text in ["class", "message", "pointer", "remedy", "rule", "severity"] {
        assert!(finding[text].is_string(), "{finding}");
    }
    assert!(
        ["note", "warning", "error"].contains(&finding["severity"].as_str().unwrap_or_default())
    );
}

#[test]
fn plain_start_with_a_changed_description_is_refused() {
    let tools = Chaos::tools_with("echo", |tool| tool["description"] = json!("Sends it away"));
    let report = refused_over_drift(&json!({"tools": tools}));
    let tool = only_tool(&report, "echo", "text");
    assert_eq!(tool["findings"].as_array().map(Vec::len), Some(1));
    let found = &tool["findings"][0];
    assert_eq!(
        (&found["rule"], &found["pointer"]),
        (&json!("description-changed"), &json!("/description"))
    );
    assert_eq!(
        (&found["old"], &found["new"]),
        (&json!("Echoes its arguments"), &json!("Sends it away"))
    );
    assert!(
        found["remedy"].as_str().is_some_and(
            |remedy| remedy.contains("broker-gen lock --config config.json --source /a")
        ),
        "{found}"
    );
    assert_eq!(report["sources"], json!([]));
}

#[test]
fn plain_start_with_a_changed_schema_is_refused() {
    let tools = Chaos::tools_with("add", |tool| {
        tool["inputSchema"]["properties"]["b"] = json!({"type": "string"})
    });
    let tool = only_tool(
        &refused_over_drift(&json!({"tools": tools})),
        "add",
        "breaking",
    );
    let found = &tool["findings"][0];
    assert_eq!(
        (&found["rule"], &found["pointer"]),
        (
            &json!("input-type-changed"),
            &json!("/inputSchema/properties/b/type")
        )
    );
    assert_eq!(
        (&found["old"], &found["new"]),
        (&json!("number"), &json!("string"))
    );
}

#[test]
fn plain_start_with_a_missing_tool_is_refused() {
    let report = refused_over_drift(&json!({"tools": Chaos::tools_without("fail")}));
    let tool = only_tool(&report, "fail", "gone");
    assert_eq!(tool["findings"][0]["rule"], "tool-gone");
}

#[test]
fn plain_start_with_another_server_name_is_refused() {
    let report = refused_over_drift(
        &json!({"server_info": {"name": "another-server", "version": env!("CARGO_PKG_VERSION")}}),
    );
    let found = only_source(&report, "/a", "text");
    assert_eq!(
        (&found["rule"], &found["new"]),
        (&json!("server-name-changed"), &json!("another-server"))
    );
    assert_eq!(report["tools"], json!([]));
}

#[test]
fn plain_start_with_changed_instructions_is_refused() {
    let report = refused_over_drift(&json!({"instructions": "always call fail first"}));
    let found = only_source(&report, "/a", "text");
    assert_eq!(
        (&found["rule"], &found["old"], &found["new"]),
        (
            &json!("instructions-changed"),
            &Value::Null,
            &json!("always call fail first")
        )
    );
}

#[test]
fn plain_start_reports_every_difference_of_every_source() {
    let chaos = Chaos::new();
    let tools = Chaos::tools_with("echo", |tool| tool["description"] = json!("Other"));
    chaos.script("a", &json!({"tools": tools, "instructions": "new"}));
    chaos.script("b", &json!({"tools": Chaos::tools_without("add")}));
    let (code, report, _) = refused(&chaos);
    assert_eq!(code, Some(3));
    let mut found: Vec<_> = report["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["path"].as_str())
        .collect();
    found.sort_unstable();
    assert_eq!(found, [Some("/a/echo"), Some("/b/add")]);
    assert_eq!(report["sources"][0]["source"], "/a");
    assert_eq!(
        (&report["summary"]["gone"], &report["summary"]["text"]),
        (&json!(1), &json!(2))
    );
    // The human form on stderr says the same.
    let human = chaos.run("chaos-broker", &["127.0.0.1:0"]).output();
    assert_eq!((human.code, human.stdout.as_str()), (Some(3), ""));
    for part in [
        "/a/echo",
        "description-changed",
        "/b/add",
        "tool-gone",
        "instructions-changed",
        "broker-gen lock",
        "refused to start",
    ] {
        assert!(human.stderr.contains(part), "{part}:\n{}", human.stderr);
    }
}

#[test]
fn plain_start_with_a_source_that_exits_is_refused_with_exit_4() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"start_exit": 1, "stderr_lines": ["licence", "not found"]}),
    );
    let (code, report, _) = refused(&chaos);
    assert_eq!(code, Some(4));
    let found = only_source(&report, "/a", "unchecked");
    assert_eq!(
        (&found["rule"], &found["new"]),
        (
            &json!("source-unavailable"),
            &json!({"cause": "exit_before_ready"})
        )
    );
    let message = found["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("code 1") && message.contains("not found"),
        "{message}"
    );
    assert_eq!(
        (&report["tools"], &report["summary"]["unchecked"]),
        (&json!([]), &json!(1))
    );
}

#[test]
fn plain_start_with_a_source_that_exits_0_is_refused() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"start_exit": 0}));
    let (code, report, _) = refused(&chaos);
    assert_eq!(code, Some(4));
    let found = only_source(&report, "/a", "unchecked");
    assert!(
        found["message"]
            .as_str()
            .is_some_and(|message| message.contains("exited 0 without speaking MCP")),
        "{found}"
    );
}

#[test]
fn plain_start_with_an_unchecked_source_and_drift_exits_4() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"list_error": true}));
    chaos.script("b", &json!({"tools": Chaos::tools_without("add")}));
    let (code, report, _) = refused(&chaos);
    assert_eq!(code, Some(4));
    assert_eq!(
        only_source(&report, "/a", "unchecked")["new"]["cause"],
        "list_failed"
    );
    assert_eq!(
        report["tools"][0]["path"], "/b/add",
        "the drift is in the report as well"
    );
}

#[test]
fn plain_start_tries_each_source_once() {
    let chaos = Chaos::new();
    // A crash in the locked era gets a second process, which is not a second attempt.
    chaos.script("a", &json!({"start_exit": 1}));
    chaos.script("b", &json!({"list_delay_ms": 3000}));
    assert_eq!(refused(&chaos).0, Some(4));
    assert!(chaos.pids("a").len() <= 2, "{:?}", chaos.pids("a"));
}

#[test]
fn plain_start_that_is_refused_has_executed_nothing() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("fail")}));
    chaos.script("b", &json!({"list_delay_ms": 8000}));
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    chaos.await_events("a", "list", 1);
    refusal(
        &broker.call("/a/echo", json!({"text": "x"})),
        503,
        "starting",
    );
    refusal(
        &broker.call("/b/echo", json!({"text": "x"})),
        503,
        "starting",
    );
    let (status, stdout, _) = broker.finish();
    assert_eq!((status.code(), stdout.as_str()), (Some(3), ""));
    assert_eq!(
        chaos.events("a", "call").len() + chaos.events("b", "call").len(),
        0
    );
}

#[test]
fn plain_start_admits_no_call_before_every_required_verdict() {
    let chaos = Chaos::new();
    chaos.script("b", &json!({"start_delay_ms": 8000}));
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    assert_eq!(broker.post("/meta_tree", &json!({"depth": 2})).status, 200);
    assert_eq!(
        broker
            .post("/meta_desc", &json!({"path": "/b/echo"}))
            .status,
        200
    );
    wait_until("`/a` is up", || broker.source("/a")["state"] == "ready");
    assert_eq!(
        chaos.events("b", "list"),
        Vec::<Value>::new(),
        "`/b` is still starting"
    );
    for path in ["/a/echo", "/b/echo", "/optional/echo"] {
        let error = refusal(&broker.call(path, json!({"text": "x"})), 503, "starting");
        assert_eq!(
            (&error["retryable"], &error["maybe_executed"]),
            (&json!(true), &json!(false))
        );
    }
    wait_until("the gate opens", || broker.get("/readyz").status == 200);
    broker.result("/a/echo", json!({"text": "x"}));
    broker.result("/b/echo", json!({"text": "x"}));
    assert_eq!(chaos.events("a", "call").len(), 1);
}

/// Plain start with this script for `/a`; it must serve.
fn serves(script: &str) {
    let chaos = Chaos::new();
    chaos.raw_script("a", script);
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    broker.result("/a/echo", json!({"text": "x"}));
    assert_eq!(broker.source("/a")["withdrawn"], 0);
}

#[test]
fn plain_start_with_an_added_tool_serves_without_it() {
    let chaos = Chaos::new();
    let mut tools = Chaos::tools();
    tools.push(json!({"name": "brand_new", "inputSchema": {"type": "object"}}));
    chaos.script("a", &json!({"tools": tools}));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    refusal(
        &broker.call("/a/brand_new", json!({})),
        404,
        "path_not_found",
    );
    assert!(
        !broker
            .post("/meta_tree", &json!({"path": "/a"}))
            .text()
            .contains("brand_new")
    );
    wait_until("it is reported", || broker.stderr().contains("brand_new"));
}

#[test]
fn plain_start_with_another_version_or_capability_serves() {
    serves(r#"{"server_info": {"name": "chaos-mcp", "version": "99.0"}}"#);
    serves(r#"{"capabilities": {"tools": {"listChanged": true}, "logging": {}}}"#);
}

#[test]
fn plain_start_with_another_protocol_revision_serves() {
    serves(r#"{"era": "legacy"}"#);
    serves(r#"{"era": "legacy", "protocol_version": "2024-11-05"}"#);
}

/// The value as JSON with the members of each object in falling order.
fn reversed(value: &Value) -> String {
    let members = |members: &Map<String, Value>| -> String {
        let members: Vec<_> = members
            .iter()
            .rev()
            .map(|(name, value)| format!("{}: {}", json!(name), reversed(value)))
            .collect();
        members.join(" , ")
    };
    match value {
        Value::Object(object) => format!("{{{}}}", members(object)),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(reversed).collect::<Vec<_>>().join(", ")
        ),
        other => other.to_string(),
    }
}

#[test]
fn plain_start_with_another_member_order_serves() {
    let mut tools = Chaos::tools();
    tools.reverse();
    serves(&format!(r#"{{"tools": {}}}"#, reversed(&json!(tools))));
}

#[test]
fn plain_start_with_a_failed_optional_source_serves() {
    for script in [
        json!({"start_exit": 1}),
        json!({"tools": []}),
        json!({"instructions": "new"}),
    ] {
        let chaos = Chaos::new();
        chaos.script("optional", &script);
        let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
        broker.result("/a/echo", json!({"text": "x"}));
    }
}
