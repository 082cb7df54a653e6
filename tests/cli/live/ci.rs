//! `docs/ci.md`: the script for any CI, run as the page shows it. `recipes` runs the other blocks of the page.

use std::fs;
use std::process::{Command, Output};

use harness::{Bench, binary, contains};
use serde_json::json;

use super::bench::tool;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/ci.md");

/// The script of the page, about the bench's config.
fn script() -> String {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let (_, section) = page.split_once("\n## Any other CI\n").expect("the section");
    let (_, rest) = section
        .split_once("\n```sh\n")
        .expect("the section has the script");
    let (block, _) = rest.split_once("\n```").expect("the block ends");
    block.replace("config.json", "c.json")
}

/// Runs a line or a script by the shell, as a CI does, in the folder of the bench.
fn shell(bench: &Bench, script: &str) -> Output {
    #[expect(
        clippy::disallowed_methods,
        reason = "the page's script is for a shell"
    )]
    let mut command = Command::new("/bin/sh");
    let beside = binary("broker-gen");
    let beside = beside.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .args(["-c", script])
        .current_dir(bench.path(""))
        .env("PATH", format!("{beside}:{path}"))
        .env("CI", "true")
        .env("BASE", "HEAD")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("MCP_BROKER_CONFIG")
        .output()
        .expect("a shell runs")
}

#[track_caller]
fn ends(bench: &Bench, script: &str, code: i32) -> String {
    let output = shell(bench, script);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(code), "{script}:\n{text}");
    text
}

/// A locked source in a repository whose last commit has the lock.
fn repository() -> Bench {
    let bench = Bench::with_sources(&["a"]);
    bench.one_tool("a", tool("x"));
    bench.lock();
    ends(
        &bench,
        "git init -q . && git add . && git -c user.name=N -c user.email=n@example.org commit -q -m lock",
        0,
    );
    bench
}

#[test]
fn ci_script_passes_reports_drift_and_accepts_a_reviewed_change() {
    let (bench, script) = (repository(), script());
    ends(&bench, &script, 0);
    let read = |name: &str| fs::read_to_string(bench.path(name)).expect(name);
    contains(&read("drift.xml"), &["failures=\"0\"", "name=\"x\""]);
    contains(&read("changes.md"), &["no failures"]);

    let mut asking = tool("x");
    asking["inputSchema"] = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
    bench.one_tool("a", asking);
    let output = ends(&bench, &script, 3);
    contains(
        &output,
        &[
            "input-required-added",
            "`broker-gen lock --config c.json --source /a --tool x`",
        ],
    );
    contains(
        &read("drift.sarif"),
        &["\"ruleId\": \"input-required-added\""],
    );

    // The command of the output, run outside of CI: the servers match again, and the reviewer is informed.
    ends(
        &bench,
        "CI= broker-gen lock --config c.json --source /a --tool x",
        0,
    );
    ends(&bench, &script, 0);
    contains(
        &read("changes.md"),
        &["the lock changes what is served", "| **breaking** |"],
    );

    // A server that fails is not drift, and does not hide earlier findings.
    bench.script("a", &json!({"start_exit": 9}));
    ends(&bench, &script, 4);
    bench.write("c.lock.json", "{}");
    ends(&bench, &script, 5);
}
