//! `lock --dry-run`, and `lock --source S --tool T`.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::{names, tool};

fn changed(name: &str) -> Value {
    let mut tool = tool(name);
    tool["description"] = "Does something else.".into();
    tool
}

/// A source `a` with three tools, locked; then one changed, one left, one came.
fn moved() -> Bench {
    let bench = Bench::with_sources(&["a", "b"]);
    bench.script(
        "a",
        &json!({"tools": [tool("one"), tool("two"), tool("three")], "instructions": "old"}),
    );
    bench.one_tool("b", tool("x"));
    bench.lock();
    bench.script(
        "a",
        &json!({"tools": [changed("one"), changed("two"), tool("four")], "instructions": "new"}),
    );
    bench.one_tool("b", changed("x"));
    bench
}

fn exposed(bench: &Bench) -> Vec<(String, String)> {
    let lock = bench.lock_json();
    let tools = &lock["sources"][0]["exposed"];
    let raw = tools.as_array().expect("a list").iter();
    let texts = raw.map(|tool| {
        tool["raw"]["description"][0]
            .as_str()
            .expect("a line")
            .to_owned()
    });
    let names = names(tools, "upstream_name").into_iter().map(str::to_owned);
    names.zip(texts).collect()
}

#[test]
fn lock_dry_run_reports_changes_and_writes_nothing() {
    let bench = moved();
    let before = bench.lock_state();
    let output = bench.verb(&["lock", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(bench.lock_state(), before);
    contains(&output.stderr, &["would write c.lock.json"]);
    contains(
        &output.stdout,
        &[
            "text: /a/one",
            "gone: /a/three",
            "added: /a/four",
            "text: /b/x",
            "summary:",
        ],
    );
    // A machine that must not write may still ask.
    let in_ci = bench.verb_with(&["lock", "--dry-run"], &[("CI", "true")]);
    assert_eq!((in_ci.code, in_ci.stdout), (Some(0), output.stdout));
    bench.lock();
    let output = bench.verb(&["lock", "--dry-run"]);
    assert_eq!((output.code, &*output.stdout), (Some(0), ""));
    contains(&output.stderr, &["c.lock.json is up to date"]);

    bench.write("c.lock.json", "{");
    let output = bench.verb(&["lock", "--dry-run"]);
    assert_eq!((output.code, bench.lock_text()), (Some(0), "{".to_owned()));
    contains(
        &output.stderr,
        &["would write c.lock.json; the existing one cannot be read"],
    );

    let fresh = Bench::with_sources(&["a"]);
    let output = fresh.verb(&["lock", "--dry-run"]);
    assert_eq!(
        (output.code, fresh.lock_state()),
        (Some(0), None),
        "{}",
        output.stderr
    );
    contains(
        &output.stderr,
        &["would write c.lock.json, which does not exist yet"],
    );
}

#[test]
fn lock_of_one_tool_keeps_every_other_tool() {
    let bench = moved();
    let old = |name: &str| (name.to_owned(), format!("Does {name}."));
    let new = |name: &str| (name.to_owned(), "Does something else.".to_owned());

    let dry = bench.verb(&["lock", "--source", "/a", "--tool", "one", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    contains(&dry.stdout, &["text: /a/one"]);
    assert!(
        !dry.stdout.contains("two") && !dry.stdout.contains("/b"),
        "{}",
        dry.stdout
    );

    let output = bench.verb(&["lock", "--source", "/a", "--tool", "one"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(&output.stderr, &["/a: `one` changed"]);
    assert_eq!(exposed(&bench), [new("one"), old("three"), old("two")]);
    let lock = bench.lock_json();
    assert_eq!(lock["sources"][0]["instructions"], json!(["old"]));
    assert_eq!(
        lock["sources"][1]["exposed"][0]["raw"]["description"][0],
        "Does x."
    );

    let args = [
        "lock", "--source", "/a", "--tool", "three", "--tool", "four",
    ];
    let output = bench.verb(&args);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    contains(
        &output.stderr,
        &["/a: `three` is gone", "/a: `four` is new"],
    );
    assert_eq!(exposed(&bench), [old("four"), new("one"), old("two")]);
    let again = bench.verb(&args[..5]);
    assert_eq!(
        again.code,
        Some(2),
        "it is on neither side now: {}",
        again.stderr
    );
}

#[test]
fn lock_of_a_tool_or_source_not_separable_is_refused() {
    let bench = moved();
    let before = bench.lock_state();
    let refused = |args: &[&str], code: i32, said: &[&str]| {
        let output = bench.verb(args);
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        contains(&output.stderr, said);
        assert_eq!(bench.lock_state(), before);
    };
    refused(
        &["lock", "--source", "/a", "--tool", "thre"],
        2,
        &[
            "error[path_invalid]: `/a` has no tool `thre`",
            "Did you mean `three`",
        ],
    );
    refused(&["lock", "--tool", "one"], 2, &["--source"]);
    refused(
        &["lock", "--source", "/a", "--source", "/b", "--tool", "one"],
        2,
        &["`--tool` needs exactly one `--source`"],
    );
    // Another filter is another source: it has to be locked whole.
    bench.configure([("a", json!({"tool_filter": ["!two"]})), ("b", json!({}))]);
    refused(
        &["lock", "--source", "/a", "--tool", "one"],
        5,
        &[
            "error[lock_stale]: the config of the source `/a` has changed since it was locked",
            "without `--tool`",
        ],
    );
}
