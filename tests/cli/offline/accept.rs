//! `accept`: the audits that it adds, and the cases in which it adds none.

use std::process::Stdio;

use harness::{Bench, contains};
use serde_json::json;

use super::bench::{config, tool, write_lock};

/// A folder with a lock of `/a/x` and `/a/y`, `y` also hidden under `z`.
fn bench() -> Bench {
    let bench = Bench::new();
    let config = config(json!({"tool_filter": ["!z"], "path_aliases": {"y": "why"}}));
    write_lock(&bench, "c", &config, &[tool("x"), tool("y"), tool("z")]);
    bench
}

const WHO: [&str; 4] = ["--config", "c.json", "--who", "A. Reviewer <a@example.org>"];

fn accept<'a>(args: &[&'a str]) -> Vec<&'a str> {
    ["accept"]
        .into_iter()
        .chain(WHO)
        .chain(args.iter().copied())
        .collect()
}

#[test]
fn accept_adds_only_missing_audits() {
    let bench = bench();
    let one = accept(&[
        "--source",
        "/a",
        "--tool",
        "x",
        "--looked-at",
        "description,inputSchema",
        "--notes",
        "read \"in\" full",
        "--expires",
        "2999-12-31",
    ]);
    let added = bench.fine(&one);
    contains(
        &added,
        &[
            "[[audits]]\nsource = \"/a\"\ntool = \"x\"\ndigest = \"sha256/1:",
            "criteria = \"safe-to-expose\"\nwho = \"A. Reviewer <a@example.org>\"\ndate = \"2",
            "looked_at = [\"description\", \"inputSchema\"]\nnotes = \"read \\\"in\\\" full\"\nexpires = \"2999-12-31\"\n",
        ],
    );
    let first = bench.read("c.audits.toml");
    assert!(first.ends_with(&added), "{first}");

    let output = bench.run(&accept(&["--all"]));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &["added 1 entry to c.audits.toml: commit it"],
    );
    contains(&output.stdout, &["tool = \"y\""]);
    let second = bench.read("c.audits.toml");
    assert!(
        second.starts_with(&first) && second.ends_with(&output.stdout),
        "{second}"
    );

    for args in [
        &["--all"][..],
        &["--source", "/a"],
        &["--source", "/a", "--tool", "y"],
    ] {
        let output = bench.run(&accept(args));
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), ""),
            "{args:?}"
        );
        contains(&output.stderr, &["nothing to do"]);
    }
    assert_eq!(bench.read("c.audits.toml"), second);
}

#[test]
fn accept_of_a_lint_finding_adds_one_suppression() {
    let bench = bench();
    let args = accept(&[
        "--source",
        "/a",
        "--tool",
        "x",
        "--rule",
        "sensitive-file",
        "--reason",
        "an emoji",
    ]);
    contains(
        &bench.fine(&args),
        &[
            "[[suppressions]]\nrule = \"sensitive-file\"\nsource = \"/a\"\ntool = \"x\"\ndigest = \"sha256/1:",
            "reason = \"an emoji\"\nwho = \"A. ",
        ],
    );
    let text = bench.read("c.audits.toml");
    contains(&bench.run(&args).stderr, &["nothing to do"]);
    assert_eq!(bench.read("c.audits.toml"), text);
}

#[test]
fn accept_with_wrong_arguments_is_refused_and_writes_nothing() {
    let bench = bench();
    for (args, said) in [
        (&[][..], "required"),
        (&["--tool", "x"], "--source"),
        (&["--all", "--source", "/a"], "cannot be used with"),
        (&["--source", "/b"], "The sources are `/a`"),
        (&["--source", "/a", "--tool", "xx"], "did you mean `x`?"),
        (
            &["--source", "/a", "--tool", "why"],
            "the server calls it `y`",
        ),
        (
            &["--source", "/a", "--tool", "z"],
            "It is hidden, so it needs",
        ),
        (&["--all", "--expires", "2020-01-01"], "is in the past"),
        (&["--all", "--expires", "2020-02-30"], "a day that exists"),
        (&["--all", "--notes", " "], "`--notes` is empty"),
        (&["--source", "/a", "--rule", "r"], "--reason"),
        (
            &["--source", "/a", "--rule", "No Rule", "--reason", "r"],
            "is not a rule of the lint",
        ),
        (
            &["--source", "/a", "--rule", "same-names", "--reason", "r"],
            "Did you mean `same-name`?",
        ),
        (
            &["--all", "--rule", "r", "--reason", "r", "--notes", "n"],
            "cannot be used with",
        ),
    ] {
        let output = bench.run(&accept(args));
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        contains(&output.stderr, &[said]);
    }
    assert!(!bench.path("c.audits.toml").exists());
}

#[test]
fn accept_and_review_on_a_ci_machine_are_refused() {
    let bench = bench();
    for (name, value) in [("CI", "true"), ("MCP_BROKER_LOCKED", "1")] {
        for verb in ["accept", "review"] {
            let mut args = accept(&["--all"]);
            args[0] = verb;
            args.truncate(if verb == "review" { 5 } else { args.len() });
            let output = bench.run_with_env(&args, &[(name, value)]);
            assert_eq!(output.code, Some(2), "{verb}: {}", output.stderr);
            let reason = format!("`{name}` is set, so nothing is written; `{name}=");
            contains(
                &output.stderr,
                &["write_refused", verb, &reason, "own machine"],
            );
        }
    }
    assert!(!bench.path("c.audits.toml").exists());
}

#[test]
fn accept_takes_the_reviewer_from_option_variable_or_git() {
    let bench = bench();
    let tool = |name: &'static str| {
        [
            "accept", "--config", "c.json", "--source", "/a", "--tool", name,
        ]
    };
    let output = bench.run(&tool("x"));
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &["who_missing", "--who NAME", "MCP_BROKER_WHO"],
    );
    assert!(!bench.path("c.audits.toml").exists());

    let output = bench.run_with_env(&tool("x"), &[("MCP_BROKER_WHO", "V")]);
    contains(&output.stdout, &["who = \"V\""]);

    bench.write("gitconfig", "[user]\n\tname = G\n\temail = g@example.org\n");
    let file = bench.path("gitconfig");
    let file = file.to_str().expect("a name");
    let output = bench.run_with_env(&tool("y"), &[("GIT_CONFIG_GLOBAL", file)]);
    contains(&output.stdout, &["who = \"G <g@example.org>\""]);
}

#[test]
fn accept_with_invalid_audits_keeps_the_file() {
    let bench = bench();
    bench.write("c.audits.toml", "[[audits]]\nwhy = 1\n");
    let output = bench.run(&accept(&["--all"]));
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "c.audits.toml:2:1",
            "`why`, expected one of `source`",
            "did you mean `who`?",
        ],
    );
    assert_eq!(bench.read("c.audits.toml"), "[[audits]]\nwhy = 1\n");
}

#[test]
fn accept_run_concurrently_writes_every_audit() {
    let bench = Bench::new();
    let names: Vec<String> = (0..8).map(|index| format!("t{index}")).collect();
    let tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
    write_lock(&bench, "c", &config(json!({})), &tools);
    let start = |name: &String| {
        let mut command = bench.command();
        command.args(accept(&["--source", "/a", "--tool", name]));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("broker-gen starts")
    };
    let children: Vec<_> = names.iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let text = bench.read("c.audits.toml");
    for name in &names {
        contains(&text, &[&format!("tool = \"{name}\"")]);
    }
}
