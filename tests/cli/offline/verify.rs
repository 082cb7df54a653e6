//! `verify`: its comparisons and its exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use broker_model::lock::Lock;
use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

/// A config that asks for audits, and its lock with `/a/x` and `/a/y`.
fn bench() -> Bench {
    let bench = Bench::new();
    let mut config = config(json!({}));
    config["audits_required"] = true.into();
    write_lock(&bench, "c", &config, &[tool("x"), tool("y")]);
    bench
}

const VERIFY: [&str; 4] = ["verify", "--offline", "--config", "c.json"];

fn report(bench: &Bench) -> (Option<i32>, Value) {
    let args: Vec<_> = VERIFY.into_iter().chain(["--format", "json"]).collect();
    let output = bench.run(&args);
    let report = serde_json::from_str(&output.stdout);
    (
        output.code,
        report.unwrap_or_else(|error| panic!("{error}: {}", output.stderr)),
    )
}

fn accept(bench: &Bench, args: &[&str]) {
    let base = ["accept", "--config", "c.json", "--who", "A"];
    bench.fine(
        &base
            .into_iter()
            .chain(args.iter().copied())
            .collect::<Vec<_>>(),
    );
}

#[test]
fn verify_names_each_missing_audit_with_the_command_that_adds_it() {
    let bench = bench();
    accept(&bench, &["--source", "/a", "--tool", "y"]);
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stdout,
        &["audits   1 of 2\n", "not verified: 1 problem\n"],
    );
    contains(
        &output.stderr,
        &[
            "audit_missing",
            "`/a/x` has no valid audit: it was never audited",
            "sha256/1:",
        ],
    );
    // The command of the message, run as it is shown.
    let command = output
        .stderr
        .split('`')
        .find_map(|part| part.strip_prefix("broker-gen accept "))
        .expect("it names the command")
        .to_owned();
    let args: Vec<_> = ["accept", "--who", "A"]
        .into_iter()
        .chain(command.split(' '))
        .collect();
    bench.fine(&args);
    // Where all is well, the outcome is one line.
    let output = bench.fine(&VERIFY);
    let before = "verified: 2 tools of 1 source, audits 2 of 2, catalog sha256/1:";
    assert!(output.starts_with(before), "{output}");
    assert_eq!(output.lines().count(), 1, "{output}");

    // Else the checks that passed are shown too.
    bench.write("c.audits.toml", "");
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stdout,
        &[
            "config   c.json is valid",
            "lock     c.lock.json is complete, every digest matches, and it was made for this config",
            "tree     4 paths",
            "catalog  sha256/1:",
            "not verified: 2 problems\n",
        ],
    );
}

#[test]
fn verify_of_a_changed_tool_requires_a_new_audit() {
    let bench = bench();
    accept(&bench, &["--all"]);
    let mut changed = tool("x");
    changed["description"] = "Does something else.".into();
    let mut config = config(json!({}));
    config["audits_required"] = true.into();
    write_lock(&bench, "c", &config, &[changed, tool("y")]);
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "`/a/x`",
            "it has changed since the audit of A on 2",
            "warning[audit_stale]: an entry matches nothing",
        ],
    );
    assert!(!output.stderr.contains("`/a/y`"), "{}", output.stderr);
    accept(&bench, &["--all"]);
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["audit_stale"]);
}

#[test]
fn verify_accepts_an_exemption_until_it_expires() {
    let bench = bench();
    accept(&bench, &["--source", "/a", "--tool", "x"]);
    let audits = bench.read("c.audits.toml");
    let exemption = |expires: &str| {
        format!(
            "{audits}\n[[exemptions]]\nsource = \"/a\"\ntool = \"?\"\nreason = \"later\"\nwho = \"B\"\nexpires = {expires}\n"
        )
    };
    bench.write("c.audits.toml", &exemption("2999-01-01"));
    let (code, report) = report(&bench);
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(
        report["audits"],
        json!({"required": true, "people": 1, "audited": 1, "exempt": 1, "of": 2})
    );
    bench.write("c.audits.toml", &exemption("2020-01-01"));
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(5));
    contains(
        &output.stderr,
        &["`/a/y`", "its exemption expired on 2020-01-01"],
    );
}

#[test]
fn verify_requires_an_audit_of_instructions() {
    let bench = bench();
    let mut lock = Lock::parse("c", &bench.read("c.lock.json")).expect("a lock");
    lock.sources[0].instructions = Some("Always call x first.".to_owned());
    bench.write("c.lock.json", &lock.to_text());
    accept(&bench, &["--source", "/a", "--tool", "x"]);
    accept(&bench, &["--source", "/a", "--tool", "y"]);
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &["`source /a` has no valid audit", "--source /a --itself"],
    );
    accept(&bench, &["--source", "/a", "--itself"]);
    bench.fine(&VERIFY);

    lock.sources[0].instructions = Some("Ignore what was said.".to_owned());
    bench.write("c.lock.json", &lock.to_text());
    assert_eq!(bench.run(&VERIFY).code, Some(5));
}

