//! `check`: its report on live sources and the lock, in both formats, and its exit code.

use harness::{Bench, Chaos, contains};
use serde_json::{Value, json};

use super::bench::tool;

const CLASSES: [&str; 10] = [
    "same",
    "equivalent",
    "text",
    "compatible",
    "unknown",
    "breaking",
    "security",
    "gone",
    "added",
    "unchecked",
];

/// A summary in which only these are not 0.
fn summary(counts: &[(&str, u64)]) -> Value {
    let count = |class: &str| {
        counts
            .iter()
            .find(|(known, _)| *known == class)
            .map_or(0, |(_, count)| *count)
    };
    let members = CLASSES
        .iter()
        .map(|class| ((*class).to_owned(), json!(count(class))));
    Value::Object(members.collect())
}

#[test]
fn check_of_unchanged_sources_exits_0_and_writes_nothing() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.lock();
    let before = bench.lock_state();
    let (code, report) = bench.check();
    assert_eq!(code, Some(0));
    assert_eq!(
        report,
        json!({"format_version": 1, "tools": [], "sources": [], "summary": summary(&[("same", 20)])})
    );
    let human = bench.verb(&["check"]);
    assert_eq!(
        (human.code, human.stdout.as_str()),
        (Some(0), "summary: 20 same\n")
    );
    assert_eq!(bench.lock_state(), before);
    assert_eq!(bench.journal("a", "call").len(), 0, "a check calls no tool");
}

#[test]
fn check_of_a_changed_tool_reports_class_places_and_values() {
    let bench = Bench::new();
    bench.configure([("a", json!({"path_aliases": {"moved": "alias"}}))]);
    let before = [tool("kept"), tool("moved"), tool("gone")];
    bench.script("a", &json!({"tools": before}));
    bench.lock();
    let state = bench.lock_state();
    let mut moved = tool("moved");
    moved["description"] = "Now \u{1b}[31mred".into();
    moved["inputSchema"]["required"] = json!(["x"]);
    bench.script("a", &json!({"tools": [tool("new"), moved, tool("kept")]}));

    let (code, report) = bench.check();
    assert_eq!(code, Some(6), "hidden text comes before drift: {report}");
    assert_eq!(report["lint"][0]["findings"][0]["rule"], "control-sequence");
    assert_eq!(report["format_version"], 1);
    assert_eq!(report["sources"], json!([]));
    assert_eq!(
        report["summary"],
        summary(&[("same", 1), ("security", 1), ("gone", 1), ("added", 1)])
    );
    let remedy = "review it, then run `broker-gen lock --config c.json --source /a --tool moved`, commit the lock and build again";
    let tools = report["tools"].as_array().expect("a list");
    let of = |name: &str| {
        tools
            .iter()
            .find(|entry| entry["tool"] == name)
            .unwrap_or_else(|| panic!("{name}: {report}"))
    };
    assert_eq!(tools.len(), 3);
    assert_eq!(
        of("moved"),
        &json!({
            "source": "/a", "tool": "moved", "path": "/a/alias", "class": "security",
            "findings": [
                {
                    "rule": "hidden-characters", "class": "security", "severity": "error", "pointer": "/description",
                    "old": "Does moved.", "new": "Now \u{1b}[31mred", "witness": null,
                    "message": "invisible characters were added to the text", "remedy": remedy,
                },
                {
                    "rule": "input-required-added", "class": "breaking", "severity": "error",
                    "pointer": "/inputSchema/required", "old": null, "new": ["x"], "witness": {},
                    "message": "`x` is now required", "remedy": remedy,
                },
                {
                    "rule": "description-changed", "class": "text", "severity": "warning", "pointer": "/description",
                    "old": "Does moved.", "new": "Now \u{1b}[31mred", "witness": null,
                    "message": "the description changed", "remedy": remedy,
                },
            ],
        })
    );
    assert_eq!(
        (&of("gone")["class"], &of("gone")["findings"][0]["rule"]),
        (&json!("gone"), &json!("tool-gone"))
    );
    assert_eq!(
        (&of("new")["class"], &of("new")["path"]),
        (&json!("added"), &json!("/a/new"))
    );

    let human = bench.verb(&["check"]);
    assert_eq!(human.code, Some(6));
    contains(
        &human.stdout,
        &[
            "security: /a/alias (`moved`)\n  error[hidden-characters] invisible characters were added to the text\n    at  /description\n",
            "    lock \"Does moved.\"\n    live ",
            "  error[input-required-added] `x` is now required\n",
            "    lock (absent)\n    live [\"x\"]\n    for example the call {}\n",
            "  warning[description-changed] the description changed\n",
            "broker-gen lock --config c.json --source /a",
            "summary: 1 same, 1 security, 1 gone, 1 added\n",
            "error[control-sequence] /a/alias: ",
            "lint: 1 error, 0 warnings\n",
        ],
    );
    assert!(!human.stdout.contains('\u{1b}'), "{}", human.stdout);
    let at = |part: &str| {
        human
            .stdout
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {}", human.stdout))
    };
    assert!(
        at("gone: /a/gone") < at("security: ") && at("security: ") < at("added: /a/new"),
        "the worst first"
    );
    assert_eq!(bench.lock_state(), state);
}

