//! The official conformance suite, two versions of it, against a broker over HTTP whose only source is
//! `tests/conformance/fixture.py`, over stdio or HTTP, which passes the suite by itself; and against the
//! broker's client. `expected.tsv` lists the scenarios that fail and why; one that fails and is not listed
//! fails the test, and so does one that is listed and passes.

mod client;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use harness::{
    Bench, Broker, ListeningServer, Output, Run, access, binary, official_python, private_node,
};
use serde_json::{Value, json};

/// The scenarios that no row may excuse; each is in at least one run.
const REQUIRED: [&str; 36] = [
    "caching",
    "dns-rebinding-protection",
    "http-custom-header-server-validation",
    "http-header-validation",
    "json-schema-2020-12",
    "ping",
    "completion-complete",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-list",
    "resources-list",
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
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
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-wire-fields",
];

/// A run of the suite: its name in `expected.tsv`, the version of the suite, what it runs.
const RUNS: [(&str, &str, &[&str]); 3] = [
    (
        "2025-11-25",
        "conformance-modern",
        &["--requirements", "2025-11-25", "--timeout", "20000"],
    ),
    ("stable", "conformance-stable", &["--suite", "active"]),
    // The last run: it cancels tasks, and while a server may work on a cancelled call, no log message certainly belongs to
    // another call.
    (
        "2026-07-28",
        "conformance-modern",
        &["--requirements", "2026-07-28", "--timeout", "20000"],
    ),
];

/// The length of the time that ends the name of a scenario's folder.
const TIME: usize = "-2026-11-23T06-09-29-357Z".len();

/// The folder of the suite.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
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

/// Runs the suite against the broker; the scenarios that it ran, and the failures.
fn run(
    broker: &Broker,
    suite: &str,
    args: &[&str],
    results: &Path,
) -> (BTreeSet<String>, Failures) {
    let url = format!("http://{}/mcp", broker.address());
    let output = with_key(suite_run(suite), broker.address())
        .args(["server", "--url", &url, "-o"])
        .args([results])
        .args(args)
        .output();
    let (mut ran, mut failures) = (BTreeSet::new(), Failures::new());
    for (name, checks) in read_results(results, &output) {
        let name = name.strip_prefix("server-").expect("a server scenario");
        ran.insert(name.to_owned());
        add_failures(name, &checks, &mut failures);
    }
    (ran, failures)
}

/// The suite, which sends a key under rules of access.
fn with_key(suite: Run, address: &str) -> Run {
    if !access::is_on() {
        return suite;
    }
    let module = folder().join("key.mjs");
    let import = format!("--import={}", module.display());
    let suite = suite.env("NODE_OPTIONS", import);
    suite.env("KEY_FOR", address).env("KEY", access::KEY)
}

/// A version of the suite, without arguments.
fn suite_run(suite: &str) -> Run {
    let program = folder()
        .join("node_modules")
        .join(suite)
        .join("dist/index.js");
    Run::new(&private_node()).args([program])
}

