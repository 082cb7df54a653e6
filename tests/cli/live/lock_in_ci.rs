//! `lock` on an unattended machine: it never overwrites a reviewed lock.

use harness::{Bench, contains};
use serde_json::json;

use super::bench::tool;

#[test]
fn lock_on_an_unattended_machine_only_checks() {
    for variable in [("CI", "true"), ("MCP_BROKER_LOCKED", "1")] {
        let bench = Bench::with_sources(&["a"]);
        bench.one_tool("a", tool("x"));
        let reason = format!("`{}` is set, so nothing is written", variable.0);
        let refused = |code, parts: &[&str]| {
            let output = bench.verb_with(&["lock"], &[variable]);
            assert_eq!(output.code, Some(code), "{}", output.stderr);
            contains(&output.stderr, parts);
            contains(&output.stderr, &[&reason]);
            output
        };
        refused(5, &["lock_missing"]);
        assert!(bench.lock_state().is_none(), "{variable:?} wrote a lock");
        assert!(bench.journal("a", "start").is_empty());
        bench.lock();
        let before = bench.lock_state();

        let output = bench.verb_with(&["lock"], &[variable]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), "summary: 1 same\n")
        );
        assert!(!output.stderr.contains("nothing is written"));
        bench.one_tool("a", tool("y"));
        let output = refused(3, &[]);
        contains(&output.stdout, &["gone: /a/x", "added: /a/y"]);
        bench.configure([("a", json!({"tool_filter": ["y"]}))]);
        refused(5, &["lock_stale"]);
        bench.configure([]);
        refused(5, &["lock_orphan"]);
        bench.write("c.json", "{");
        refused(2, &[]);
        assert_eq!(bench.lock_state(), before, "{variable:?} wrote");
    }
}

#[test]
fn lock_with_other_values_of_the_variables_writes() {
    for variable in [("CI", "false"), ("CI", ""), ("MCP_BROKER_LOCKED", "0")] {
        let bench = Bench::with_sources(&["a"]);
        bench.one_tool("a", tool("x"));
        bench.lock();
        bench.one_tool("a", tool("y"));
        let output = bench.verb_with(&["lock", "--once"], &[variable]);
        assert_eq!(output.code, Some(0), "{variable:?}: {}", output.stderr);
        assert!(bench.lock_text().contains("\"y\""), "{variable:?}");
    }
}

#[test]
fn lock_with_check_writes_nothing() {
    let bench = Bench::with_sources(&["a"]);
    let output = bench.verb(&["lock", "--check"]);
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(&output.stderr, &["lock_missing"]);
    assert!(bench.lock_state().is_none(), "check never writes");
    bench.one_tool("a", tool("x"));
    bench.lock();
    bench.one_tool("a", tool("y"));
    assert_eq!(bench.verb(&["lock", "--check"]).code, Some(3));
}