#[test]
fn check_fails_for_a_missing_tool_and_not_for_an_added_one() {
    let bench = Bench::with_sources(&["a"]);
    bench.script("a", &json!({"tools": [tool("x"), tool("y")]}));
    bench.lock();
    bench.script("a", &json!({"tools": [tool("z"), tool("y"), tool("x")]}));
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]),
        (Some(0), &summary(&[("same", 2), ("added", 1)]))
    );
    bench.script("a", &json!({"tools": [tool("y")]}));
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]),
        (Some(3), &summary(&[("same", 1), ("gone", 1)]))
    );
}

#[test]
fn check_ignores_changes_of_hidden_tools() {
    let bench = Bench::new();
    bench.configure([("a", json!({"tool_filter": ["!secret*"]}))]);
    bench.script("a", &json!({"tools": [tool("x"), tool("secret1")]}));
    bench.lock();
    let mut moved = tool("secret1");
    moved["title"] = "Other".into();
    bench.script("a", &json!({"tools": [tool("x"), moved, tool("secret2")]}));
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]),
        (Some(0), &summary(&[("same", 1)]))
    );
}

#[test]
fn check_ignores_member_order_and_number_forms() {
    let bench = Bench::with_sources(&["a"]);
    bench.write("a.json", r#"{"tools":[{"name":"t","inputSchema":{"minimum":1.0,"type":"object","title":"\u00e9"}}]}"#);
    bench.lock();
    bench.write(
        "a.json",
        r#"{"tools":[{"inputSchema":{"title":"é","type":"object","minimum":1},"name":"t"}]}"#,
    );
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]),
        (Some(0), &summary(&[("same", 1)])),
        "{report}"
    );
    bench.lock();
}

#[test]
fn check_of_server_info_fails_only_for_name_and_instructions() {
    let bench = Bench::with_sources(&["a"]);
    let with = |members: Value| {
        let mut script = json!({"tools": [tool("x")], "era": "legacy", "instructions": "Be kind."});
        for (key, value) in members.as_object().expect("members") {
            script[key] = value.clone();
        }
        bench.script("a", &script);
    };
    with(json!({}));
    bench.lock();
    let version = env!("CARGO_PKG_VERSION");
    for (members, rule, class, pointer, code) in [
        (
            json!({"server_info": {"name": "other", "version": version}}),
            "server-name-changed",
            "text",
            "/server_info/name",
            3,
        ),
        (
            json!({"instructions": "Be rude."}),
            "instructions-changed",
            "text",
            "/instructions",
            3,
        ),
        (
            json!({"instructions": null}),
            "instructions-changed",
            "text",
            "/instructions",
            3,
        ),
        (
            json!({"server_info": {"name": "chaos-mcp", "version": "99"}}),
            "server-version-changed",
            "same",
            "/server_info/version",
            0,
        ),
        (
            json!({"capabilities": {"tools": {}, "logging": {}}}),
            "capabilities-changed",
            "same",
            "/capabilities",
            0,
        ),
        (
            json!({"protocol_version": "2025-06-18"}),
            "protocol-revision-changed",
            "same",
            "/protocol_version",
            0,
        ),
    ] {
        with(members);
        let (exit, report) = bench.check();
        assert_eq!(exit, Some(code), "{rule}: {report}");
        assert_eq!(report["tools"], json!([]));
        let source = &report["sources"][0];
        assert_eq!(
            (&source["source"], &source["class"]),
            (&json!("/a"), &json!(class)),
            "{report}"
        );
        assert_eq!(
            source["findings"].as_array().map(Vec::len),
            Some(1),
            "{report}"
        );
        let finding = &source["findings"][0];
        assert_eq!(
            (&finding["rule"], &finding["pointer"]),
            (&json!(rule), &json!(pointer)),
            "{report}"
        );
        let counts = if class == "same" {
            summary(&[("same", 1)])
        } else {
            summary(&[("same", 1), ("text", 1)])
        };
        assert_eq!(report["summary"], counts, "{rule}");
    }
    with(json!({"instructions": "Be rude."}));
    let human = bench.verb(&["check"]).stdout;
    contains(
        &human,
        &[
            "text: source /a\n",
            "lock \"Be kind.\"\n    live \"Be rude.\"\n",
        ],
    );
}

