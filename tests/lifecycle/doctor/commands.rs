//! `doctor` if the command itself is the problem: missing, not a program, a script that runs a missing
//! program, or one that waits for input.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use harness::{Chaos, Run, binary};
use serde_json::{Value, json};

/// The broker in a separate folder, with `program` instead of the server's command for `/a`.
struct BrokerCopy {
    chaos: Chaos,
    broker: PathBuf,
}

impl BrokerCopy {
    fn new() -> Self {
        let chaos = Chaos::new();
        let broker = chaos.path().join("chaos-broker");
        harness::copy_program(&binary("chaos-broker"), &broker);
        Self { chaos, broker }
    }

    /// Replaces `chaos-mcp` by a file, which every source runs.
    fn program(&self, name: &str, text: &str, mode: u32) -> &Self {
        let file = self.chaos.file(name, text);
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(file, mode).expect("the mode can be set");
        self
    }

    fn examine(&self, args: &[&str]) -> Value {
        let run = Run::new(&self.broker)
            .env("CHAOS", self.chaos.path())
            .env("A_TOKEN", "a-token-for-tests")
            .env("PATH", "/usr/bin:/bin");
        let output = run.args(["doctor", "--format", "json"]).args(args).output();
        assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
        serde_json::from_str(&output.stdout).expect("it is JSON")
    }
}

/// The one finding of a source that did not start.
fn failure(report: &Value) -> &Value {
    let source = &report["sources"][0];
    let all = source["findings"].as_array().expect("a list");
    assert_eq!((&source["path"], all.len()), (&json!("/a"), 1), "{report}");
    &all[0]
}

#[test]
fn doctor_names_a_command_that_is_missing_or_not_a_program() {
    let copy = BrokerCopy::new();
    copy.program("chaos-mcp2", "#!/bin/sh\n", 0o755);
    let report = copy.examine(&[]);
    let found = failure(&report);
    assert_eq!(found["code"], "spawn_not_found");
    let message = found["message"].as_str().expect("text");
    for part in [
        "`chaos-mcp` was not found",
        "/usr/bin",
        "did you mean `chaos-mcp2`?",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(report["summary"]["need_attention"], 3);

    for (text, mode, code, part) in [
        ("#!/bin/sh\n", 0o644, "spawn_denied", "cannot be executed"),
        ("echo hi\n", 0o755, "spawn_format", "without a `#!` line"),
        (
            "#!/no/such/interpreter\n",
            0o755,
            "spawn_not_found",
            "interpreter",
        ),
        (
            "#!/usr/bin/env node-that-is-not-there\n",
            0o755,
            "runtime_missing",
            "`node-that-is-not-there`",
        ),
        (
            "#!/bin/sh\nuvx-not-there run x\n",
            0o755,
            "runtime_missing",
            "`uvx-not-there`",
        ),
        (
            "#!/bin/sh\necho 'Usage: chaos-mcp serve'\n",
            0o755,
            "usage_text",
            "chaos-mcp serve",
        ),
    ] {
        let report = copy.program("chaos-mcp", text, mode).examine(&[]);
        let found = failure(&report);
        assert_eq!(found["code"], code, "{found}");
        let message = found["message"].as_str().expect("text");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn doctor_distinguishes_a_server_that_waits_for_input() {
    let copy = BrokerCopy::new();
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let config = &copy.chaos.config(compiled, |config| {
        for at in 0..3 {
            config["tree"][at]["source"]["startup_timeout"] = json!(1);
        }
    });
    for (text, part) in [
        // The system does this to a background process that reads the terminal.
        ("#!/bin/sh\nkill -TTIN $$\nsleep 60\n", "needs a terminal"),
        (
            "#!/bin/sh\nprintf 'Enter password:'\nsleep 60\n",
            "waits for input: Enter password:",
        ),
    ] {
        let report = copy.program("chaos-mcp", text, 0o755).examine(&[config]);
        let found = failure(&report);
        assert_eq!(
            (&found["code"], &found["cause"]),
            (&json!("terminal_wanted"), &json!("startup_timeout"))
        );
        let message = found["message"].as_str().expect("text");
        assert!(message.contains(part), "{message}");
    }
}
