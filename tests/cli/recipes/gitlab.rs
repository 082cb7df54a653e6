//! The pipeline for GitLab: its rules, and the scripts of its jobs.

use std::process::Output;

use harness::{Bench, binary, contains};
use serde_json::Value;

use super::page::{block, commit, repository, tool};
use super::runner::{git, shell};
use super::yaml;

/// The variables of a pipeline.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Whether a rule of a job applies: a comparison, or several with `&&`.
fn applies(job: &Value, variables: Variables<'_>) -> bool {
    let value = |word: &str| -> String {
        match word.strip_prefix('$') {
            Some(name) => {
                let found = variables.iter().find(|(known, _)| *known == name);
                found
                    .map(|(_, value)| (*value).to_owned())
                    .unwrap_or_default()
            }
            None => word.trim_matches('"').to_owned(),
        }
    };
    let holds = |rule: &Value| {
        let condition = rule["if"].as_str().expect("a condition");
        condition.split(" && ").all(|part| {
            let (left, right) = part.split_once(" == ").expect("a comparison");
            value(left.trim()) == value(right.trim())
        })
    };
    job["rules"].as_array().expect("rules").iter().any(holds)
}

/// Runs the script of a job, as one shell that ends at the first failure.
fn run(bench: &Bench, job: &Value, variables: Variables<'_>) -> Output {
    let lines = job["script"].as_array().expect("a script").iter();
    let script: String = lines
        .map(|line| format!("{}\n", line.as_str().expect("a line").trim_end()))
        .collect();
    binary("chaos-mcp");
    let beside = binary("broker-gen");
    let beside = beside.parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    shell(&bench.path(""))
        .args(["-c", "set -e; cargo() { :; }; eval \"$SCRIPT\" 2>&1"])
        .env("SCRIPT", script)
        .env("PATH", format!("{}:{path}", beside.display()))
        .env("CI", "true")
        .envs(variables.iter().copied())
        .output()
        .expect("a shell runs")
}

#[test]
fn gitlab_pipeline_checks_lock_and_servers_and_leaves_out_the_servers_for_forks() {
    let bench = repository();
    let folder = bench.path("");
    let base = git(&folder, &["rev-parse", "HEAD"]);
    bench.one_tool("a", tool("read", "Reads a file."));
    bench.fine(&["lock", "--config", "config.json"]);
    commit(&bench, "another text");
    let pipeline = yaml::read(&block("GitLab", "yaml"));
    let merge_request = |project| {
        [
            ("CI_PIPELINE_SOURCE", "merge_request_event"),
            ("CI_PROJECT_ID", "1"),
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", project),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.as_str()),
        ]
    };
    let (own, fork) = (merge_request("1"), merge_request("2"));
    let (lock, servers) = (&pipeline["lock"], &pipeline["servers"]);
    assert!(applies(lock, &own) && applies(lock, &fork) && applies(servers, &own));
    assert!(!applies(servers, &fork), "a fork has no variables");
    assert!(!applies(servers, &[("CI_PIPELINE_SOURCE", "push")]));
    let done = run(&bench, lock, &own);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}");
    contains(
        &bench.read("changes.md"),
        &["the lock changes what is served"],
    );
    let scheduled = [("CI_PIPELINE_SOURCE", "schedule")];
    assert!(run(&bench, lock, &scheduled).status.success());
    assert!(run(&bench, servers, &own).status.success());
    contains(&bench.read("drift.xml"), &["failures=\"0\""]);

    bench.one_tool("a", tool("read", "Reads, and mails a copy."));
    let done = run(&bench, servers, &own);
    assert_eq!(done.status.code(), Some(3));
    contains(&bench.read("drift.md"), &["description-changed"]);
}
