//! Changes of access by rules, hints and denials with exceptions.

use broker_config::Config;
use serde_json::{Value, json};

use super::*;

fn access(rules: &Value) -> Access {
    let access = json!({"groups": ["a", "b", "c"], "rules": rules});
    let text = json!({"tree": [], "access": access}).to_string();
    let parsed = Config::parse("c.json", text.as_bytes()).expect("a config");
    parsed.config.access.expect("the section")
}

fn tools(all: &[(&str, Value)]) -> AccessTools {
    let tool = |(path, hints): &(&str, Value)| {
        let tool = AccessTool {
            source: NodePath::root(),
            readable: None,
            hints: Hints::read(Some(hints)),
        };
        ((*path).to_owned(), tool)
    };
    all.iter().map(tool).collect()
}

#[track_caller]
fn check(rules: &Value, old: &[(&str, Value)], new: &[(&str, Value)], lines: &[&str]) {
    let changes = access_changes(&access(rules), &tools(old), &tools(new));
    let found: Vec<_> = changes.iter().map(AccessChange::line).collect();
    assert_eq!(found, lines);
}

#[test]
fn changes_of_narrowed_rights_name_the_rule() {
    let reads = json!({"readOnlyHint": true});
    let rules = json!([
        {"allow": ["/x"], "to": ["a"], "where": {"readOnlyHint": true}},
        {"allow": ["/x"], "to": ["a", "b"], "args": {"required": ["org"]}},
        {"allow": ["/x"], "to": ["b"], "where": {"readOnlyHint": true}, "args": {"required": ["team"]}},
    ]);
    let hint = "`readOnlyHint` went from true to false";
    check(
        &rules,
        &[("/x", reads.clone())],
        &[("/x", json!({}))],
        &[
            &format!(
                "group `a` may call /x with fewer arguments, since access.rules[0] no longer allows it; {hint}"
            ),
            &format!(
                "group `b` may call /x with fewer arguments, since access.rules[2] no longer allows it; {hint}"
            ),
        ],
    );
    let hint = "`readOnlyHint` went from false to true";
    check(
        &rules,
        &[("/x", json!({}))],
        &[("/x", reads.clone())],
        &[
            &format!("group `a` may call /x with more arguments by access.rules[0]; {hint}"),
            &format!("group `b` may call /x with more arguments by access.rules[2]; {hint}"),
        ],
    );
    check(&rules, &[("/x", reads.clone())], &[("/x", reads)], &[]);
}

#[test]
fn denial_that_moves_with_a_hint_is_named() {
    let rules = json!([
        {"allow": ["/**"], "to": ["*"]},
        {"deny": ["/**"], "to": ["b", "c"], "where": {"destructiveHint": true}},
    ]);
    let (harmless, harmful) = (json!({"destructiveHint": false}), json!({}));
    check(
        &rules,
        &[("/x", harmless.clone())],
        &[("/x", harmful.clone())],
        &[
            "groups `b`, `c` lose /x by access.rules[1], which denies it; `destructiveHint` went from false to true",
        ],
    );
    check(
        &rules,
        &[("/x", harmful)],
        &[("/x", harmless)],
        &[
            "groups `b`, `c` gain /x, since access.rules[1] no longer denies it; `destructiveHint` went from true to false",
        ],
    );
}

#[test]
fn tool_that_only_callers_in_several_groups_gain_is_named() {
    let rules = json!([
        {"allow": ["/x"], "to": ["a"]},
        {"deny": ["/**"], "to": ["a"], "except": ["b"]},
    ]);
    check(
        &rules,
        &[],
        &[("/x", json!({}))],
        &["callers in all of the groups `a`, `b` gain /x by access.rules[0]"],
    );
    check(
        &rules,
        &[("/x", json!({}))],
        &[],
        &[
            "callers in all of the groups `a`, `b` lose /x: it is gone, and access.rules[0] allowed it",
        ],
    );
}

#[test]
fn lines_of_many_changes_are_summed_up() {
    let rules = json!([{"allow": ["/**"], "to": ["a"]}]);
    let paths: Vec<String> = (0..9).map(|at| format!("/{at}")).collect();
    let new: Vec<_> = paths
        .iter()
        .map(|path| (path.as_str(), json!({})))
        .collect();
    let changes = access_changes(&access(&rules), &tools(&[]), &tools(&new));
    let lines = access_lines(&changes, 2);
    assert_eq!((lines.len(), lines[2].as_str()), (3, "… and 7 more"));
    assert_eq!(access_lines(&changes, 9).len(), 9);
}