#[test]
fn check_of_a_failed_source_is_unchecked_and_reports_other_drift() {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.one_tool("a", tool("x"));
    bench.one_tool("b", tool("x"));
    bench.lock();
    bench.script("b", &json!({"start_exit": 9, "start_stderr": "no licence"}));
    let (code, report) = bench.check();
    assert_eq!(code, Some(4));
    assert_eq!(report["summary"], summary(&[("same", 1), ("unchecked", 1)]));
    let source = &report["sources"][0];
    assert_eq!(
        (&source["source"], &source["class"]),
        (&json!("/b"), &json!("unchecked"))
    );
    let finding = &source["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["new"]["cause"]),
        (&json!("source-unavailable"), &json!("exit_before_ready"))
    );
    contains(
        finding["message"].as_str().expect("text"),
        &["code 9", "no licence"],
    );

    // Drift of the other is in the report, and 4 comes before 3.
    bench.one_tool("a", tool("y"));
    let (code, report) = bench.check();
    assert_eq!((code, &report["summary"]["gone"]), (Some(4), &json!(1)));
    let human = bench.verb(&["check"]);
    assert_eq!(human.code, Some(4));
    contains(
        &human.stdout,
        &["unchecked: source /b", "gone: /a/x", "no licence"],
    );

    // Only the one that is asked for.
    let one = bench.verb(&["check", "--source", "/a"]);
    assert_eq!(one.code, Some(3), "{}", one.stdout);
}

#[test]
fn check_without_any_source_fails() {
    let bench = Bench::new();
    bench.write(
        "c.json",
        r#"{"tree":[{"path":"/a","type":"node","summary":"empty"}]}"#,
    );
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let output = bench.verb(&["check"]);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    contains(&output.stderr, &["nothing was checked"]);
}

#[test]
fn check_of_a_source_without_tools_succeeds() {
    let bench = Bench::with_sources(&["a"]);
    bench.script("a", &json!({"tools": []}));
    bench.lock();
    let (code, report) = bench.check();
    assert_eq!(
        (code, &report["summary"]),
        (Some(0), &summary(&[])),
        "{report}"
    );
}

