//! `lock` after sources were removed from the config: it corrects the lock and launches nothing.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::tool;

/// A lock of three sources, each with one tool. The journals say which were launched later.
fn locked() -> Bench {
    let bench = Bench::with_sources(&["a", "b", "d"]);
    for name in ["a", "b", "d"] {
        bench.one_tool(name, tool("x"));
    }
    bench.lock();
    for name in ["a", "b", "d"] {
        // A launch would find another tool.
        bench.one_tool(name, tool("y"));
        std::fs::remove_file(bench.path(&format!("{name}.log"))).expect("a journal");
    }
    bench
}

/// The text of the source in the lock.
fn block<'t>(lock: &'t str, path: &str) -> &'t str {
    let begin = lock.find(&format!("\"path\": \"{path}\""));
    let begin = begin.expect("the lock has the source");
    let length = lock[begin..].find("\n    }").expect("it ends");
    &lock[begin..begin + length]
}

#[test]
fn lock_without_sources_that_are_gone_launches_nothing() {
    let bench = locked();
    let before = bench.lock_text();
    bench.configure([("a", json!({})), ("d", json!({}))]);
    let stale = bench.verb(&["verify", "--offline"]);
    contains(&stale.stderr, &["lock_orphan", "/b"]);

    let dry = bench.verb(&["lock", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    contains(&dry.stderr, &["would write c.lock.json"]);
    assert_eq!(bench.lock_text(), before);

    let output = bench.lock();
    let said = [
        "/b: the config no longer has it",
        "no source was launched",
        "wrote c.lock.json",
    ];
    contains(&output.stderr, &said);
    let after = bench.lock_text();
    for path in ["/a", "/d"] {
        assert_eq!(block(&after, path), block(&before, path));
    }
    assert!(!after.contains("\"/b\""), "{after}");
    for name in ["a", "b", "d"] {
        assert!(!bench.path(&format!("{name}.log")).exists(), "{name} ran");
    }
    bench.fine(&["verify", "--offline", "--config", "c.json"]);
    // It is the lock that the other sources alone would have given.
    for name in ["a", "d"] {
        bench.one_tool(name, tool("x"));
    }
    let again = bench.lock();
    contains(&again.stderr, &["c.lock.json is up to date"]);
    assert!(!bench.journal("a", "start").is_empty());
}

#[test]
fn lock_of_a_disabled_source_launches_nothing() {
    let bench = locked();
    bench.configure([
        ("a", json!({"disabled": true})),
        ("b", json!({})),
        ("d", json!({})),
    ]);
    let output = bench.lock();
    contains(&output.stderr, &["/a: the config no longer has it"]);
    assert!(!bench.path("b.log").exists() && !bench.path("d.log").exists());
    bench.fine(&["verify", "--offline", "--config", "c.json"]);
}

#[test]
fn lock_with_another_fault_beside_sources_that_are_gone_launches_the_rest() {
    let bench = locked();
    bench.configure([("a", json!({})), ("d", json!({"tool_filter": ["y"]}))]);
    let output = bench.lock();
    assert!(!output.stderr.contains("no source was launched"));
    let text = bench.lock_text();
    assert!(!text.contains("\"upstream_name\": \"x\""), "{text}");
    assert!(bench.path("a.log").exists() && bench.path("d.log").exists());
}

#[test]
fn lock_whose_tool_clashed_with_a_source_that_is_gone_launches_the_rest() {
    let bench = Bench::new();
    let tree = |paths: &[&str]| {
        let nodes = paths.iter().map(|path| {
            let name = path.trim_start_matches('/').replace('/', "_");
            let mut node = harness::node(&name, json!({}));
            node["path"] = (*path).into();
            node
        });
        let tree: Vec<Value> = nodes.collect();
        bench.write("c.json", &json!({"tree": tree}).to_string());
    };
    // Both tools have the flat name `a-b-c`.
    bench.one_tool("a", tool("b-c"));
    bench.one_tool("a_b", tool("c"));
    tree(&["/a", "/a/b"]);
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    contains(&bench.lock_text(), &["path_clash"]);
    tree(&["/a"]);
    bench.lock();
    let text = bench.lock_text();
    contains(&text, &["\"upstream_name\": \"b-c\""]);
    assert!(!text.contains("path_clash"), "{text}");
}
