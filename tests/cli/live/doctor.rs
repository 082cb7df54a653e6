//! `doctor`: the diagnosis of sources, with and without a lock.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::tool;

#[test]
fn doctor_without_a_lock_reports_sources_that_fail() {
    let bench = Bench::with_sources(&["good", "dies"]);
    bench.script(
        "dies",
        &json!({"start_exit": 3, "stderr_lines": ["npm error code E404"]}),
    );
    let output = bench.verb(&["doctor"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    contains(
        &output.stdout,
        &[
            "error: /dies\n  error[package_missing] the package registry does not have the package",
            "    help: Check the name and the version",
            "ok: /good\n  ready after ",
            "lists 10 tools: 10 exposed, 0\n  hidden\n",
            "1 of 2 sources need attention\n",
        ],
    );
    contains(
        &output.stderr,
        &["note: c.lock.json does not exist, so the tools are not compared with a lock"],
    );
    assert_eq!(bench.journal("good", "call").len(), 0, "no tool is called");
    let one = bench.verb(&["doctor", "--source", "/good"]);
    assert_eq!(one.code, Some(0), "{}", one.stdout);
}

#[test]
fn doctor_with_a_lock_reports_drift_as_json() {
    let bench = Bench::with_sources(&["a"]);
    bench.one_tool("a", tool("x"));
    bench.lock();
    let state = bench.lock_state();
    let mut changed = tool("x");
    changed["inputSchema"] = json!({"type": "object", "required": ["id"]});
    bench.one_tool("a", changed);
    let output = bench.verb(&["doctor", "--format", "json"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let source = &report["sources"][0];
    assert_eq!(
        (&report["ok"], &report["catalog_digest"], &source["path"]),
        (&json!(false), &Value::Null, &json!("/a"))
    );
    assert_eq!(source["tools"]["withdrawn"], 1, "{source}");
    assert_eq!(source["findings"][0]["code"], "drift");
    contains(
        source["findings"][0]["remedy"].as_str().expect("a text"),
        &["broker-gen lock --config c.json --source /a"],
    );
    assert_eq!(bench.lock_state(), state, "doctor writes nothing");
}

#[test]
fn doctor_reports_a_missing_variable_and_examines_other_sources() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.configure([
        ("a", json!({"env": {"KEY": "${NOT_SET_ANYWHERE}"}})),
        ("b", json!({})),
    ]);
    let output = bench.verb(&["doctor"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    contains(
        &output.stdout,
        &[
            "error[env_missing] ",
            "NOT_SET_ANYWHERE",
            "ok: /b",
            "1 of 2 sources",
        ],
    );
}

#[test]
fn doctor_names_the_variable_of_an_installer_that_fails() {
    let bench = Bench::with_sources(&["cache", "registry"]);
    bench.configure([
        ("cache", json!({"inherit_env": ["CANARY_*"]})),
        ("registry", json!({})),
    ]);
    bench.script(
        "cache",
        &json!({"start_exit": 1, "stderr_lines": [
            "npm error code EACCES", "npm error syscall mkdir", "npm error path /nonexistent/.npm"]}),
    );
    bench.script(
        "registry",
        &json!({"start_exit": 1, "stderr_lines": [
            "ERROR: Could not find a version that satisfies the requirement x (from versions: none)",
            "ERROR: No matching distribution found for x"]}),
    );
    let secret = "https://me:canary-of-pip@host.example/simple";
    let variables = [("npm_config_cache", "/kept"), ("PIP_INDEX_URL", secret)];
    let output = bench.verb_with(&["doctor"], &variables);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let text = output
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    contains(
        &text,
        &[
            "error[cache_unwritable] npm may not write into its folder: `NPM_CONFIG_CACHE` is set, and passed on",
            "error[package_missing] the package registry does not have the package",
            "`PIP_INDEX_URL` is set here and withheld, since it has a secret",
        ],
    );
    assert!(!text.contains("canary-of-pip"), "{text}");
    let output = bench.verb(&["doctor", "--source", "/cache"]);
    let text = output
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    contains(&text, &["`NPM_CONFIG_CACHE` is not set here"]);
}
