//! `audit replay`: recorded calls under another lock and other rules.

use std::fs;
use std::path::{Path, PathBuf};

use broker_config::Config;
use broker_model::lock::{Lock, LockedTool};
use harness::{Broker, Chaos, Output, Run, binary};
use serde_json::{Value, json};

use crate::audit::{AuditStage, CANARY};
use crate::audit_shown::with_pointers;

/// A log of calls of callers without a credential, under no rules.
fn recorded() -> AuditStage {
    let stage = AuditStage::new(|_| {});
    let broker = Broker::start_ready(stage.run());
    for (path, args) in [
        ("/a/echo", json!({"text": CANARY})),
        ("/a/add", json!({"a": 1, "b": 2})),
        ("/a/add", json!({"a": 1, "b": 2})),
        ("/a/fail", json!({})),
        ("/a/args_dump", json!({})),
        ("/b/echo", json!({"text": CANARY})),
        ("/a/nothing", json!({})),
    ] {
        broker.call(path, args);
    }
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    stage
}

/// Writes a config with rules, and its lock: without `fail`, and with another version of `add`.
fn changed_files(chaos: &Chaos, config: &str, access: Value) -> PathBuf {
    let text = fs::read_to_string(config).expect("the config");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["access"] = access;
    let file = chaos.file("new.json", &config.to_string());
    let lock = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.lock.json"
    );
    let text = fs::read_to_string(lock).expect("the lock");
    let mut lock = Lock::parse("config.lock.json", &text).expect("a lock");
    let config = Config::parse("new.json", config.to_string().as_bytes());
    let config = config.expect("a config").config;
    (lock.config_digest, lock.access_digest) = (config.digest(), config.access_digest());
    let source = &mut lock.sources[0];
    source.exposed.retain(|tool| tool.upstream_name != "fail");
    let add = source.exposed.iter_mut();
    let add = add
        .into_iter()
        .find(|tool| tool.upstream_name == "add")
        .expect("the tool");
    let mut raw = add.raw.clone();
    raw.insert("description".to_owned(), "Adds two numbers slowly".into());
    *add = LockedTool::new("add".to_owned(), raw, "add".to_owned());
    lock.version = lock.new_version();
    fs::write(file.with_file_name("new.lock.json"), lock.to_text()).expect("writable");
    file
}

fn replay(log: &Path, config: &Path, more: &[&str]) -> Output {
    let (log, config) = (log.to_str(), config.to_str());
    let args = [
        "audit",
        "replay",
        log.expect("UTF-8"),
        "--config",
        config.expect("UTF-8"),
    ];
    Run::new(&binary("mcp-broker"))
        .args(args)
        .args(more)
        .output()
}

