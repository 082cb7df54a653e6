//! The arguments whose values lines of the audit log show: `audit` in the overrides of a tool.

use std::fs;
use std::path::Path;

use harness::{Broker, Chaos, Output};
use serde_json::{Value, json};

use crate::audit::CANARY;
use crate::config::{changed, refused};

/// The source `/a` of a config.
fn tool_overrides(config: &mut Value) -> &mut Value {
    &mut config["tree"][0]["source"]["tool_overrides"]
}

/// Writes a config with pointers for a tool of `/a`, and its lock beside it: no digest covers them.
pub(crate) fn with_pointers(chaos: &Chaos, tool: &str, pointers: Value) -> String {
    let config = changed(chaos, |config| {
        config["audit"] = json!({"file": "audit.jsonl"});
        tool_overrides(config)[tool]["audit"] = pointers;
    });
    let locked = chaos.run("broker-gen", &["lock", "--config", &config]);
    let output = locked.output();
    // The next run of a broker counts its own calls and starts.
    assert!(
        [Some(0), Some(2)].contains(&output.code),
        "{}",
        output.stderr
    );
    config
}

#[test]
fn lines_show_the_named_scalars_redacted_and_no_other_value() {
    let chaos = Chaos::new();
    let config = with_pointers(&chaos, "echo", json!(["/text"]));
    let run = chaos.run("broker-gen", &["serve", "--config", &config, "127.0.0.1:0"]);
    let broker = Broker::start_ready(run);
    // The variable `A_TOKEN` has this value.
    let long = format!("acme a-token-for-tests {}", "é".repeat(300));
    broker.result("/a/echo", json!({"text": "acme"}));
    broker.result("/a/echo", json!({"text": long}));
    broker.result("/b/echo", json!({"text": CANARY}));
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    let file = Path::new(&config).with_file_name("audit.jsonl");
    let text = fs::read_to_string(file).expect("the log");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for kind in ["call_begin", "call_end"] {
        let calls = lines.iter().filter(|line| line["kind"] == kind);
        let shown: Vec<_> = calls.map(|line| line["args"]["shown"].clone()).collect();
        let cut = shown[1]["/text"].as_str().expect("a text").to_owned();
        assert_eq!(
            shown,
            [json!({"/text": "acme"}), json!({"/text": cut}), Value::Null]
        );
        assert!(cut.starts_with("acme •••• é"), "{cut}");
        assert_eq!(cut.chars().count(), 200);
    }
    assert!(!text.contains(CANARY) && !text.contains("a-token-for-tests"));
}

/// Runs `broker-gen verify` with pointers of a tool.
fn verify(tool: &str, pointers: Value) -> Output {
    let chaos = Chaos::new();
    let config = with_pointers(&chaos, tool, pointers);
    let lock = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.lock.json"
    );
    fs::copy(lock, Path::new(&config).with_extension("lock.json")).expect("copied");
    let args = ["verify", "--offline", "--config", config.as_str()];
    chaos.run("broker-gen", &args).output()
}

#[test]
fn pointers_that_name_no_scalar_argument_are_refused_with_place_cause_and_remedy() {
    for (tool, pointers, parts) in [
        (
            "add",
            json!(["/a", "/c"]),
            [
                "`/c`",
                "/a/add",
                "its schema excludes it",
                "the tool has `/a`, `/b`",
            ],
        ),
        (
            "echo",
            json!(["/text/0"]),
            [
                "`/text/0`",
                "cannot be an argument",
                "given.json",
                "Remove it",
            ],
        ),
        (
            "args_dump",
            json!(["/x"]),
            [
                "`/x`",
                "/a/args_dump",
                "audit_pointer",
                "the tool has no argument to show",
            ],
        ),
        (
            "echo",
            json!(["text"]),
            ["`text`", "is not a JSON pointer", "given.json", "/org"],
        ),
        (
            "echo",
            json!(["/text", "/text"]),
            [
                "`/text`",
                "is in the list twice",
                "given.json",
                "remove one",
            ],
        ),
        (
            "echo",
            json!(["/a~2"]),
            [
                "`/a~2`",
                "is not a JSON pointer",
                "given.json",
                "config_range",
            ],
        ),
    ] {
        let output = verify(tool, pointers);
        assert_eq!(output.code, Some(2), "{parts:?}: {}", output.stdout);
        let said = output.stderr + &output.stdout;
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let many: Vec<_> = (0..17).map(|at| format!("/{at}")).collect();
    let output = verify("echo", json!(many));
    assert!(
        output.stderr.contains("at most 16 arguments, got 17"),
        "{}",
        output.stderr
    );
    let output = verify("*", json!(["/text"]));
    assert!(
        output.stderr.contains("cannot be set for `*`"),
        "{}",
        output.stderr
    );
}

#[test]
fn pointers_of_a_config_at_the_start_are_those_of_the_build() {
    let found = refused(|config| tool_overrides(config)["echo"]["audit"] = json!(["/text"]));
    let problem = &found[0];
    assert_eq!(problem["code"], "lock_mismatch", "{problem}");
    let message = problem["message"].as_str().expect("a text");
    assert!(message.starts_with("`audit` of `echo`"), "{message}");
}