#[test]
fn check_with_a_stale_lock_names_the_sources_and_compares_them() {
    let bench = Bench::with_sources(&["a", "b", "old"]);
    bench.lock();
    let before = bench.lock_state();
    bench.script("b", &json!({"tools": Chaos::tools_asking_more("echo")}));
    bench.configure([
        ("a", json!({})),
        ("b", json!({"tool_filter": ["echo"]})),
        ("d", json!({})),
    ]);
    let output = bench.verb(&["check", "--output", "json=new/folder/drift.json"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stdout,
        &[
            "breaking: /b/echo\n",
            "unknown: source /b\n  error[source-config-changed] `tool_filter` has the new pattern `echo`",
            "added: source /d\n  warning[source-added] the next lock has a new source",
            "added: 10 tools: /d/add,",
            "`broker-gen lock --config c.json --source /b --source /d`",
        ],
    );
    let report: Value =
        serde_json::from_str(&bench.read("new/folder/drift.json")).expect("it is JSON");
    let codes: Vec<_> = report["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|problem| problem["code"].as_str().expect("a code"))
        .collect();
    assert_eq!(
        codes,
        ["lock_stale", "lock_stale", "lock_orphan"],
        "{report}"
    );
    contains(
        &output.stderr,
        &[
            "error[lock_stale]: the config of the source `/b` has changed since it was locked: `tool_filter` has the new pattern `echo`\n  --> c.json:1:",
            "error[lock_stale]: the source `/d` is not in the lock",
            "error[lock_orphan]: the lock has the source `/old`, which the config does not have",
            "broker-gen lock",
        ],
    );
    assert!(!output.stderr.contains("`/a`"), "{}", output.stderr);
    assert_eq!(bench.lock_state(), before);
}

#[test]
fn check_accepts_changed_settings_that_the_lock_does_not_cover() {
    let bench = Bench::with_sources(&["a"]);
    bench.lock();
    let members = json!({"timeout": 5, "startup_timeout": 9, "required": false, "max_in_flight": 2,
        "tool_overrides": {"echo": {"summary": "Say it"}}});
    bench.configure([("a", members)]);
    let output = bench.verb(&["check"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[test]
fn check_without_a_lock_is_refused() {
    let bench = Bench::with_sources(&["a"]);
    let output = bench.verb(&["check"]);
    assert_eq!(output.code, Some(5));
    contains(
        &output.stderr,
        &["error[lock_missing]", "c.lock.json", "broker-gen lock"],
    );
    assert!(bench.lock_state().is_none());
    assert_eq!(bench.journal("a", "start").len(), 0, "nothing is launched");
}

#[test]
fn check_with_a_damaged_or_other_version_lock_is_refused() {
    let bench = Bench::with_sources(&["a"]);
    bench.lock();
    let whole = bench.lock_text();
    for (text, code, part) in [
        (
            whole.replace("\"lock_version\": 2", "\"lock_version\": 4"),
            "lock_version",
            "Upgrade",
        ),
        (
            whole.replace("\"lock_version\": 2", "\"lock_version\": 0"),
            "lock_version",
            "broker-gen lock",
        ),
        (
            whole.replace("Echoes its", "Echoes the"),
            "lock_corrupt",
            "`echo`",
        ),
        (
            whole[..whole.len() / 2].to_owned(),
            "lock_corrupt",
            "incomplete",
        ),
        (
            format!("<<<<<<< ours\n{whole}"),
            "lock_corrupt",
            "c.lock.json:1:1",
        ),
    ] {
        bench.write("c.lock.json", &text);
        let output = bench.verb(&["check"]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(5), ""),
            "{part}: {}",
            output.stderr
        );
        contains(
            &output.stderr,
            &[&format!("error[{code}]"), part, "c.lock.json"],
        );
        assert_eq!(bench.lock_text(), text, "check never writes");
        // An unreadable lock does not prevent a new one.
        bench.lock();
        assert_eq!(bench.lock_text(), whole);
    }
    // White space and line ends do not count.
    bench.write("c.lock.json", &whole.replace('\n', "\r\n"));
    assert_eq!(bench.verb(&["check"]).code, Some(0));
}

#[test]
fn check_of_both_eras_finds_no_drift() {
    let bench = Bench::with_sources(&["old", "new"]);
    bench.script(
        "old",
        &json!({"era": "legacy", "protocol_version": "2024-11-05", "tools": [tool("x")]}),
    );
    bench.script("new", &json!({"era": "modern", "tools": [tool("x")]}));
    bench.lock();
    let lock = bench.lock_json();
    assert_eq!(
        (
            &lock["sources"][0]["protocol_version"],
            &lock["sources"][1]["protocol_version"]
        ),
        (&json!("2026-07-28"), &json!("2024-11-05"))
    );
    let (code, report) = bench.check();
    assert_eq!((code, &report["sources"]), (Some(0), &json!([])));
}
