//! The workflows for GitHub.

use std::collections::BTreeMap;
use std::fs;

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::page::{block, commit, config, repository, tool};
use super::runner::{Job, Runner, git};

/// The context of a pull request.
fn pull_request(bench: &Bench, actor: &str, repository: &str) -> Value {
    let folder = bench.path("");
    json!({
        "event_name": "pull_request", "actor": actor, "repository": "o/r", "token": "t",
        "sha": git(&folder, &["rev-parse", "HEAD"]), "ref_name": "branch",
        "event": {"number": "7", "pull_request": {
            "base": {"sha": git(&folder, &["rev-parse", "main"])},
            "head": {"repo": {"full_name": repository}},
        }},
    })
}

/// Runs the checks of a pull request; the runner, and the jobs.
fn run_checks(
    bench: &Bench,
    actor: &str,
    from: &str,
    secrets: Value,
) -> (Runner, BTreeMap<String, Job>) {
    let runner = Runner::new(&bench.path(""), pull_request(bench, actor, from), secrets);
    let jobs = runner.run(&block("Pull requests on GitHub", "yaml"));
    (runner, jobs)
}

fn results(jobs: &BTreeMap<String, Job>) -> Vec<(&str, &str)> {
    let results = jobs.iter().map(|(name, job)| (name.as_str(), job.result));
    results.collect()
}

/// Ada accepts the tool of the lock.
fn accept(bench: &Bench) {
    let who = ["accept", "--config", "config.json", "--who", "Ada"];
    bench.fine(&[who.as_slice(), &["--source", "/a", "--tool", "read"]].concat());
}

/// A repository on a branch of `main`.
fn on_branch() -> Bench {
    let bench = repository();
    git(&bench.path(""), &["switch", "-q", "-c", "branch"]);
    bench
}

#[test]
fn pull_request_of_a_person_is_green_with_the_changes_in_a_comment() {
    let bench = on_branch();
    bench.one_tool("a", tool("read", "Reads a file."));
    bench.fine(&["lock", "--config", "config.json"]);
    commit(&bench, "another text");
    let (runner, jobs) = run_checks(&bench, "ada", "o/r", json!({}));
    assert_eq!(
        results(&jobs),
        [
            ("comment", "success"),
            ("lock", "success"),
            ("servers", "success")
        ],
        "{jobs:#?}"
    );
    let comment = runner.comment().expect("a comment");
    contains(
        &comment,
        &["the lock changes what is served", "| text |", "no failures"],
    );
    contains(&runner.noted(), &["gh pr comment 7 --body-file comment.md"]);
    // The annotation of the change is in the log as a command of the runner.
    let commands = &jobs["lock"].commands;
    assert!(
        commands
            .iter()
            .any(|(name, text)| name == "warning" && text.contains("description")),
        "{commands:?}"
    );
    assert_eq!(jobs["servers"].sarif.len(), 1);
    contains(&jobs["servers"].summary, &["no failures"]);
}

#[test]
fn pull_request_of_a_bot_that_raises_a_version_shows_the_changes_of_the_tools() {
    let bench = on_branch();
    let tools = json!([
        tool("read", "Reads."),
        tool("write", "Writes, and mails a copy.")
    ]);
    bench.script("b", &json!({"tools": tools}));
    bench.write("config.json", &config("b.json").to_string());
    commit(&bench, "raise the version");
    let (runner, jobs) = run_checks(&bench, "renovate[bot]", "o/r", json!({"API_TOKEN": "x"}));
    assert_eq!(
        results(&jobs),
        [
            ("comment", "success"),
            ("lock", "failure"),
            ("servers", "failure")
        ],
        "{jobs:#?}"
    );
    contains(&jobs["lock"].log, &["lock_stale"]);
    let comment = runner.comment().expect("a comment");
    contains(
        &comment,
        &["source-config-changed", "/a/write", "tool-added"],
    );

    // The person who accepts writes the lock on the branch.
    bench.fine(&["lock", "--config", "config.json"]);
    commit(&bench, "lock it");
    let (_, jobs) = run_checks(&bench, "ada", "o/r", json!({}));
    assert!(
        jobs.values().all(|job| job.result == "success"),
        "{jobs:#?}"
    );
}

#[test]
fn pull_requests_without_secrets_run_only_the_check_of_the_lock() {
    let bench = on_branch();
    commit_a_note(&bench);
    for (actor, from) in [("dependabot[bot]", "o/r"), ("mallory", "mallory/r")] {
        let (runner, jobs) = run_checks(&bench, actor, from, json!({}));
        assert_eq!(
            results(&jobs),
            [
                ("comment", "skipped"),
                ("lock", "success"),
                ("servers", "skipped")
            ],
            "{actor}: {jobs:#?}"
        );
        assert_eq!(runner.comment(), None);
        assert!(!runner.noted().contains("gh "), "{}", runner.noted());
    }
}

