//! No string of a config, a lock or an audits file controls a terminal in the output of any verb.

use std::fs;

use broker_config::Config;
use broker_model::lock::Lock;
use broker_model::snapshot::Snapshot;
use harness::{Bench, FLOOD, Output, assert_inert, assert_no_commands, flooded, flooded_places};
use serde_json::{Value, json};

use super::baseline::git;
use super::bench::{config, tool};
use super::review::review;

const FORMATS: [&str; 6] = ["human", "json", "sarif", "junit", "github", "markdown"];

fn inert(what: &str, output: &Output) {
    assert_inert(what, &output.stdout);
    assert_inert(what, &output.stderr);
}

fn run(bench: &Bench, args: &[&str]) {
    let output = bench.run(args);
    let what = args.join(" ");
    inert(&what, &output);
    assert_no_commands(&what, &output.stderr);
    // The other formats are read by programs; that of GitHub is commands.
    if !args.contains(&"--format") || args.ends_with(&["human"]) {
        assert_no_commands(&what, &output.stdout);
    }
    let is_json = args.ends_with(&["json"]) || args.ends_with(&["sarif"]);
    if is_json && !output.stdout.is_empty() {
        let read = serde_json::from_str::<Value>(&output.stdout);
        assert!(read.is_ok(), "{args:?}: {}", output.stdout);
    }
    if args.ends_with(&["github"]) {
        let mut commands = output
            .stdout
            .lines()
            .filter(|line| line.trim_start().starts_with("::"));
        let ours = |line: &str| {
            ["error", "warning", "notice"]
                .iter()
                .any(|name| line.starts_with(&format!("::{name} file=")))
        };
        assert!(commands.all(ours), "{args:?}: {}", output.stdout);
    }
    if args.ends_with(&["junit"]) && !output.stdout.is_empty() {
        let read = roxmltree::Document::parse(&output.stdout);
        assert!(read.is_ok(), "{args:?}: {}", output.stdout);
    }
}

fn parse(value: &Value) -> Config {
    let parsed = Config::parse("c.json", value.to_string().as_bytes());
    parsed.expect("the config is valid").config
}

/// A lock with whole digests, of a server that says what `change` makes of its words.
fn lock(bench: &Bench, stem: &str, change: impl Fn(Value) -> Value) {
    let value = config(json!({}));
    let config = parse(&value);
    let mut rich = tool("x");
    rich["title"] = json!("X");
    rich["annotations"] = json!({"title": "X", "readOnlyHint": true});
    rich["inputSchema"] = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"id": {"type": "string", "description": "An id.", "enum": ["a"]}},
    });
    let snapshot = Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: change(json!({"name": "server", "version": "1", "title": "T"})),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: change(json!({"tools": {}, "experimental": {"n": "v"}})),
        instructions: change(json!("Be kind.")).as_str().map(str::to_owned),
        tools: [rich, tool("y")]
            .into_iter()
            .filter_map(|tool| Some(change(tool).as_object()?.clone().into()))
            .collect(),
    };
    let sources = config.sources();
    let lock = Lock {
        version: broker_model::lock::LOCK_VERSION,
        config_digest: config.digest(),
        access_digest: None,
        generator: "broker-gen test".to_owned(),
        sources: sources.map(|source| source.to_locked(&snapshot)).collect(),
        left_out: Vec::new(),
    };
    bench.write(&format!("{stem}.json"), &value.to_string());
    bench.write(&format!("{stem}.lock.json"), &lock.to_text());
}

/// Every verb that starts no server, over the config `c.json` as it is.
fn every_verb(bench: &Bench) {
    for verb in [
        &["verify"][..],
        &["verify", "--format", "json"],
        &["lint", "--strict"],
        &["lint", "--format", "json"],
        &["tree", "--hidden"],
        &["generate", "--out", "generated"],
        &["generate", "--out", "generated", "--check"],
        &["accept", "--all", "--who", "A"],
    ] {
        let args = [&verb[..1], &["--config", "c.json"], &verb[1..]].concat();
        run(bench, &args);
    }
}

#[test]
fn locked_server_texts_reach_no_terminal_unescaped() {
    let bench = Bench::new();
    lock(&bench, "old", |value| value);
    for (names, pointer) in [(false, "/name"), (true, "")] {
        // Members must stay members for the lock to have tools; one place more is flooded at a time.
        let change = |value: Value| {
            let mut all = flooded(&value, false);
            if names && let Some(members) = all.pointer_mut("/inputSchema/properties") {
                *members = flooded(members, true);
            }
            if let Some(place) = all.pointer_mut("/inputSchema/type") {
                *place = json!("object");
            }
            if let (Some(place), Some(name)) = (all.pointer_mut(pointer), value.pointer(pointer))
                && !pointer.is_empty()
            {
                *place = name.clone();
            }
            all
        };
        lock(&bench, "c", change);
        every_verb(&bench);
        for format in FORMATS {
            for locks in [["old", "c"], ["c", "old"]] {
                let [old, new] = locks.map(|stem| format!("{stem}.lock.json"));
                run(&bench, &["diff", &old, &new, "--format", format]);
                let kept = format!("{format}=report");
                run(&bench, &["diff", &old, &new, "--output", &kept]);
                assert_inert(&kept, &bench.read("report"));
            }
        }
        fs::remove_file(bench.path("c.audits.toml")).ok();
    }
}

