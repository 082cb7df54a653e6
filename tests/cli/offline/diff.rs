//! `diff`: the changes between two locks, and the exit code.

use harness::{Bench, Output, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock, write_lock_of_version};

/// Locks both, and gives the report of `diff` with its exit code.
fn diff(old: (Value, &[Value]), new: (Value, &[Value])) -> (Option<i32>, Value) {
    let bench = Bench::new();
    write_lock(&bench, "old", &config(old.0), old.1);
    write_lock(&bench, "new", &config(new.0), new.1);
    let Output {
        code,
        stdout,
        stderr,
    } = bench.run(&["diff", "old.lock.json", "new.lock.json", "--format", "json"]);
    assert!(!stderr.contains("config: "), "it reads no config: {stderr}");
    let report = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    (code, report)
}

fn one(report: &Value) -> (&str, &str, &str) {
    let tools = report["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), 1, "{report:#}");
    let text = |value: &'static str| {
        tools[0]
            .pointer(value)
            .and_then(Value::as_str)
            .expect(value)
    };
    (text("/class"), text("/findings/0/rule"), text("/path"))
}

#[test]
fn diff_of_equal_locks_is_empty() {
    let tools = [tool("x"), tool("y")];
    let (code, report) = diff((json!({}), &tools), (json!({}), &tools));
    assert_eq!((code, &report["summary"]["same"]), (Some(0), &json!(2)));
    assert_eq!(
        (&report["tools"], &report["sources"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn diff_reports_changed_removed_and_added_tools() {
    let mut changed = tool("x");
    changed["description"] = "Does something else.".into();
    let (code, report) = diff((json!({}), &[tool("x")]), (json!({}), &[changed]));
    let (_, rule, path) = one(&report);
    assert_eq!((code, rule, path), (Some(3), "description-changed", "/a/x"));
    assert!(
        !report.to_string().contains("broker-gen lock --source"),
        "{report:#}"
    );

    let (code, report) = diff(
        (json!({}), &[tool("x"), tool("y")]),
        (json!({}), &[tool("y")]),
    );
    assert_eq!(
        (code, one(&report)),
        (Some(3), ("gone", "tool-gone", "/a/x"))
    );
    assert_eq!(report["summary"]["same"], 1);

    let (code, report) = diff(
        (json!({}), &[tool("x")]),
        (json!({}), &[tool("x"), tool("y")]),
    );
    assert_eq!(
        (code, one(&report)),
        (Some(0), ("added", "tool-added", "/a/y"))
    );
    let message = &report["tools"][0]["findings"][0]["message"];
    assert_eq!(
        message,
        "the new lock exposes `y`, which the old one does not have"
    );
}

#[test]
fn diff_names_the_path_of_an_added_tool_with_an_alias() {
    let alias = |of: &str| json!({"path_aliases": {of: "z"}});
    let (_, report) = diff(
        (alias("x"), &[tool("x")]),
        (alias("y"), &[tool("x"), tool("y")]),
    );
    let tools = report["tools"].as_array().expect("a list").iter();
    let paths: Vec<_> = tools.map(|tool| (&tool["class"], &tool["path"])).collect();
    assert!(
        paths.contains(&(&json!("added"), &json!("/a/z"))),
        "{paths:?}"
    );
}

#[test]
fn diff_reports_hidden_and_exposed_tools_of_a_filter() {
    let tools = [tool("x"), tool("y")];
    let hides = json!({"tool_filter": ["!y"]});
    let (code, report) = diff((json!({}), &tools), (hides.clone(), &tools));
    assert_eq!(
        (code, one(&report)),
        (Some(3), ("gone", "tool-hidden", "/a/y"))
    );
    contains(
        &report.to_string(),
        &["it did not change", "source-config-changed"],
    );
    assert_eq!(report["summary"]["same"], 1);

    let (_, report) = diff((hides, &tools), (json!({}), &tools));
    assert_eq!(one(&report), ("added", "tool-added", "/a/y"));
    contains(&report.to_string(), &["which the old one hides"]);
}

#[test]
fn diff_reports_an_alias_as_a_moved_tool() {
    let tools = [tool("x")];
    let (code, report) = diff(
        (json!({}), &tools),
        (json!({"path_aliases": {"x": "z"}}), &tools),
    );
    assert_eq!(
        (code, one(&report)),
        (Some(3), ("gone", "tool-moved", "/a/x"))
    );
    assert_eq!(report["tools"][0]["findings"][0]["new"], "/a/z");
    assert_eq!(report["summary"]["same"], 0);
}

#[test]
fn diff_reports_a_changed_hidden_tool_as_a_note() {
    let filter = json!({"tool_filter": ["!h*"]});
    let mut changed = tool("h");
    changed["title"] = "New".into();
    let (code, report) = diff(
        (filter.clone(), &[tool("x"), tool("h")]),
        (filter, &[tool("x"), changed]),
    );
    assert_eq!(code, Some(0), "{report:#}");
    let finding = &report["sources"][0]["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["severity"]),
        (&json!("hidden-tool-changed"), &json!("note"))
    );
}

#[test]
fn diff_with_another_command_fails() {
    let tools = [tool("x")];
    let (code, report) = diff((json!({}), &tools), (json!({"command": "other"}), &tools));
    assert_eq!(code, Some(3), "{report:#}");
    let finding = &report["sources"][0]["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["class"]),
        (&json!("source-config-changed"), &json!("unknown"))
    );
}

#[test]
fn diff_shows_the_changed_fields_of_a_source() {
    let tools = [tool("x"), tool("y")];
    let old = json!({"command": "npx -y server@1.0.0 --token=canary1 --dir /a/b", "tool_filter": ["x", "y"]});
    let new = json!({"command": "npx -y server@2.0.0 --token=canary2 --dir /a/b", "tool_filter": ["*", "x"],
        "path_aliases": {"x": "ax"}});
    let (code, report) = diff((old, &tools), (new, &tools));
    assert_eq!(code, Some(3), "{report:#}");
    let findings = report["sources"][0]["findings"].as_array().expect("a list");
    let shown: Vec<_> = findings
        .iter()
        .map(|one| {
            assert_eq!(one["rule"], "source-config-changed");
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            (text("pointer"), text("message"))
        })
        .collect();
    assert_eq!(shown.len(), 3, "{report:#}");
    assert_eq!(shown[0].0, "/command");
    let command = &shown[0].1;
    contains(
        command,
        &[
            "the words `server@1.0.0` `[sha256/1:",
            " are now `server@2.0.0` `[sha256/1:",
        ],
    );
    assert!(!command.contains("--dir"), "{command}");
    assert_eq!(
        shown[1],
        (
            "/tool_filter".to_owned(),
            "`tool_filter` has the new pattern `*`, and no longer has the pattern `y`".to_owned()
        )
    );
    assert_eq!(
        shown[2],
        (
            "/path_aliases".to_owned(),
            "in `path_aliases`, `x` is `ax` now".to_owned()
        )
    );
    assert_eq!(findings[1]["old"], json!(["x", "y"]));
    let text = report.to_string();
    assert!(!text.contains("canary") && !text.contains("/a/b"), "{text}");
    assert!(!text.contains("config_digest"), "{text}");
}

#[test]
fn diff_with_a_lock_of_version_1_compares_digests() {
    let bench = Bench::new();
    write_lock_of_version(1, &bench, "old", &config(json!({})), &[tool("x")]);
    let new = config(json!({"command": "other"}));
    write_lock(&bench, "new", &new, &[tool("x")]);
    let output = bench.run(&["diff", "old.lock.json", "new.lock.json"]);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
    contains(
        &output.stdout,
        &["at  /config_digest", "of format version 1 does not"],
    );
    // The version alone is not a difference.
    write_lock(&bench, "same", &config(json!({})), &[tool("x")]);
    let output = bench.run(&["diff", "old.lock.json", "same.lock.json"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "summary: 1 same\n")
    );
}

#[test]
fn diff_with_other_names_in_env_says_so() {
    let tools = [tool("x")];
    let (code, report) = diff(
        (json!({}), &tools),
        (json!({"env": {"LEVEL": "1"}}), &tools),
    );
    assert_eq!(code, Some(3), "{report:#}");
    let finding = &report["sources"][0]["findings"][0];
    contains(
        finding["message"].as_str().expect("a text"),
        &["names of variables in `env` or `inherit_env`"],
    );
}

#[test]
fn diff_reports_added_and_removed_sources() {
    let bench = Bench::new();
    let mut two = config(json!({}));
    let mut other = two["tree"][0].clone();
    other["path"] = "/b".into();
    two["tree"].as_array_mut().expect("a list").push(other);
    write_lock(&bench, "one", &config(json!({})), &[tool("x")]);
    write_lock(&bench, "two", &two, &[tool("x")]);
    let output = bench.run(&["diff", "one.lock.json", "two.lock.json"]);
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    contains(
        &output.stdout,
        &["added: source /b", "added: /b/x", "1 same, 2 added"],
    );
    let output = bench.run(&["diff", "two.lock.json", "one.lock.json"]);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
    contains(
        &output.stdout,
        &["gone: source /b", "gone: /b/x", "1 same, 2 gone"],
    );
}

#[test]
fn diff_reports_a_tool_moved_to_another_source() {
    let bench = Bench::new();
    let at = |path: &str| {
        let mut config = config(json!({}));
        config["tree"][0]["path"] = path.into();
        config
    };
    write_lock(&bench, "old", &at("/a"), &[tool("x")]);
    write_lock(&bench, "new", &at("/b"), &[tool("x")]);
    let output = bench.run(&["diff", "old.lock.json", "new.lock.json"]);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
    contains(
        &output.stdout,
        &["gone: /a/x", "error[tool-moved] ", "it is at `/b/x` now"],
    );
}

#[test]
fn diff_reads_the_old_lock_from_stdin_and_refuses_a_damaged_one() {
    let bench = Bench::new();
    write_lock(&bench, "c", &config(json!({})), &[tool("x")]);
    let text = bench.read("c.lock.json");
    let output = bench.run_with_input(&["diff", "-", "c.lock.json"], &text);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "summary: 1 same\n")
    );

    bench.write("torn.lock.json", &text[..text.len() / 2]);
    let output = bench.run(&["diff", "torn.lock.json", "none.lock.json"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(5), ""));
    contains(
        &output.stderr,
        &["lock_corrupt", "lock_missing", "none.lock.json"],
    );
}