#[test]
fn replay_counts_the_calls_that_new_files_would_refuse_hide_and_narrow() {
    let chaos = Chaos::new();
    // The lines of `/a/echo` keep its text, those of `/b/echo` do not.
    let config = with_pointers(&chaos, "echo", json!(["/text"]));
    let run = chaos.run("broker-gen", &["serve", "--config", &config, "127.0.0.1:0"]);
    let broker = Broker::start_ready(run);
    for (path, args) in [
        ("/a/echo", json!({"text": "abc"})),
        ("/a/echo", json!({"text": "kept and long"})),
        ("/a/add", json!({"a": 1, "b": 2})),
        ("/a/add", json!({"a": 1, "b": 2})),
        ("/a/fail", json!({})),
        ("/a/args_dump", json!({})),
        ("/b/echo", json!({"text": CANARY})),
        ("/a/nothing", json!({})),
    ] {
        broker.call(path, args);
    }
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let file = Path::new(&config).with_file_name("audit.jsonl");
    let narrowing = json!({"properties": {"text": {"maxLength": 3}}, "required": ["text"]});
    let config = changed_files(
        &chaos,
        &config,
        json!({
            "groups": ["all"],
            "anonymous": ["all"],
            "rules": [
                {"allow": ["/a/add", "/a/fail", "/a/args_dump"], "to": ["all"]},
                {"deny": ["/a/args_dump"], "to": ["all"]},
                {"allow": ["/*/echo"], "to": ["all"], "args": narrowing},
            ],
        }),
    );
    let output = replay(&file, &config, &["--format", "json"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let answer: Value = serde_json::from_str(&output.stdout).expect("JSON");
    for (count, expected) in [
        ("calls", 7),
        ("refuse", 1),
        ("hide", 1),
        ("narrow", 1),
        ("unknown", 3),
        ("same", 1),
        ("refused_before", 1),
        ("changes", 0),
    ] {
        assert_eq!(answer[count], expected, "{count}: {answer}");
    }
    let findings = answer["findings"].as_array().expect("a list");
    let findings: Vec<_> = findings
        .iter()
        .map(|one| {
            (
                one["verdict"].as_str(),
                one["path"].as_str(),
                one["count"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        findings,
        [
            (Some("refuse"), Some("/a/fail"), Some(1)),
            (Some("hide"), Some("/a/args_dump"), Some(1)),
            (Some("narrow"), Some("/a/echo"), Some(1)),
            (Some("unknown"), Some("/a/add"), Some(2)),
            (Some("unknown"), Some("/b/echo"), Some(1)),
        ]
    );
    assert_eq!(answer["notes"], json!([]));
    let page = replay(&file, &config, &[]);
    for part in [
        "refuse: /a/fail by anonymous, 1 call",
        "hide: /a/args_dump by anonymous, 1 call from line",
        "on: rule 1",
        "narrow: /a/echo by anonymous, 1 call",
        "rule 2: its arguments do not match, by the values that were kept",
        "rule 2: it depends on an argument that was not kept",
        "another version of the tool",
        "7 recorded calls: 1 refused, 1 hidden, 1 narrowed, 3 unknown, 1 as before; 1 refused already then",
    ] {
        assert!(page.stdout.contains(part), "{part}\n{}", page.stdout);
    }
    assert!(!page.stdout.contains(CANARY));
}

#[test]
fn replay_of_the_files_in_force_finds_no_difference() {
    let stage = recorded();
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos-broker/config.lock.json");
    let lock = lock.to_str().expect("UTF-8");
    let config = Path::new(&stage.config);
    let output = replay(&stage.file(), config, &["--lock", lock]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(
        output.stdout.starts_with(
            "6 recorded calls: 0 refused, 0 hidden, 0 narrowed, 0 unknown, 6 as before"
        ),
        "{}",
        output.stdout
    );
    // A denied tool is refused if the rules say so.
    let config = changed_files(
        &stage.chaos,
        &stage.config,
        json!({"groups": ["all"], "rules": [], "denied": "forbidden"}),
    );
    let output = replay(&stage.file(), &config, &["--lock", lock]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(
        output.stdout.contains("6 refused, 0 hidden"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("was made for another config"),
        "{}",
        output.stdout
    );
}

#[test]
fn replay_refuses_files_that_cannot_be_used_and_reads_hostile_logs() {
    let stage = recorded();
    let config = Path::new(&stage.config);
    // The lock beside the config is missing.
    let output = replay(&stage.file(), config, &[]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    for part in ["cannot read the lock", ".lock.json", "broker-gen lock"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let output = replay(&stage.file(), Path::new("/no/such.json"), &[]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    let output = replay(Path::new("/no/such.jsonl"), config, &[]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos-broker/config.lock.json");
    let text = stage.text();
    let end = text
        .lines()
        .find(|line| line.contains("\"kind\":\"call_end\""))
        .expect("a line");
    let hostile = end.replace("/a/echo", "/a/\\u001b[2Jx\\ny");
    let giant = "y".repeat(3 << 20);
    let log = stage.chaos.file(
        "hostile.jsonl",
        &format!("{text}{hostile}\n{giant}\n{{\"v\":1"),
    );
    let output = replay(&log, config, &["--lock", lock.to_str().expect("UTF-8")]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(!output.stdout.contains('\u{1b}'), "{:?}", output.stdout);
    assert!(output.stdout.contains("log: CHANGED"), "{}", output.stdout);
    assert!(
        output.stdout.contains("2 lines cannot be read"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.lines().count() < 10, "{}", output.stdout);
}