#[test]
fn review_shows_server_texts_escaped() {
    let bench = Bench::new();
    lock(&bench, "c", |value| value);
    git(&bench, &["init", "-q", "-b", "main"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-qm", "one"]);
    lock(&bench, "c", |value| {
        let mut all = flooded(&value, false);
        if value["name"] == "x" {
            all["name"] = json!("x");
        }
        all
    });
    let answers = "d\na\n".repeat(8);
    let (_, screen) = review(
        &bench,
        &[],
        &answers,
        &[("NO_COLOR", "1"), ("TERM", "dumb")],
    );
    assert!(screen.contains("/a/x"), "{screen}");
    assert_inert("review", &screen);
}

#[test]
fn config_strings_and_names_are_shown_escaped() {
    let bench = Bench::new();
    let whole = json!({
        "$schema": "./config.schema.json",
        "limits": {"body_bytes": 4096},
        "allowed_hosts": ["h"],
        "tree": [{
            "path": "/a", "type": "node", "summary": "S", "description": "D",
            "source": {
                "command": "server ${HOME}", "env": {"A_TOKEN": "t"}, "cwd": ".",
                "tool_filter": ["x", "!z"], "path_aliases": {"x": "ex"}, "volatile": ["/x"],
                "tool_overrides": {"y": {"summary": "Y", "example_args": {"id": 1}}},
            },
        }],
    });
    lock(&bench, "c", |value| value);
    let servers = json!({"mcpServers": {"a": {"command": "s", "args": ["b"], "env": {"K": "v"}}}});
    let foreign = json!({"servers": {"a": {"command": "s"}}});
    for document in [whole, servers, foreign] {
        for variant in flooded_places(&document) {
            bench.write("c.json", &variant.to_string());
            for args in [
                ["verify", "--config", "c.json"],
                ["tree", "--config", "c.json"],
            ] {
                run(&bench, &args);
            }
        }
        bench.write("c.json", &flooded(&document, true).to_string());
        every_verb(&bench);
    }
    let name = format!("new{}", FLOOD.len());
    bench.write("from.json", &flooded(&servers_of(2), true).to_string());
    run(&bench, &["new", &name, "--from", "from.json"]);
    bench.write("c.json", &format!("{{\"a\": {FLOOD}"));
    run(&bench, &["verify", "--config", "c.json"]);
}

fn servers_of(count: usize) -> Value {
    let entries = (0..count).map(|at| {
        (
            format!("s{at}"),
            json!({"command": "s", "env": {"A_KEY": "k"}}),
        )
    });
    json!({"mcpServers": entries.collect::<serde_json::Map<_, _>>()})
}

#[test]
fn lock_strings_and_names_are_shown_escaped() {
    let bench = Bench::new();
    lock(&bench, "c", |value| value);
    lock(&bench, "old", |value| value);
    let document: Value = serde_json::from_str(&bench.read("c.lock.json")).expect("it is JSON");
    for variant in flooded_places(&document) {
        bench.write("c.lock.json", &format!("{variant:#}\n"));
        run(&bench, &["verify", "--config", "c.json"]);
    }
    bench.write("c.lock.json", &format!("{:#}\n", flooded(&document, true)));
    every_verb(&bench);
    run(&bench, &["diff", "old.lock.json", "c.lock.json"]);
    bench.write("c.lock.json", &format!("<<<<<<< {FLOOD}"));
    every_verb(&bench);
}

#[test]
fn audits_strings_are_shown_escaped() {
    let bench = Bench::new();
    lock(&bench, "c", |value| value);
    bench.fine(&[
        "accept", "--config", "c.json", "--all", "--who", "A", "--notes", "n",
    ]);
    let clean = bench.read("c.audits.toml");
    let flood: String = FLOOD
        .chars()
        .map(|c| format!("\\U{:08X}", u32::from(c)))
        .collect();
    let strings = clean.match_indices('"').skip(1).step_by(2);
    for (at, _) in strings {
        let changed = format!("{}{flood}{}", &clean[..at], &clean[at..]);
        bench.write("c.audits.toml", &changed);
        run(&bench, &["verify", "--config", "c.json"]);
    }
    // Names of keys, and bytes that are not TOML.
    for wrong in [
        clean.replacen("who =", &format!("\"who{flood}\" ="), 1),
        format!("{clean}\n{FLOOD}"),
    ] {
        bench.write("c.audits.toml", &wrong);
        every_verb(&bench);
    }
}
