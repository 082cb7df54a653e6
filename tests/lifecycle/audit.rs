//! The audit log and the metrics of a running broker.

use std::fs;
use std::path::{Path, PathBuf};

use harness::{Broker, Chaos, Run, binary, refusal, request, wait_until};
use serde_json::{Value, json};

use crate::config::changed;

/// A text that no line may have.
pub(crate) const CANARY: &str = "canary-4711";

/// A broker with an audit log, and the folder of its files.
pub(crate) struct AuditStage {
    pub(crate) chaos: Chaos,
    pub(crate) config: String,
}

impl AuditStage {
    pub(crate) fn new(change: impl FnOnce(&mut Value)) -> Self {
        let chaos = Chaos::new();
        let config = changed(&chaos, |config| {
            config["audit"] = json!({"file": "audit.jsonl"});
            change(config);
        });
        Self { chaos, config }
    }

    pub(crate) fn run(&self) -> Run {
        let args = ["127.0.0.1:0", &self.config, "--log-level", "debug"];
        self.chaos.run("chaos-broker", &args)
    }

    pub(crate) fn file(&self) -> PathBuf {
        let folder = Path::new(&self.config).parent();
        folder.expect("a file is in a folder").join("audit.jsonl")
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.file()).expect("the log")
    }

    /// Returns the lines of a kind.
    pub(crate) fn lines(&self, kind: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let lines = lines.filter(|line: &Value| line["kind"] == kind);
        lines.collect()
    }

    /// Runs `audit verify` over the log.
    fn verify(&self) -> (Option<i32>, String) {
        let file = self.file();
        let args = ["audit", "verify", file.to_str().expect("UTF-8")];
        let output = Run::new(&binary("mcp-broker")).args(args).output();
        (output.code, output.stdout)
    }
}

#[test]
fn call_that_may_change_something_has_its_line_before_its_server_gets_it() {
    let stage = AuditStage::new(|_| {});
    let never = json!({"on_call": {"echo": {"delay_ms": 60000}}});
    stage.chaos.script("a", &never);
    let broker = Broker::start_ready(stage.run());
    let address = broker.address().to_owned();
    let call = std::thread::spawn(move || {
        let body = json!({"path": "/a/echo", "args": {"text": CANARY}}).to_string();
        let json = [("Content-Type", "application/json")];
        // The broker is killed during the call.
        let _no_answer = std::panic::catch_unwind(|| {
            request(&address, "POST", "/meta_call", &json, body.as_bytes())
        });
    });
    stage.chaos.await_events("a", "call", 1);
    let begun = stage.lines("call_begin");
    assert_eq!(begun.len(), 1, "{begun:?}");
    assert_eq!(begun[0]["target"]["path"], "/a/echo");
    assert_eq!(stage.lines("call_end").len(), 0);
    // Not its guard: the broker would see that the caller of a dead guard leaves, and end the call.
    let kill = format!("kill -KILL {}", broker.pid());
    let killed = Run::new(Path::new("/bin/sh")).args(["-c", &kill]).output();
    assert_eq!(killed.code, Some(0), "{}", killed.stderr);
    call.join().expect("the caller ends");
    drop(broker);
    let (code, report) = stage.verify();
    assert_eq!(code, Some(0), "{report}");
    assert!(
        report.contains("/a/echo"),
        "the call is left open: {report}"
    );
}

#[test]
fn end_of_each_call_has_a_line_with_the_reviewed_version() {
    let stage = AuditStage::new(|_| {});
    let broker = Broker::start_ready(stage.run());
    let digest = broker.get("/healthz").json()["catalog_digest"].clone();
    broker.result("/a/echo", json!({"text": CANARY}));
    refusal(&broker.call("/a/nothing", json!({})), 404, "path_not_found");
    broker.call("/a/fail", json!({}));
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let ends = stage.lines("call_end");
    let facts: Vec<_> = ends
        .iter()
        .map(|line| {
            assert_eq!(line["catalog"], digest, "{line}");
            (
                line["target"]["path"].as_str().expect("a path"),
                line["outcome"].as_str().expect("an outcome"),
                line["sent"].as_bool().expect("a fact"),
            )
        })
        .collect();
    let expected = [
        ("/a/echo", "ok", true),
        ("/a/nothing", "refused", false),
        ("/a/fail", "tool_error", true),
    ];
    // Refused calls have a separate queue.
    for line in expected {
        assert!(facts.contains(&line), "{line:?}: {facts:?}");
    }
    assert_eq!(facts.len(), 3);
    let echo = ends
        .iter()
        .find(|line| line["outcome"] == "ok")
        .expect("a line");
    assert!(
        echo["target"]["digest"]
            .as_str()
            .is_some_and(|digest| digest.starts_with("sha256"))
    );
    assert_eq!(echo["begin"], stage.lines("call_begin")[0]["seq"]);
    for kind in ["start", "stop", "checkpoint"] {
        assert!(!stage.lines(kind).is_empty(), "{kind}");
    }
    assert!(!stage.text().contains(CANARY), "values stay out of the log");
    assert!(!log.contains(CANARY), "{log}");
    assert_eq!(stage.verify().0, Some(0));
    // One changed byte is found.
    let changed = stage
        .text()
        .replacen("\"outcome\":\"ok\"", "\"outcome\":\"no\"", 1);
    fs::write(stage.file(), changed).expect("writable");
    let (code, report) = stage.verify();
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("changed"), "{report}");
}

