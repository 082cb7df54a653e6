//! Names in the config that do not fit the tools: filters, aliases, overrides, examples.

use harness::{Bench, contains, node};
use serde_json::{Value, json};

use super::bench::tool;

/// A source `a` with these tools and members, locked; what is said, with the code.
fn refused(tools: &[Value], members: Value) -> String {
    let bench = Bench::new();
    bench.configure([("a", members)]);
    bench.script("a", &json!({"tools": tools}));
    bench.lock_fails(2)
}

#[test]
fn leaf_of_two_entries_is_refused() {
    let errors = refused(&[tool("x"), tool("y")], json!({"path_aliases": {"x": "y"}}));
    contains(
        &errors,
        &[
            "error[leaf_clash]: `x` of `/a` and `y` of `/a` both have the path `/a/y`",
            "c.json:1:",
            "alias",
        ],
    );

    let bench = Bench::new();
    let mut parent = node("a", json!({}));
    let mut child = node("b", json!({}));
    child["path"] = "/a/x".into();
    parent["children"] = json!([child]);
    bench.write("c.json", &json!({"tree": [parent]}).to_string());
    bench.one_tool("a", tool("x"));
    contains(
        &bench.lock_fails(2),
        &["error[leaf_clash]: the tool `x` of `/a` has the path of the node `/a/x`"],
    );
}

#[test]
fn flat_name_of_two_tools_is_refused_by_a_lock() {
    let bench = Bench::new();
    let one = node("a", json!({"path_aliases": {"x": "b-x"}}));
    let mut other = node("b", json!({}));
    other["path"] = "/a-b".into();
    bench.write("c.json", &json!({"tree": [one, other]}).to_string());
    bench.one_tool("a", tool("x"));
    bench.one_tool("b", tool("x"));
    contains(
        &bench.lock_fails(2),
        &[
            "error[flat_name_clash]: the tools `/a-b/x` and `/a/b-x` have the same flat name, `a-b-x`",
            "c.json:1:",
            "path_aliases",
        ],
    );
    assert!(bench.lock_state().is_none(), "no lock is written");
}

#[test]
fn paths_that_differ_only_in_case_give_a_warning() {
    let bench = Bench::with_sources(&["a"]);
    bench.script("a", &json!({"tools": [tool("get"), tool("Get")]}));
    let output = bench.lock();
    contains(
        &output.stderr,
        &["warning[path_case]: `/a/Get` and `/a/get` differ only in case"],
    );
}

#[test]
fn filter_that_matches_no_tool_is_refused() {
    let tools = [tool("get_file"), tool("put_file"), tool("list_folders")];
    let errors = refused(&tools, json!({"tool_filter": ["get_flie"]}));
    contains(
        &errors,
        &[
            "error[filter_empty]: the filter of `/a` matches none of its 3 tools",
            "nearest to the patterns: `get_file`",
            "/tool_filter",
        ],
    );
    let errors = refused(&tools, json!({"tool_filter": ["!*"]}));
    contains(&errors, &["error[filter_empty]"]);

    let bench = Bench::new();
    bench.configure([(
        "a",
        json!({"tool_filter": ["get_*", "lits_*", "!delete_*"]}),
    )]);
    bench.script("a", &json!({"tools": tools}));
    let output = bench.lock();
    contains(
        &output.stderr,
        &[
            "warning[filter_empty]: the pattern `lits_*` of `/a` matches no tool",
            "`list_folders`",
            "warning[filter_empty]: the pattern `!delete_*` of `/a` matches no tool",
        ],
    );
}

#[test]
fn override_of_an_unknown_or_hidden_tool_is_refused() {
    let tools = [tool("get_file"), tool("secret")];
    let members = json!({
        "tool_filter": ["!secret"],
        "path_aliases": {"get_fiel": "f"},
        "tool_overrides": {"get_files": {"summary": "x"}, "secret": {"summary": "x"}},
    });
    let errors = refused(&tools, members);
    contains(
        &errors,
        &[
            "error[override_unknown]: `path_aliases` names `get_fiel`, which `/a` does not have",
            "error[override_unknown]: `tool_overrides` names `get_files`, which `/a` does not have",
            "Did you mean `get_file`?",
            "error[override_unknown]: `tool_overrides` names `secret`, which the filter of `/a` hides",
            "/tool_overrides/get_files",
        ],
    );
}

#[test]
fn tool_name_outside_the_path_grammar_needs_an_alias() {
    let odd = [tool("files/read \u{202e}x"), tool("ok"), tool("..")];
    let errors = refused(&odd, json!({}));
    contains(
        &errors,
        &[
            "error[alias_needed]: the name of the tool `files/read \\u{202e}x` of `/a` cannot be a path segment",
            "error[alias_needed]: the name of the tool `..`",
            "path_aliases",
        ],
    );
    assert!(!errors.contains('\u{202e}'), "{errors}");

    let bench = Bench::new();
    bench.configure([(
        "a",
        json!({"path_aliases": {"files/read x": "read"}, "tool_filter": ["!.."]}),
    )]);
    bench.script(
        "a",
        &json!({"tools": [tool("files/read x"), tool("ok"), tool("..")]}),
    );
    bench.lock();
    let exposed = bench.lock_json()["sources"][0]["exposed"][0].clone();
    assert_eq!(
        (&exposed["exposed_name"], &exposed["upstream_name"]),
        (&json!("read"), &json!("files/read x"))
    );
}

#[test]
fn example_that_does_not_match_the_schema_is_refused() {
    let mut typed = tool("typed");
    typed["inputSchema"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let with = |example: Value| json!({"tool_overrides": {"typed": {"example_args": example}}});
    let errors = refused(std::slice::from_ref(&typed), with(json!({"n": "three"})));
    contains(
        &errors,
        &[
            "error[example_invalid]: the example of `typed` of `/a` does not match its schema at /n: expected integer",
            "c.json:1:",
            "/tool_overrides/typed/example_args",
        ],
    );
    let errors = refused(std::slice::from_ref(&typed), with(json!({})));
    contains(&errors, &["error[example_invalid]", "the member \"n\""]);

    let bench = Bench::new();
    bench.configure([("a", with(json!({"n": 3})))]);
    bench.one_tool("a", typed);
    bench.lock();
}

#[test]
fn config_problem_is_reported_before_a_failed_source() {
    let bench = Bench::new();
    bench.configure([("a", json!({"tool_filter": ["nope"]})), ("b", json!({}))]);
    bench.script("b", &json!({"start_exit": 1}));
    let errors = bench.lock_fails(2);
    contains(
        &errors,
        &["error[filter_empty]", "error[source_failed]: `/b`"],
    );
}
