//! The official conformance suite, two versions of it, against a broker over HTTP whose only source is
//! `tests/conformance/fixture.py`, which passes the suite by itself. `expected.tsv` lists the scenarios
//! that fail and why; one that fails and is not listed fails the test, and so does one that is listed
//! and passes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use harness::{Bench, Broker, Run, binary};
use serde_json::{Value, json};

/// The scenarios that no row may excuse; each is in at least one run.
const REQUIRED: [&str; 20] = [
    "caching",
    "dns-rebinding-protection",
    "http-custom-header-server-validation",
    "http-header-validation",
    "json-schema-2020-12",
    "ping",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-stateless",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-list",
    "logging-set-level",
];

/// A run of the suite: its name in `expected.tsv`, the version of the suite, what it runs.
const RUNS: [(&str, &str, &[&str]); 3] = [
    (
        "2026-07-28",
        "conformance-modern",
        &["--requirements", "2026-07-28", "--timeout", "8000"],
    ),
    (
        "2025-11-25",
        "conformance-modern",
        &["--requirements", "2025-11-25", "--timeout", "8000"],
    ),
    ("stable", "conformance-stable", &["--suite", "active"]),
];

/// The length of the time that ends the name of a scenario's folder.
const TIME: usize = "-2026-11-23T06-09-29-357Z".len();

/// The folder of the suite.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The private Node of `install`.
pub(crate) fn node() -> PathBuf {
    let packages = fs::read_dir(folder().join("node_modules"));
    let mut nodes = packages
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("node-"))
        .map(|entry| entry.path().join("bin/node"));
    nodes
        .find(|node| node.exists() && folder().join("installed").exists())
        .expect("the conformance suite is not installed; run tests/conformance/install")
}

/// Why something did not pass: a scenario by its name, a check that only warns by `SCENARIO:CHECK`.
type Failures = BTreeMap<String, String>;

/// Adds what the checks of a scenario say. A scenario in which nothing passed shows nothing, so it fails.
fn add_failures(scenario: &str, checks: &Value, failures: &mut Failures) {
    let checks = checks.as_array().expect("a list");
    let with = |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
    let said = |check: &Value| format!("{}: {}", check["id"], check["errorMessage"]);
    let failed: Vec<_> = with("FAILURE").map(said).collect();
    if !failed.is_empty() {
        failures.insert(scenario.to_owned(), failed.join("; "));
    } else if with("SUCCESS").next().is_none() {
        failures.insert(scenario.to_owned(), "nothing was checked".to_owned());
    } else {
        for check in with("WARNING") {
            let id = check["id"].as_str().expect("a check has an id");
            failures.insert(format!("{scenario}:{id}"), said(check));
        }
    }
}

/// Runs the suite; the scenarios that it ran, and the failures.
fn run(
    broker: &Broker,
    suite: &str,
    args: &[&str],
    results: &Path,
) -> (BTreeSet<String>, Failures) {
    let program = folder()
        .join("node_modules")
        .join(suite)
        .join("dist/index.js");
    let url = format!("http://{}/mcp", broker.address());
    let output = Run::new(&node())
        .args([program.as_os_str()])
        .args(["server", "--url", &url, "-o"])
        .args([results.as_os_str()])
        .args(args)
        .output();
    let Ok(written) = fs::read_dir(results) else {
        panic!(
            "the suite wrote no results: {}{}",
            output.stdout, output.stderr
        );
    };
    let mut ran = BTreeSet::new();
    let mut failures = Failures::new();
    for entry in written {
        let entry = entry.expect("a readable folder");
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = name.strip_prefix("server-").expect("a server scenario");
        let name = &name[..name.len() - TIME];
        let checks = fs::read_to_string(entry.path().join("checks.json")).expect("the checks");
        let checks = serde_json::from_str(&checks).expect("JSON");
        ran.insert(name.to_owned());
        add_failures(name, &checks, &mut failures);
    }
    (ran, failures)
}

/// The scenarios of a run over a server of this era that are expected to fail.
fn expected(run: &str, upstream: &str) -> BTreeSet<String> {
    let list = fs::read_to_string(folder().join("expected.tsv")).expect("a list");
    let mut listed = BTreeSet::new();
    for line in list.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let cells: Vec<_> = line.split('\t').collect();
        let [of, over, scenario, since, reason] = cells[..] else {
            panic!("expected.tsv: five columns are needed: {line}");
        };
        assert!(
            since.len() == 10 && !reason.is_empty(),
            "expected.tsv: {line}"
        );
        assert!(
            !REQUIRED.contains(&scenario),
            "expected.tsv: {scenario} has to pass"
        );
        if of.split(' ').any(|of| of == run) && (over == upstream || over == "both") {
            assert!(
                listed.insert(scenario.to_owned()),
                "expected.tsv: two rows for {scenario} in {run}"
            );
        }
    }
    listed
}

fn check(upstream: &str, era: &str) {
    let python = folder().join("../clients/venv/v2/bin/python");
    let bench = Bench::new();
    let command = json!([python, folder().join("fixture.py"), "--era", era]);
    let root = json!({"path": "/", "type": "node", "source": {"command": command}});
    bench.write(
        "c.json",
        &json!({"tree": root, "mcp": {"mode": "direct"}}).to_string(),
    );
    let broker_gen = || Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let locked = broker_gen().args(["lock", "--config", "c.json"]).output();
    assert_eq!(locked.code, Some(0), "{}{}", locked.stdout, locked.stderr);
    let broker = Broker::start_ready(broker_gen().args(["serve", "0", "--config", "c.json"]));

    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, suite, args) in RUNS {
        let (ran, failures) = run(&broker, suite, args, &bench.path(name));
        seen.extend(ran.iter().cloned());
        let listed = expected(name, upstream);
        for (scenario, why) in &failures {
            if !listed.contains(scenario) {
                wrong.push(format!("{name} {scenario} fails: {why}"));
            }
        }
        for scenario in listed {
            let (of, _) = scenario.split_once(':').unwrap_or((&scenario, ""));
            if !ran.contains(of) {
                wrong.push(format!("{name} does not have {scenario}, which is listed"));
            } else if !failures.contains_key(&scenario) {
                wrong.push(format!("{name} {scenario} passes now; remove its row"));
            }
        }
    }
    for scenario in REQUIRED
        .iter()
        .filter(|scenario| !seen.contains(**scenario))
    {
        wrong.push(format!("no run has {scenario}"));
    }
    assert!(
        wrong.is_empty(),
        "over a {upstream} server:\n{}\nbroker: {}",
        wrong.join("\n"),
        broker.stderr()
    );
}

#[test]
fn suite_passes_over_a_modern_server_except_as_listed() {
    check("modern", "both");
}

#[test]
fn suite_passes_over_a_legacy_server_except_as_listed() {
    check("legacy", "legacy");
}