/// The output of the suite: the checks of each scenario, without those in folders of groups.
fn read_results(results: &Path, output: &Output) -> Vec<(String, Value)> {
    let Ok(written) = fs::read_dir(results) else {
        panic!(
            "the suite wrote no results: {}{}",
            output.stdout, output.stderr
        );
    };
    let mut all = Vec::new();
    for entry in written {
        let entry = entry.expect("a readable folder");
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(checks) = fs::read_to_string(entry.path().join("checks.json")) else {
            continue;
        };
        let checks = serde_json::from_str(&checks).expect("JSON");
        all.push((name[..name.len() - TIME].to_owned(), checks));
    }
    all
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
            !REQUIRED.contains(&scenario) && !client::REQUIRED.contains(&scenario),
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

/// The differences between a run and `expected.tsv`.
fn unexpected(
    run: &str,
    upstream: &str,
    ran: &BTreeSet<String>,
    failures: &Failures,
) -> Vec<String> {
    let listed = expected(run, upstream);
    let unlisted = failures
        .iter()
        .filter(|(scenario, _)| !listed.contains(*scenario));
    let mut wrong: Vec<_> = unlisted
        .map(|(scenario, why)| format!("{run} {scenario} fails: {why}"))
        .collect();
    for scenario in listed {
        let (of, _) = scenario.split_once(':').unwrap_or((&scenario, ""));
        if !ran.contains(of) {
            wrong.push(format!("{run} does not have {scenario}, which is listed"));
        } else if !failures.contains_key(&scenario) {
            wrong.push(format!("{run} {scenario} passes now; remove its row"));
        }
    }
    wrong
}

/// The server behind the broker, which supports `era`.
fn fixture(era: &str) -> Vec<String> {
    let python = official_python("v2");
    let program = folder().join("fixture.py");
    let text = |path: PathBuf| path.to_str().expect("the path is text").to_owned();
    [
        text(python),
        text(program),
        "--era".to_owned(),
        era.to_owned(),
    ]
    .to_vec()
}

fn check(upstream: &str, source: &Value) {
    let bench = Bench::new();
    let mut source = source.clone();
    source["resources"] = json!("live");
    for filter in ["resource_filter", "prompt_filter"] {
        source[filter] = json!(["*"]);
    }
    let root = json!({"path": "/", "type": "node", "source": source});
    let mut config = json!({
        "tree": root,
        "mcp": {"mode": "direct"},
        "jobs": {"store": "jobs.sqlite", "promote_after": 1},
    });
    access::add(&mut config);
    bench.write("c.json", &config.to_string());
    let broker_gen = || Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let locked = broker_gen().args(["lock", "--config", "c.json"]).output();
    assert_eq!(locked.code, Some(0), "{}{}", locked.stdout, locked.stderr);
    assert_eq!(
        bench.lock_json()["sources"][0]["protocol_version"],
        match upstream {
            "modern" => "2026-07-28",
            _ => "2025-11-25",
        }
    );
    let broker = Broker::start_ready(broker_gen().args(["serve", "0", "--config", "c.json"]));

    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, suite, args) in RUNS {
        let (ran, failures) = run(&broker, suite, args, &bench.path(name));
        wrong.extend(unexpected(name, upstream, &ran, &failures));
        seen.extend(ran);
    }
    let missing = REQUIRED
        .iter()
        .filter(|scenario| !seen.contains(**scenario));
    wrong.extend(missing.map(|scenario| format!("no run has {scenario}")));
    assert!(
        wrong.is_empty(),
        "over a {upstream} server:\n{}\nbroker: {}",
        wrong.join("\n"),
        broker.stderr()
    );
}

/// The suite over a server that is a process of the broker.
fn check_over_stdio(upstream: &str, era: &str) {
    check(upstream, &json!({"command": fixture(era)}));
}

/// The suite over a server over HTTP.
fn check_over_http(upstream: &str, era: &str) {
    let command = fixture(era);
    let run = Run::new(Path::new(&command[0])).args(&command[1..]);
    let server = ListeningServer::start(run.args(["--http", "0"]));
    // Without trust, the tools with sensitive names of a server with a URL are hidden.
    check(
        upstream,
        &json!({"url": server.url("/mcp"), "trust": "trusted"}),
    );
}

#[test]
fn suite_passes_over_a_modern_server_except_as_listed() {
    check_over_stdio("modern", "both");
}

#[test]
fn suite_passes_over_a_legacy_server_except_as_listed() {
    check_over_stdio("legacy", "legacy");
}

#[test]
fn suite_passes_over_a_modern_server_over_http_except_as_listed() {
    check_over_http("modern", "both");
}

#[test]
fn suite_passes_over_a_legacy_server_over_http_except_as_listed() {
    check_over_http("legacy", "legacy");
}

#[test]
fn suite_with_a_key_passes_under_rules_of_access_except_as_listed() {
    let chosen = ["conformance::suite_passes_over_a_modern_server_except_as_listed"];
    access::again("conformance::suite_passes", &chosen);
}