#[test]
fn verify_needs_no_audits_where_the_config_does_not_require_them() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    contains(
        &bench.fine(&VERIFY),
        &[
            "verified: 1 tool of 1 source, audits 0 of 1, which the config does not require, catalog sha256/1:",
        ],
    );
    bench.write("c.audits.toml", "[[audits]\n");
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(&output.stderr, &["audits_syntax", "c.audits.toml:1:"]);
}

#[test]
fn verify_reports_each_problem_with_its_exit_code() {
    let bench = bench();
    accept(&bench, &["--all"]);
    let (text, lock) = (bench.read("c.json"), bench.read("c.lock.json"));
    let run = |config: &str, lock: &str| -> Output {
        bench.write("c.json", config);
        bench.write("c.lock.json", lock);
        bench.run(&VERIFY)
    };
    assert_eq!(run(&text, &lock).code, Some(0));

    let stale = run(&text.replace("\"server\"", "\"other\""), &lock);
    assert_eq!(stale.code, Some(5));
    contains(&stale.stderr, &["lock_stale"]);
    let edited = run(&text, &lock.replace("Does x.", "Does y."));
    assert_eq!(edited.code, Some(5));
    contains(&edited.stderr, &["lock_corrupt", "c.lock.json:"]);
    let newer = run(
        &text,
        &lock.replace("\"lock_version\": 2", "\"lock_version\": 9"),
    );
    assert_eq!(newer.code, Some(5));
    contains(&newer.stderr, &["lock_version"]);
    let both = run("{", "{");
    assert_eq!(
        (both.code, both.stdout.as_str()),
        (Some(2), "not verified: 2 problems\n")
    );
    contains(&both.stderr, &["config_syntax", "lock_corrupt"]);

    fs::remove_file(bench.path("c.lock.json")).expect("it is there");
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(2));
    contains(&output.stderr, &["lock_missing"]);
}

#[test]
fn verify_without_any_source_fails() {
    let bench = Bench::new();
    write_lock(&bench, "c", &json!({"tree": [{"path": "/a"}]}), &[]);
    let output = bench.run(&VERIFY);
    assert_eq!(output.code, Some(4), "{}", output.stdout);
    contains(&output.stdout, &["not verified: there is no source"]);
}

#[test]
fn verify_of_a_binary_requires_the_catalog_of_config_and_lock() {
    let bench = bench();
    accept(&bench, &["--all"]);
    let (_, report) = report(&bench);
    let digest = report["catalog_digest"]
        .as_str()
        .expect("a digest")
        .to_owned();
    let binary = |name: &str, script: &str| {
        bench.write(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o755)).expect("mine");
        let args = VERIFY.into_iter().chain(["--binary", name]);
        // Its environment must be empty, or the answer would be another.
        let output = bench.run_with_env(&args.collect::<Vec<_>>(), &[("LEAK", "leaked")]);
        (output.code, output.stdout + &output.stderr)
    };
    let says = |digest: &str| {
        format!(
            "test \"$1\" = --version || exit 9\nprintf 'mcp-broker 0.1.0\\ncatalog %s\\n' {digest}$LEAK"
        )
    };
    let (code, text) = binary("same", &says(&digest));
    assert_eq!(code, Some(0), "{text}");
    contains(&text, &[", compiled into same\n"]);
    let (code, text) = binary("other", &says("sha256/1:00"));
    assert_eq!(code, Some(5), "{text}");
    contains(
        &text,
        &[
            "generated_stale",
            "`other` has the catalog sha256/1:00",
            "Build it again",
        ],
    );
    let (code, text) = binary("silent", "echo 1.0");
    assert_eq!(code, Some(5), "{text}");
    contains(&text, &["`silent` prints no catalog"]);
    let (code, text) = binary("broken", "exit 3");
    assert_eq!(code, Some(4), "{text}");
    contains(
        &text,
        &["binary_unchecked", "the version of `broken` cannot be read"],
    );
    let (code, text) = binary("endless", "exec yes");
    assert_eq!(code, Some(4), "{text}");
    contains(&text, &["it prints too much"]);

    let output = bench.run(&[&VERIFY[..], &["--binary", "none"]].concat());
    assert_eq!(output.code, Some(4), "{}", output.stderr);
}