#[test]
fn listings_have_lines_only_if_the_config_asks_for_them() {
    let read = |broker: &Broker| {
        broker.post("/meta_tree", &json!({"path": "/a"}));
        broker.post("/meta_desc", &json!({"paths": ["/a/echo", "/a/nothing"]}));
        broker.post("/meta_tree", &json!({"query": CANARY}));
        refusal(
            &broker.post("/meta_tree", &json!({"path": "/nothing"})),
            404,
            "path_not_found",
        );
    };
    let stage = AuditStage::new(|config| config["audit"]["reads"] = json!(true));
    let broker = Broker::start_ready(stage.run());
    read(&broker);
    let (_, log) = broker.terminate();
    let lines = stage.lines("read");
    let facts: Vec<_> = lines
        .iter()
        .map(|line| json!([line["method"], line["paths"], line["code"]]))
        .collect();
    let expected = json!([
        ["meta_tree", ["/a"], null],
        ["meta_desc", ["/a/echo", "/a/nothing"], null],
        ["retrieve_tools", [], null],
        ["meta_tree", ["/nothing"], "path_not_found"],
    ]);
    assert_eq!(Value::from(facts), expected);
    assert!(!stage.text().contains(CANARY) && !log.contains(CANARY));
    assert_eq!(stage.verify().0, Some(0));
    let stage = AuditStage::new(|_| {});
    let broker = Broker::start_ready(stage.run());
    read(&broker);
    drop(broker);
    assert_eq!(stage.lines("read").len(), 0);
}

#[test]
fn denied_call_has_a_line_with_the_caller_and_the_rule() {
    let key = "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p";
    let digest = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
    let stage = AuditStage::new(|config| {
        config["access"] = json!({
            "groups": ["reader"],
            "rules": [
                {"allow": ["/a/**"], "to": ["reader"]},
                {"deny": ["/a/add"], "to": ["reader"]},
            ],
        });
        config["identities"] =
            json!({"keys": [{"name": "ci", "sha256": digest, "groups": ["reader"]}]});
    });
    let broker = Broker::start_ready(stage.run());
    let bearer = format!("Bearer {key}");
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", bearer.as_str()),
    ];
    let call = |path: &str, args: Value| {
        let body = json!({"path": path, "args": args}).to_string();
        request(
            broker.address(),
            "POST",
            "/meta_call",
            &headers,
            body.as_bytes(),
        )
    };
    assert_eq!(call("/a/echo", json!({"text": "x"})).status, 200);
    refusal(
        &call("/a/add", json!({"a": 1, "b": 2})),
        404,
        "path_not_found",
    );
    let wrong = [
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer mbk_no"),
    ];
    let refused = request(broker.address(), "POST", "/meta_call", &wrong, b"{}");
    refusal(&refused, 401, "unauthorized");
    let (_, log) = broker.terminate();
    let ends = stage.lines("call_end");
    let line = |outcome: &str| {
        let found = ends.iter().find(|line| line["outcome"] == outcome);
        found.unwrap_or_else(|| panic!("{outcome}: {ends:?}"))
    };
    let (ok, denied) = (line("ok"), line("denied"));
    assert_eq!((&ok["rule"], &denied["rule"]), (&json!(0), &json!(1)));
    assert_eq!(denied["target"]["path"], "/a/add");
    for line in [ok, denied] {
        assert_eq!(line["actor"]["subject"], "ci");
        assert_eq!(line["actor"]["groups"], json!(["reader"]));
        assert!(
            line["policy"]
                .as_str()
                .is_some_and(|policy| policy.starts_with("sha256"))
        );
    }
    assert_eq!(stage.lines("identify_failed").len(), 1);
    assert!(!stage.text().contains(key) && !log.contains(key));
}

