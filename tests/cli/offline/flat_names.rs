//! Flat names of tools: `tree --flat`, what a build compiles in, and clashes.

use harness::{Bench, contains};
use serde_json::{Value, json};

use super::bench::{config, tool, write_lock};

/// The tools `x` and `y` with further members.
fn tools() -> [Value; 2] {
    let mut rich = tool("x");
    rich["title"] = "Ex".into();
    rich["annotations"] = json!({"readOnlyHint": true});
    rich["icons"] = json!([{"src": "data:image/png;base64,"}]);
    rich["_meta"] = json!({"hidden": "member"});
    rich["outputSchema"] = json!({"type": "object"});
    rich["inputSchema"]["properties"] = json!({
        "region": {"type": "string", "x-mcp-header": "Region"}});
    [rich, tool("y")]
}

/// The digest of the catalog that a build of `config` compiles in, with its files.
fn compiled(config: &Value) -> (String, String, String) {
    let bench = Bench::new();
    write_lock(&bench, "c", config, &tools());
    bench.fine(&["generate", "--config", "c.json", "--out", "made"]);
    let tables = bench.read("made/catalog.rs");
    let digest = tables.split("catalog_digest: \"").nth(1);
    let digest = digest.and_then(|rest| rest.split('"').next());
    let digest = digest.expect("the tables have a digest").to_owned();
    (digest, tables, bench.read("made/catalog.json"))
}

#[test]
fn tree_with_flat_shows_the_flat_name_of_each_path() {
    let bench = Bench::new();
    let aliases = json!({"path_aliases": {"x": "e.x"}});
    write_lock(&bench, "c", &config(aliases), &[tool("x"), tool("y")]);
    let tree = bench.fine(&["tree", "--config", "c.json", "--flat"]);
    let lines: Vec<_> = tree.lines().collect();
    // printf '/a/e.x' | sha256sum
    assert_eq!(
        lines[..2],
        ["/a/e.x  a-e_x-76659d38", "/a/y    a-y"],
        "{tree}"
    );
    contains(lines[2], &["2 tools of 1 source"]);
    assert_eq!(bench.run(&["tree", "--flat", "--hidden"]).code, Some(2));
}

#[test]
fn catalog_has_flat_names_and_entries_of_the_tool_list() {
    let (_, tables, blob) = compiled(&config(json!({})));
    let header = r#"name: "Region""#;
    contains(&tables, &[r#"flat_name: "a-x""#, header, r#""region""#]);
    let head =
        r#""title":"Ex","description":"Does x. Then more.","annotations":{"readOnlyHint":true}"#;
    let is_line = |text: &str| blob.lines().any(|line| line == text);
    assert!(is_line(head), "{blob}");
    assert!(is_line(r#""description":"Does y. Then more.""#), "{blob}");
    let override_of_x = json!({"tool_overrides": {"x": {"description": "Reviewed."}}});
    let (_, _, blob) = compiled(&config(override_of_x));
    contains(
        &blob,
        &[r#""title":"Ex","description":"Reviewed.","annotations""#],
    );
}

#[test]
fn catalog_digest_depends_on_the_length_of_names_but_not_on_the_mode() {
    let with = |mcp: Value| {
        let mut config = config(json!({}));
        config["mcp"] = mcp;
        compiled(&config)
    };
    let (plain, ..) = compiled(&config(json!({})));
    let (same, ..) = with(json!({"mode": "direct", "max_name": 46, "session_idle": 5}));
    assert_eq!(plain, same);
    assert_ne!(plain, with(json!({"max_name": 47})).0);
}

#[test]
fn flat_names_that_clash_are_refused_together_with_their_places() {
    let bench = Bench::new();
    let source = |members: Value| {
        let mut source = json!({"command": "server"});
        for (key, value) in members.as_object().expect("members are an object") {
            source[key] = value.clone();
        }
        source
    };
    let whole = json!({"tree": [{"path": "/", "source": source(json!({"path_aliases": {"c": "call_tool_read"}, "tool_filter": ["c"]})),
    "children": [
        {"path": "/a-b", "source": source(json!({"tool_filter": ["c"]}))},
        {"path": "/a", "source": source(json!({"path_aliases": {"c": "b-c"}, "tool_filter": ["c"]}))},
        {"path": "/free", "source": source(json!({"tool_filter": ["c"]}))},
    ]}]});
    write_lock(&bench, "c", &whole, &[tool("c")]);
    for verb in [
        &["generate", "--config", "c.json", "--out", "made"][..],
        &["tree", "--config", "c.json", "--flat"],
    ] {
        let refused = bench.run(verb);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        contains(
            &refused.stderr,
            &[
                "error[flat_name_clash]: the tools `/a-b/c` and `/a/b-c` have the same flat name, `a-b-c`",
                "Change the alias of `/a/b-c`: `\"c\": \"…\"` in `path_aliases` of `/a`",
                "error[flat_name_clash]: the tool `/call_tool_read` has the flat name `call_tool_read`, which a meta-tool has",
                "c.json:1:",
            ],
        );
        assert!(!refused.stderr.contains("/free"), "{}", refused.stderr);
    }
    assert!(!bench.path("made").exists(), "nothing is generated");
}
