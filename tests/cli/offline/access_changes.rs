//! Who gains or loses what by a changed lock: `diff` with the rules of access of a config.

use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use broker_model::lock::{LOCK_VERSION, PARTIAL_LOCK_VERSION};

use super::bench::{config, tool, write_lock, write_lock_of_version};

const DIFF: [&str; 3] = ["diff", "old.lock.json", "new.lock.json"];

fn access() -> Value {
    json!({"groups": ["reader", "deployer", "admin"], "rules": [
        {"allow": ["/a/get_*"], "to": ["reader"]},
        {"allow": ["/a/**"], "to": ["deployer"], "where": {"readOnlyHint": true}},
        {"allow": ["/a/**"], "to": ["admin"]},
    ]})
}

/// Locks of these tools, with the section `access` in both configs.
fn bench(access: &Value, old: &[Value], new: &[Value]) -> Bench {
    let bench = Bench::new();
    let mut config = config(json!({}));
    config["access"] = access.clone();
    write_lock(&bench, "old", &config, old);
    write_lock(&bench, "new", &config, new);
    bench
}

fn read_only(name: &str, value: bool) -> Value {
    let mut tool = tool(name);
    tool["annotations"] = json!({"readOnlyHint": value});
    tool
}

fn json_report(bench: &Bench) -> Value {
    let output = bench.run(&[&DIFF[..], &["--format", "json"]].concat());
    serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", output.stderr))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn diff_names_who_gains_and_loses_what_by_which_rule() {
    let bench = bench(
        &access(),
        &[tool("get_old"), read_only("log", true), tool("same")],
        &[tool("get_new"), read_only("log", false), tool("same")],
    );
    let Output {
        code,
        stdout,
        stderr,
    } = bench.run(&DIFF);
    assert_eq!(code, Some(3), "{stderr}");
    contains(
        &words(&stdout),
        &[
            "group `reader` gains /a/get_new by access.rules[0]",
            "group `admin` gains /a/get_new by access.rules[2]",
            "group `reader` loses /a/get_old: it is gone, and access.rules[0] allowed it",
            "group `deployer` loses /a/log, since access.rules[1] no longer allows it; `readOnlyHint` went from true to false",
            "error[access-widened] callers may use more than before: ",
        ],
    );
    assert!(!stdout.contains("/a/same"), "{stdout}");
    let report = json_report(&bench);
    let lost = json!({
        "source": "/a", "path": "/a/log", "change": "lost", "groups": ["deployer"], "together": false,
        "cause": "no_longer_allowed", "rules": ["/access/rules/1"],
        "hints": [{"hint": "readOnlyHint", "old": true, "new": false}],
    });
    let changes = report["access"].as_array().expect("a list");
    assert_eq!(changes.len(), 5, "{changes:#?}");
    assert!(changes.contains(&lost), "{changes:#?}");
    for format in ["markdown", "sarif", "junit", "github"] {
        let output = bench.run(&[&DIFF[..], &["--format", format]].concat());
        contains(&output.stdout, &["access-widened"]);
        assert_eq!(output.code, Some(3), "{format}");
    }
}

#[test]
fn diff_of_a_tool_that_a_glob_newly_admits_fails_like_that_of_a_widened_filter() {
    let bench = bench(&access(), &[tool("get_a")], &[tool("get_a"), tool("get_b")]);
    let report = json_report(&bench);
    let finding = &report["sources"][0]["findings"][0];
    assert_eq!(
        [&finding["rule"], &finding["class"], &finding["severity"]],
        ["access-widened", "unknown", "error"]
    );
    assert_eq!(bench.run(&DIFF).code, Some(3));
    // The same tools give no finding.
    assert_eq!(
        bench.run(&["diff", "new.lock.json", "new.lock.json"]).code,
        Some(0)
    );
}