#[test]
fn changes_of_keys_have_a_line_with_their_names() {
    let entry = |name: &str, digit: &str| json!({"name": name, "sha256": digit.repeat(64), "groups": ["reader"]});
    let stage = AuditStage::new(|config| {
        config["access"] =
            json!({"groups": ["reader"], "rules": [{"allow": ["/**"], "to": ["reader"]}]});
        config["identities"] = json!({"keys": [entry("ci", "1"), entry("cd", "2")]});
    });
    let broker = Broker::start_ready(stage.run());
    let text = fs::read_to_string(&stage.config).expect("the config");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["identities"] = json!({"keys": [entry("cd", "3"), entry("new", "4")]});
    fs::write(&stage.config, config.to_string()).expect("writable");
    broker.signal("HUP");
    wait_until("the change has a line", || {
        !stage.lines("keys_changed").is_empty()
    });
    let line = &stage.lines("keys_changed")[0];
    assert_eq!(
        line["names"],
        json!({"added": ["cd", "new"], "removed": ["ci", "cd"]})
    );
    // A reload without a change of keys has no such line.
    broker.signal("HUP");
    wait_until("both reloads have a line", || {
        stage.lines("reload").len() == 2
    });
    assert_eq!(stage.lines("keys_changed").len(), 1);
}

#[test]
fn full_file_refuses_the_next_call_and_not_the_line_of_one_that_was_sent() {
    let stage = AuditStage::new(|_| {});
    // Writes beyond the limit fail like those on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let broker = Broker::start_ready(stage.run().through("sh", &["-c", limited]));
    let mut answers = 0;
    wait_until("the file is full", || {
        let answer = broker.call("/a/echo", json!({"text": "x"}));
        if answer.status == 200 {
            answers += 1;
            return false;
        }
        refusal(&answer, 503, "audit_unavailable");
        true
    });
    let executed = stage.chaos.count("a", "call");
    assert_eq!(executed, answers, "a refused call is not sent");
    // Listings answer, and the state is shown.
    assert_eq!(broker.post("/meta_tree", &json!({})).status, 200);
    let metrics = broker.get("/metrics").text();
    assert!(
        metrics.contains("\nmcp_broker_audit_available 0\n"),
        "{metrics}"
    );
    let readiness = broker.get("/readyz").json();
    assert_eq!(readiness["audit"]["available"], false, "{readiness}");
    drop(broker);
    let ended = stage.lines("call_end");
    let ended = ended.iter().filter(|line| line["sent"] == true).count();
    // The limit, unlike a full disk, may also fail a write into room that was allocated: that of the last end line.
    let (_, report) = stage.verify();
    let open = report.matches("left open: ").count();
    assert_eq!(
        ended + open,
        answers,
        "each call that was sent has its line, or is named as open: {report}"
    );
    assert!(open <= 1, "{report}");
}

#[test]
fn calls_are_counted_in_the_metrics_by_tool_and_outcome() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    for _ in 0..3 {
        broker.result("/a/echo", json!({"text": CANARY}));
    }
    broker.call("/a/fail", json!({}));
    refusal(&broker.call("/a/nothing", json!({})), 404, "path_not_found");
    let answer = broker.get("/metrics");
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = answer.text();
    for line in [
        r#"mcp_broker_calls_total{source="/a",tool="/a/echo",outcome="ok"} 3"#,
        r#"mcp_broker_calls_total{source="/a",tool="/a/fail",outcome="tool_error"} 1"#,
        r#"mcp_broker_calls_refused_total{code="path_not_found"} 1"#,
        r#"mcp_broker_source_state{source="/a",state="ready"} 1"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    let clients = "mcp_client_operation_duration_seconds_count{";
    let clients = text.lines().filter(|line| line.starts_with(clients));
    assert!(
        clients
            .clone()
            .any(|line| line.contains("echo") && line.ends_with(" 3")),
        "{text}"
    );
    assert!(!text.contains(CANARY));
}

#[test]
fn metrics_are_shown_to_operators_only() {
    let chaos = Chaos::new();
    let args = ["127.0.0.1:0", "--secret-file"];
    let secret = chaos.file("secret", "a-long-secret-of-this-test");
    let run = chaos.run("chaos-broker", &args).args([secret.as_os_str()]);
    let broker = Broker::start(run);
    refusal(&broker.get("/metrics"), 401, "unauthorized");
    let headers = [("Authorization", "Bearer a-long-secret-of-this-test")];
    let shown = request(broker.address(), "GET", "/metrics", &headers, b"");
    assert_eq!(shown.status, 200);
    let off = changed(&chaos, |config| {
        config["telemetry"] = json!({"metrics": false})
    });
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0", &off]));
    refusal(&broker.get("/metrics"), 404, "route_not_found");
}
