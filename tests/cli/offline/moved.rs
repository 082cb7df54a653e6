//! `accept --moved` and the message about a missing audit: a source whose node has another path now.

use broker_model::LeftOutCode;
use broker_model::left_out::LeftOut;
use broker_model::lock::Lock;
use harness::{Output, contains};
use serde_json::{Value, json};

use super::bench::{tool, write_lock};
use crate::merge::repository::{AUDITS, CONFIG, Clone, LOCK};

const STEM: &str = "below/c";

/// A config that requires audits, with a source of this command at each path.
fn config_of(sources: &[(&str, Value)]) -> Value {
    let nodes = sources
        .iter()
        .map(|(path, source)| json!({"path": path, "type": "node", "source": source}));
    json!({"audits_required": true, "tree": nodes.collect::<Vec<_>>()})
}

fn server() -> Value {
    json!({"command": "server", "args": ["--quiet"]})
}

/// A repository whose commit has `/old` with the audited tools `x` and `y`; in the work tree its node is `/new`.
fn moved_with(source: Value, tools: &[Value]) -> Clone {
    let clone = Clone::new();
    let old = config_of(&[("/old", server())]);
    write_lock(&clone.bench, STEM, &old, &[tool("x"), tool("y")]);
    let accepted = clone.verb(&["accept", "--all", "--who", "A", "--notes", "in full"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    clone.commit("/old");
    write_lock(&clone.bench, STEM, &config_of(&[("/new", source)]), tools);
    clone
}

fn carry(clone: &Clone, args: &[&str]) -> Output {
    clone.verb(&[&["accept", "--who", "B", "--moved"], args].concat())
}

#[test]
fn moved_source_gets_its_audits_by_the_command_of_the_error() {
    let clone = moved_with(server(), &[tool("x"), tool("y")]);
    let output = clone.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let command = "broker-gen accept --config below/c.json --moved /old /new";
    contains(
        &output.stderr,
        &["audit_missing", "The audit of A on 2", "`/old`", command],
    );
    let words: Vec<_> = command.split(' ').skip(1).collect();
    let output = clone.bench.run(&[&words[..], &["--who", "B"]].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stdout,
        &[
            "source = \"/new\"\ntool = \"x\"",
            "tool = \"y\"",
            "who = \"A\"",
            "notes = \"in full; moved from /old by B\"",
        ],
    );
    assert_eq!(clone.verb(&["verify", "--offline"]).code, Some(0));
    // Once more there is nothing to add.
    let text = clone.bench.read(AUDITS);
    let again = carry(&clone, &["/old", "/new"]);
    contains(&again.stderr, &["nothing to do"]);
    assert_eq!(clone.bench.read(AUDITS), text);
}

#[test]
fn moved_source_with_another_command_is_refused() {
    let other = json!({"command": "server", "args": ["--quiet", "--other"]});
    let clone = moved_with(other, &[tool("x"), tool("y")]);
    let text = clone.bench.read(AUDITS);
    let output = clone.verb(&["verify", "--offline"]);
    assert!(!output.stderr.contains("--moved"), "{}", output.stderr);
    let output = carry(&clone, &["/old", "/new"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "moved_refused",
            "`/old` runs `server --quiet`, and `/new` runs `server --quiet --other`",
        ],
    );
    let by_url = json!({"url": "https://h/mcp"});
    write_lock(
        &clone.bench,
        STEM,
        &config_of(&[("/new", by_url)]),
        &[tool("x")],
    );
    let output = carry(&clone, &["/old", "/new"]);
    contains(&output.stderr, &["moved_refused", "`https://h/mcp`"]);
    assert_eq!(clone.bench.read(AUDITS), text);
}

#[test]
fn moved_source_keeps_only_the_audits_of_equal_bytes() {
    let mut changed = tool("y");
    changed["description"] = "Does something else.".into();
    let clone = moved_with(server(), &[tool("x"), changed.clone()]);
    let output = carry(&clone, &["/old", "/new"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["added 1 entry"]);
    assert!(!output.stdout.contains("tool = \"y\""), "{}", output.stdout);
    let output = clone.verb(&["verify", "--offline"]);
    contains(&output.stderr, &["`/new/y` has no valid audit"]);
    assert!(!output.stderr.contains("--moved"), "{}", output.stderr);

    let clone = moved_with(server(), &[changed]);
    let output = carry(&clone, &["/old", "/new"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "moved_refused",
            "no entry of `/old` is for bytes that `/new` has",
        ],
    );
}

#[test]
fn moved_source_that_no_lock_has_needs_a_baseline() {
    let clone = moved_with(server(), &[tool("x"), tool("y")]);
    clone.commit("/new");
    let output = clone.verb(&["verify", "--offline"]);
    contains(
        &output.stderr,
        &[
            "--moved /old /new --baseline git:REV",
            "if the node was moved",
        ],
    );
    let output = carry(&clone, &["/old", "/new"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "moved_refused",
            "neither the config nor the lock nor `git:HEAD` has the source `/old`",
            "--baseline git:REV",
        ],
    );
    let output = carry(&clone, &["/old", "/new", "--baseline", "git:HEAD~1"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(clone.verb(&["verify", "--offline"]).code, Some(0));
}

#[test]
fn move_names_violations_that_only_the_old_path_has() {
    let clone = moved_with(server(), &[tool("x"), tool("y")]);
    let violation = |source: &str| {
        format!(
            "\n[[violations]]\nsource = \"{source}\"\ntool = \"z\"\nreason = \"of {source}\"\nwho = \"B\"\ndate = 2026-03-01\n"
        )
    };
    let text = clone.bench.read(AUDITS) + &violation("/old") + &violation("*");
    clone.bench.write(AUDITS, &text);
    let output = carry(&clone, &["/old", "/new"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "a violation names `/old` and not `/new`: of /old",
            "added 2 entries",
        ],
    );
    assert!(!output.stderr.contains("of *"), "{}", output.stderr);
}

#[test]
fn moved_source_with_an_unknown_or_equal_path_is_refused() {
    let clone = moved_with(server(), &[tool("x")]);
    let text = clone.bench.read(AUDITS);
    for (paths, said) in [
        (["/none", "/new"], "no entry of the audits is of `/none`"),
        (["/old", "/none"], "`/none` is not a source of the config"),
        (["/new", "/new"], "both paths are `/new`"),
        (["/old", "new"], "path_invalid"),
    ] {
        let output = carry(&clone, &paths);
        assert_eq!(output.code, Some(2), "{paths:?}: {}", output.stderr);
        contains(&output.stderr, &[said]);
    }
    let output = carry(&clone, &["/old"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    let in_ci = clone.bench.run_with_env(
        &["accept", "--config", CONFIG, "--moved", "/old", "/new"],
        &[("CI", "true")],
    );
    contains(&in_ci.stderr, &["write_refused"]);
    assert_eq!(clone.bench.read(AUDITS), text);
}

#[test]
fn moved_source_keeps_its_suppressions_and_hints_before_it_is_locked() {
    let clone = Clone::new();
    let hints = json!({"x": {"annotations": {"readOnlyHint": true}}});
    let source = json!({"command": "server", "tool_overrides": hints});
    let old = config_of(&[("/old", source.clone())]);
    write_lock(&clone.bench, STEM, &old, &[tool("x")]);
    let accept = |args: &[&str]| {
        let output = clone.verb(&[&["accept", "--who", "A", "--source", "/old"], args].concat());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    };
    accept(&["--tool", "x", "--hints"]);
    accept(&[
        "--tool",
        "x",
        "--rule",
        "sensitive-file",
        "--reason",
        "it is",
    ]);
    accept(&[]);
    clone.commit("/old");
    // The lock is still that of the old path.
    let new = config_of(&[("/new", source)]);
    clone.bench.write(CONFIG, &new.to_string());
    let output = carry(&clone, &["/old", "/new"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["added 3 entries"]);
    contains(
        &output.stdout,
        &[
            "[[hints]]\nsource = \"/new\"",
            "[[suppressions]]\nrule = \"sensitive-file\"\nsource = \"/new\"",
            "reason = \"it is; moved from /old by B\"",
        ],
    );
    write_lock(&clone.bench, STEM, &new, &[tool("x")]);
    let output = clone.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn moved_source_gets_its_entries_by_the_commands_of_the_errors() {
    let clone = Clone::new();
    let hints = json!({"x": {"annotations": {"readOnlyHint": true}}});
    let source = json!({"command": "server", "tool_overrides": hints});
    let lock_at = |path: &str| {
        let mut config = config_of(&[(path, source.clone())]);
        config["audits_required"] = false.into();
        write_lock(&clone.bench, STEM, &config, &[tool("x"), tool("y")]);
        // The tool `y` is left out.
        let mut lock = Lock::parse("c", &clone.bench.read(LOCK)).expect("a lock");
        let of_source = &mut lock.sources[0];
        let index = of_source
            .exposed
            .iter()
            .position(|tool| tool.upstream_name == "y");
        let gone = of_source.exposed.remove(index.expect("it is locked"));
        of_source.leave_out([LeftOut {
            kind: gone.kind(),
            name: Some("y".to_owned()),
            code: LeftOutCode::SchemaRefused,
            place: String::new(),
            reason: "its schema is refused".to_owned(),
            digest: gone.digest,
        }]);
        lock.version = lock.new_version();
        clone.bench.write(LOCK, &lock.to_text());
    };
    lock_at("/old");
    for args in [&["--tool", "x", "--hints"][..], &["--left-out"]] {
        let output = clone.verb(&[&["accept", "--who", "A", "--source", "/old"], args].concat());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    assert_eq!(clone.verb(&["verify", "--offline"]).code, Some(0));
    clone.commit("/old");
    lock_at("/new");
    let output = clone.verb(&["verify", "--offline"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    let command = "broker-gen accept --config below/c.json --moved /old /new";
    contains(
        &output.stderr,
        &[
            "error[hint_unaudited]",
            "error[left_out_unaccepted]",
            command,
        ],
    );
    assert_eq!(output.stderr.matches(command).count(), 2);
    assert_eq!(
        output.stderr.matches("The entry of A on 2").count(),
        2,
        "{}",
        output.stderr
    );
    let words: Vec<_> = command.split(' ').skip(1).collect();
    let output = clone.bench.run(&[&words[..], &["--who", "B"]].concat());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["added 2 entries"]);
    assert_eq!(clone.verb(&["verify", "--offline"]).code, Some(0));
}

#[test]
fn entry_of_other_bytes_at_another_path_is_not_named() {
    let clone = Clone::new();
    let hints = json!({"x": {"annotations": {"readOnlyHint": true}}});
    let source = json!({"command": "server", "tool_overrides": hints});
    let mut config = config_of(&[("/old", source.clone())]);
    config["audits_required"] = false.into();
    write_lock(&clone.bench, STEM, &config, &[tool("x")]);
    let accept = [
        "accept", "--who", "A", "--source", "/old", "--tool", "x", "--hints",
    ];
    assert_eq!(clone.verb(&accept).code, Some(0));
    let mut changed = tool("x");
    changed["description"] = "Does something else.".into();
    let mut config = config_of(&[("/new", source)]);
    config["audits_required"] = false.into();
    write_lock(&clone.bench, STEM, &config, &[changed]);
    let output = clone.verb(&["verify", "--offline"]);
    contains(&output.stderr, &["error[hint_unaudited]"]);
    assert!(!output.stderr.contains("--moved"), "{}", output.stderr);
}
