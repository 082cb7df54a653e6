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
fn tool_name_outside_the_path_grammar_gets_an_alias() {
    let bench = Bench::new();
    bench.configure([("a", json!({"path_aliases": {"files/read x": "read"}}))]);
    let names = ["files/read x", "ok", "..", "github/git_commit", "查询天气"];
    bench.script("a", &json!({"tools": names.map(tool)}));
    bench.lock();
    let lock = bench.lock_json();
    let exposed = lock["sources"][0]["exposed"].as_array().expect("a list");
    let alias = |name: &str| {
        let mut tools = exposed.iter();
        let tool = tools.find(|tool| tool["upstream_name"] == name);
        tool.expect("a tool")["exposed_name"].clone()
    };
    // printf 'github/git_commit' | sha256sum
    let found = names.map(alias);
    assert_eq!(
        found,
        [
            "read",
            "ok",
            "..-5ec1f7e7",
            "github_git_commit-2c67b297",
            "查询天气"
        ]
    );
    let tree = bench.fine(&["tree", "--config", "c.json"]);
    contains(&tree, &["github_git_commit-2c67b297", "查询天气"]);
}

#[test]
fn field_case_of_names_outside_the_grammar_is_locked() {
    let names = [
        "good",
        "github/git_commit",
        "github/git_push",
        "New Tool",
        "查询天气",
        "fs:read",
        "@scope/x",
    ];
    let many: Vec<String> = (0..47).map(|at| format!("group/tool {at}")).collect();
    let names = names.into_iter().chain(many.iter().map(String::as_str));
    let tools: Vec<Value> = names.map(tool).collect();
    let bench = Bench::new();
    bench.configure([("odd", json!({})), ("fine", json!({}))]);
    bench.script("odd", &json!({"tools": tools}));
    bench.one_tool("fine", tool("ping_me"));
    let first = bench.lock();
    let lock = bench.read("c.lock.json");
    contains(
        &lock,
        &[
            "\"fs_read-",
            "\"_scope_x-",
            "\"New_Tool-",
            "\"group_tool_46-",
        ],
    );
    bench.lock();
    assert_eq!(lock, bench.read("c.lock.json"), "{first:?}");
}

#[test]
fn unsafe_name_is_left_out_until_an_alias_names_it() {
    let bench = Bench::new();
    let names = [
        "copy",
        "сору",
        "rеad",
        "files/read \u{202e}x",
        "ｔoken_get",
        "查询",
    ];
    let tools = names.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    bench.script("a", &json!({"tools": tools}));
    bench.configure([("a", json!({}))]);
    let output = bench.verb(&["lock"]);
    assert_eq!(output.code, Some(8), "{}", output.stderr);
    let said = output.stderr;
    assert!(!said.contains('\u{202e}'), "{said}");
    let lock = bench.lock_json();
    let source = &lock["sources"][0];
    assert_eq!(
        super::bench::names(&source["exposed"], "upstream_name"),
        ["copy", "查询"]
    );
    let left_out = source["left_out"].as_array().expect("a list");
    assert_eq!(left_out.len(), 4, "{left_out:?}");
    assert!(
        left_out.iter().all(|one| one["code"] == "name_unsafe"),
        "{left_out:?}"
    );
    contains(
        &said,
        &[
            "name_unsafe",
            "looks like `copy`",
            "mixes scripts",
            "U+202E",
            "looks like `token`",
        ],
    );

    let aliases =
        json!({"сору": "copy_ru", "rеad": "read", "files/read \u{202e}x": "x", "ｔoken_get": "t"});
    bench.configure([("a", json!({"path_aliases": aliases}))]);
    bench.lock();
    let lock = bench.lock_json();
    assert_eq!(
        lock["sources"][0]["exposed"].as_array().map(Vec::len),
        Some(6)
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

/// Names that a reader may take for `paint`, `café` and `copy`: full width, NFD, Cyrillic.
const ALIKE: [&str; 3] = ["ｐaint", "cafe\u{301}", "сору"];

/// The patterns of one form for these three names.
const FORMS: [[&str; 3]; 7] = [
    ["paint", "café", "copy"],
    ["pa*", "ca*", "co*"],
    ["p?int", "caf?", "c?py"],
    ["p[a-c]int", "caf[à-ü]", "c[n-p]py"],
    ["p[!x]int", "caf[!x]", "c[!x]py"],
    ["{paint,x}", "{café,x}", "{copy,x}"],
    ["**int", "**fé", "**py"],
];

/// A source with the look-alikes, and `keep`.
fn with_look_alikes() -> Bench {
    let bench = Bench::new();
    let names = ALIKE.into_iter().chain(["keep"]);
    let tools: Vec<Value> = names
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    bench.script("a", &json!({"tools": tools}));
    bench
}

#[test]
fn negative_filter_of_each_form_hides_look_alikes() {
    let bench = with_look_alikes();
    for form in FORMS {
        let filter = form.map(|pattern| format!("!{pattern}"));
        bench.configure([("a", json!({"tool_filter": filter}))]);
        bench.lock();
        let source = &bench.lock_json()["sources"][0];
        let exposed = super::bench::names(&source["exposed"], "upstream_name");
        assert_eq!(exposed, ["keep"], "{filter:?}");
        assert_eq!(
            source["hidden"].as_array().map(Vec::len),
            Some(3),
            "{filter:?}"
        );
    }
}

#[test]
fn deny_rule_of_each_form_denies_look_alikes() {
    let bench = with_look_alikes();
    // In paths `**` has whole segments.
    let segments = [
        ["/**/paint", "/**/café", "/**/copy"],
        ["/*/paint", "/*/café", "/*/copy"],
    ];
    let forms = FORMS[..6]
        .iter()
        .map(|form| form.map(|pattern| format!("/a/{pattern}")));
    let forms = forms.chain(segments.map(|form| form.map(str::to_owned)));
    for deny in forms {
        let access = json!({
            "groups": ["g"], "local": ["g"],
            "rules": [{"allow": ["/**"], "to": ["g"]}, {"deny": deny, "to": ["g"]}],
        });
        let config = json!({"tree": [node("a", json!({}))], "access": access});
        bench.write("c.json", &config.to_string());
        bench.lock();
        // What a client sees.
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let input = format!("{hello}\n{ready}\n{list}\n");
        let args = [
            "serve",
            "stdio",
            "--config",
            "c.json",
            "--mcp-mode",
            "direct",
        ];
        let served = bench.run_with_input(&args, &input);
        let mut answers = served.stdout.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        let answer = answers.find(|answer| answer["id"] == 1);
        let answer = answer.unwrap_or_else(|| panic!("{}{}", served.stdout, served.stderr));
        let names = super::bench::names(&answer["result"]["tools"], "name");
        assert_eq!(names, ["a-keep"], "{deny:?}");
    }
}