#[test]
fn diff_without_access_is_unchanged() {
    let bench = Bench::new();
    write_lock(&bench, "old", &config(json!({})), &[tool("x")]);
    write_lock(&bench, "new", &config(json!({})), &[tool("x"), tool("y")]);
    let output = bench.run(&DIFF);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(!output.stdout.contains("access"), "{}", output.stdout);
    assert!(json_report(&bench).get("access").is_none());
}

#[test]
fn diff_applies_the_rules_of_the_config_that_it_names() {
    let bench = bench(&access(), &[tool("get_a")], &[tool("get_a"), tool("get_b")]);
    let mut other = config(json!({}));
    other["access"] = json!({"groups": ["one"], "rules": [{"allow": ["/**"], "to": ["one"]}]});
    bench.write("other.json", &other.to_string());
    let output = bench.run(&[&DIFF[..], &["--config", "other.json"]].concat());
    contains(
        &output.stdout,
        &["group `one` gains /a/get_b by access.rules[0]"],
    );
    let output = bench.run(&[&DIFF[..], &["--config", "none.json"]].concat());
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    // A broken config beside the lock does not prevent the comparison.
    bench.write("new.json", "{");
    let output = bench.run(&DIFF);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["warning[config_"]);
}

#[test]
fn diff_of_many_groups_and_tools_is_short_in_text_and_complete_in_json() {
    let groups: Vec<String> = (0..64).map(|at| format!("g{at}")).collect();
    let rules: Vec<Value> = (0..64)
        .map(|at| json!({"allow": ["/a/**"], "to": [format!("g{at}")]}))
        .collect();
    let access = json!({"groups": groups, "rules": rules});
    let tools: Vec<Value> = (0..2000).map(|at| tool(&format!("t{at}"))).collect();
    let bench = bench(&access, &tools[..1], &tools);
    let output = bench.run(&DIFF);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(
        output.stdout.lines().count() < 200,
        "{}",
        output.stdout.len()
    );
    contains(&output.stdout, &["… and 127896 more\n"]);
    let changes = json_report(&bench)["access"].as_array().map(Vec::len);
    assert_eq!(changes, Some(1999 * 64));
}

#[test]
fn diff_names_a_change_of_the_rules_that_both_locks_record() {
    let bench = Bench::new();
    let write = |stem: &str, rules: Option<Value>, version: u64| {
        let mut config = config(json!({}));
        if let Some(rules) = rules {
            config["access"] = rules;
        }
        write_lock_of_version(version, &bench, stem, &config, &[tool("get_x")]);
    };
    let mut other = access();
    other["rules"][0]["to"] = json!(["admin"]);
    write("old", Some(access()), PARTIAL_LOCK_VERSION);
    for (rules, version, said) in [
        (Some(access()), PARTIAL_LOCK_VERSION, None),
        (
            Some(other),
            PARTIAL_LOCK_VERSION,
            Some("the section `access` of the config has changed"),
        ),
        (
            None,
            LOCK_VERSION,
            Some("the section `access` of the config was removed, or the new lock"),
        ),
    ] {
        write("new", rules, version);
        let Output {
            code,
            stdout,
            stderr,
        } = bench.run(&DIFF);
        assert_eq!(code, Some(if said.is_some() { 3 } else { 0 }), "{stderr}");
        match said {
            Some(said) => contains(
                &words(&stdout),
                &["unknown: rules of access", "error[access-changed] ", said],
            ),
            None => assert!(!stdout.contains("access-changed"), "{stdout}"),
        }
    }
    let report = json_report(&bench);
    let found = &report["sources"][0];
    assert_eq!(
        (&found["source"], &found["findings"][0]["rule"]),
        (&json!("/"), &json!("access-changed")),
        "{report}"
    );
    // A lock of version 2 says nothing of rules.
    write("old", Some(access()), LOCK_VERSION);
    let output = bench.run(&DIFF);
    assert!(
        !output.stdout.contains("access-changed"),
        "{}",
        output.stdout
    );
}