#[test]
fn scheduled_lock_opens_a_pull_request_that_is_red_until_a_person_accepts() {
    let bench = repository();
    let mut document = config("a.json");
    document["audits_required"] = true.into();
    bench.write("config.json", &document.to_string());
    accept(&bench);
    commit(&bench, "audits");
    let run = || {
        let folder = bench.path("");
        let github = json!({"event_name": "schedule", "actor": "ada", "repository": "o/r", "token": "t",
            "sha": git(&folder, &["rev-parse", "main"]), "ref_name": "main"});
        let runner = Runner::new(&folder, github, json!({"API_TOKEN": "x"}));
        let jobs = runner.run(&block("A scheduled lock", "yaml"));
        assert_eq!(results(&jobs), [("lock", "success")], "{jobs:#?}");
        runner.noted()
    };
    // Nothing changed, so there is nothing to open.
    assert!(!run().contains("gh "));
    bench.one_tool("a", tool("read", "Reads, and mails a copy."));
    commit(&bench, "the server changed");
    let noted = run();
    contains(
        &noted,
        &[
            "gh pr create --head mcp-lock --base main",
            "gh workflow run mcp.yml --ref mcp-lock",
        ],
    );

    // The checks of the branch, as they are started by name: red until a person accepts.
    let folder = bench.path("");
    git(&folder, &["switch", "-q", "mcp-lock"]);
    let checks = || {
        let mut github = pull_request(&bench, "ada", "o/r");
        github["event_name"] = "workflow_dispatch".into();
        let runner = Runner::new(&folder, github, json!({"API_TOKEN": "x"}));
        runner.run(&block("Pull requests on GitHub", "yaml"))
    };
    let jobs = checks();
    assert_eq!(
        results(&jobs),
        [
            ("comment", "skipped"),
            ("lock", "failure"),
            ("servers", "success")
        ],
        "{jobs:#?}"
    );
    contains(&jobs["lock"].log, &["audit_missing"]);
    accept(&bench);
    commit(&bench, "accepted");
    let jobs = checks();
    assert_eq!(jobs["lock"].result, "success", "{jobs:#?}");
}

#[test]
fn several_locks_have_their_own_reports_and_alerts() {
    let bench = repository();
    let folder = bench.path("");
    for name in ["a", "b"] {
        let service = format!("services/{name}");
        fs::create_dir_all(bench.path(&service)).expect("a folder");
        bench.write(
            &format!("{service}/config.json"),
            &config("s.json").to_string(),
        );
        let script = json!({"tools": [tool("read", "Reads.")]});
        bench.write(&format!("{service}/s.json"), &script.to_string());
        bench.fine(&["lock", "--config", &format!("{service}/config.json")]);
    }
    commit(&bench, "two services");
    git(&folder, &["switch", "-q", "-c", "branch"]);
    for name in ["a", "b"] {
        let script = json!({"tools": [tool("read", "Reads more.")]});
        bench.write(&format!("services/{name}/s.json"), &script.to_string());
        bench.fine(&["lock", "--config", &format!("services/{name}/config.json")]);
    }
    commit(&bench, "both changed");
    let runner = Runner::new(&folder, pull_request(&bench, "ada", "o/r"), json!({}));
    let jobs = runner.run(&block("Several locks in one repository", "yaml"));
    let mut seen = Vec::new();
    for name in ["a", "b"] {
        let job = &jobs[&format!("lock services/{name}")];
        assert_eq!(job.result, "success", "{job:#?}");
        let [(category, document)] = job.sarif.as_slice() else {
            panic!("{job:#?}")
        };
        assert_eq!(*category, format!("mcp-services/{name}"));
        let result = &document["runs"][0]["results"][0];
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(*place, format!("services/{name}/config.lock.json"));
        seen.push(result["partialFingerprints"]["primaryLocationLineHash"].clone());
    }
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn new_crate_has_the_workflows_of_the_page() {
    let bench = Bench::new();
    bench.write(
        "from.json",
        &json!({"mcpServers": {"r": {
        "url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer ${API_TOKEN}"}}}})
        .to_string(),
    );
    bench.fine(&[
        "new",
        "own",
        "--from",
        "from.json",
        "--broker",
        "https://git.example/broker",
        "--no-git",
    ]);
    for (file, heading, language) in [
        (
            ".github/workflows/mcp.yml",
            "Pull requests on GitHub",
            "yaml",
        ),
        (".github/workflows/mcp-lock.yml", "A scheduled lock", "yaml"),
        (".gitlab-ci.yml", "GitLab", "yaml"),
        (".githooks/pre-commit", "A hook before a commit", "sh"),
    ] {
        let lines = bench.read(&format!("own/{file}"));
        let lines = lines
            .lines()
            .map(|line| match line.split_once("cargo install ") {
                Some((before, _)) => format!("{before}cargo install --locked --path broker-gen\n"),
                None => format!("{line}\n"),
            });
        assert_eq!(
            lines.collect::<String>(),
            block(heading, language),
            "{file}"
        );
    }
}

fn commit_a_note(bench: &Bench) {
    bench.write("note.txt", "a note\n");
    commit(bench, "a note");
}
