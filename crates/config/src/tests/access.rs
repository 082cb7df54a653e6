//! Rules applied to tools, and the problems of the section.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use broker_model::access::*;

fn config(access: &str) -> Access {
    let text = format!(r#"{{"tree": [], "access": {access}}}"#);
    let parsed = crate::Config::parse("c.json", text.as_bytes()).unwrap();
    parsed.config.access.unwrap()
}

fn tool(path: &str, annotations: serde_json::Value) -> ToolFacts<'_> {
    ToolFacts {
        path,
        readable: None,
        hints: Hints::read(Some(&annotations)),
    }
}

const GROUPS: &str = r#""groups": ["reader", "deployer", "admin"]"#;

#[test]
fn rules_allow_deny_and_narrow_by_path_hint_and_group() {
    let access = config(&format!(
        r#"{{{GROUPS}, "rules": [
            {{"allow": ["/repo/read/**"], "to": ["*"]}},
            {{"allow": ["/repo/**"], "to": ["deployer"], "where": {{"readOnlyHint": true}}}},
            {{"allow": ["/pay/refund"], "to": ["deployer"], "args": {{"required": ["org"]}}}},
            {{"allow": ["/**"], "to": ["admin"]}},
            {{"deny": ["/**/delete_*"], "to": ["*"], "except": ["admin"]}}]}}"#
    ));
    let tools = [
        tool("/repo/read/file", json!({})),
        tool("/repo/read/delete_file", json!({})),
        tool("/repo/log", json!({"readOnlyHint": true})),
        tool("/repo/push", json!({"readOnlyHint": "yes"})),
        tool("/pay/refund", json!({})),
    ];
    let matrix = Matrix::new(&access, &tools);
    use Decision::{Absent, Callable, Narrowed};
    let decisions = |groups: &[&str]| -> Vec<_> {
        let set = access.set_of(groups.iter().copied());
        let rows = matrix.rows.iter();
        rows.map(|row| row.as_ref().decide(set, |_| true)).collect()
    };
    assert_eq!(
        decisions(&["reader"]),
        [Callable, Absent, Absent, Absent, Absent]
    );
    assert_eq!(
        decisions(&["deployer"]),
        [Callable, Absent, Callable, Absent, Narrowed]
    );
    assert_eq!(decisions(&["admin", "reader"]), [Callable; 5]);
    assert_eq!(decisions(&[]), [Absent; 5]);
    // A narrowing whose claim the caller lacks does not apply.
    let deployer = access.set_of(["deployer"]);
    assert_eq!(matrix.rows[4].as_ref().decide(deployer, |_| false), Absent);
}

#[test]
fn patterns_of_paths_match_by_segments() {
    for (pattern, path, expected) in [
        ("/a/*", "/a/b", true),
        ("/a/*", "/a/b/c", false),
        ("/a/**", "/a/b/c", true),
        ("/a/**", "/a", false),
        ("/a/**", "/ab/c", false),
        ("/**/x", "/x", true),
        ("/**/x", "/a/b/x", true),
        ("/**", "/a", true),
        ("/{a,b}/?", "/b/c", true),
    ] {
        let patterns = PathPatterns::compile(&[pattern]).unwrap();
        assert_eq!(patterns.matches(path), expected, "{pattern} {path}");
    }
    for refused in ["a/*", "", "/["] {
        assert!(PathPatterns::compile(&[refused]).is_err(), "{refused}");
    }
}

/// Paths that a reader may take for `/repo/dropcafé`, with the reason, and whether the form NFKC shows it.
const ALIKE: [(&str, &str, bool); 4] = [
    ("full width", "/repo/ｄropcafé", true),
    ("full width in the node", "/ｒepo/dropcafé", true),
    ("NFD", "/repo/dropcafe\u{301}", true),
    ("Cyrillic", "/rеро/drорсаfé", false),
];

/// Whether a rule with this pattern is about a tool at this path.
fn is_about(effect: Effect, pattern: &str, path: &str) -> bool {
    rule(effect, pattern).matches(&tool(path, json!({})))
}

fn rule(effect: Effect, pattern: &str) -> Rule {
    Rule {
        effect,
        paths: PathPatterns::compile(&[pattern]).unwrap(),
        to: GroupSet::NONE,
        except: GroupSet::NONE,
        hints: Vec::new(),
        args: None,
        pointer: String::new(),
    }
}

#[test]
fn deny_rule_of_each_form_matches_look_alikes_and_an_allow_does_not() {
    for pattern in [
        "/repo/dropcafé",
        "/repo/drop*",
        "/repo/*café",
        "/repo/dr?pcafé",
        "/repo/dr[aou]pcaf[à-ü]",
        "/repo/[!x]rop*",
        "/repo/{drop,put}{café,tea}",
        "/{repo,other}/drop*",
        "/r[a-f]po/dropcafé",
        "/repo/**",
        "/**/dropcafé",
        "/**/repo/**",
    ] {
        let matches = |effect, path| is_about(effect, pattern, path);
        for (form, path, in_nfkc) in ALIKE {
            assert!(matches(Effect::Deny, path), "{pattern} {form}");
            assert_eq!(matches(Effect::Allow, path), in_nfkc, "{pattern} {form}");
        }
        // The path of a name that is not in the form NFKC has an alias with digits; its rule is that of the name.
        let facts = ToolFacts {
            readable: Some("/repo/dropcafé".to_owned()),
            ..tool("/repo/dropcafé-1a2b3c4d", json!({}))
        };
        assert!(rule(Effect::Deny, pattern).matches(&facts), "{pattern}");
        for effect in [Effect::Deny, Effect::Allow] {
            assert!(matches(effect, "/repo/dropcafé"), "{pattern}");
            assert!(!matches(effect, "/réel/readtea"), "{pattern}");
        }
    }
    // A pattern may be written with look-alikes as well.
    for (form, pattern, _) in ALIKE {
        assert!(is_about(Effect::Deny, pattern, "/repo/dropcafé"), "{form}");
    }
}

#[test]
fn claims_are_filled_into_const_and_enum_only() {
    let schema = json!({"properties": {
        "org": {"const": {"$claim": "org"}},
        "team": {"enum": {"$claim": "teams"}},
        "kind": {"enum": ["a", {"$claim": "kind"}]},
    }});
    assert_eq!(check_claims(&schema), Ok(()));
    let mut names = claim_names(&schema);
    names.sort_unstable();
    assert_eq!(names, ["kind", "org", "teams"]);
    let mut claims: BTreeMap<_, _> = [
        ("org".to_owned(), json!("o1")),
        ("teams".to_owned(), json!(["t1", "t2"])),
        ("kind".to_owned(), json!(7)),
    ]
    .into();
    assert_eq!(
        fill_claims(&schema, &claims).unwrap(),
        json!({"properties": {
            "org": {"const": "o1"},
            "team": {"enum": ["t1", "t2"]},
            "kind": {"enum": ["a", 7]},
        }})
    );
    claims.insert("teams".to_owned(), json!([]));
    assert_eq!(fill_claims(&schema, &claims), None);
    claims.insert("teams".to_owned(), json!("t1"));
    let filled = fill_claims(&schema, &claims).unwrap();
    assert_eq!(filled["properties"]["team"], json!({"enum": ["t1"]}));
    claims.remove("org");
    assert_eq!(fill_claims(&schema, &claims), None);
    for wrong in [
        json!({"$claim": "org"}),
        json!({"type": {"$claim": "org"}}),
        json!({"const": {"$claim": 1}}),
        json!({"const": {"$claim": "org", "x": 1}}),
    ] {
        assert!(check_claims(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn hints_of_the_config_replace_single_ones_and_absent_ones_are_unsafe() {
    let server = json!({"title": "t", "readOnlyHint": false});
    let config = json!({"readOnlyHint": true});
    let reviewed = reviewed_annotations(Some(&server), config.as_object()).unwrap();
    assert_eq!(reviewed, json!({"title": "t", "readOnlyHint": true}));
    let hints = Hints::read(Some(&reviewed));
    assert!(hints.get(Hint::ReadOnly) && hints.get(Hint::Destructive));
    assert!(hints.get(Hint::OpenWorld) && !hints.get(Hint::Idempotent));
    assert_eq!(reviewed_annotations(None, None), None);
}

#[test]
fn hints_claim_more_safety_than_others_by_their_meaning() {
    let hints = |value: serde_json::Value| Hints::read(Some(&value));
    let read_only = || hints(json!({"readOnlyHint": true}));
    let none = || hints(json!({}));
    assert_eq!(read_only().safer_than(none()), [Hint::ReadOnly]);
    assert_eq!(none().safer_than(read_only()), []);
    let all = json!({"destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    let some = [Hint::Destructive, Hint::Idempotent, Hint::OpenWorld];
    assert_eq!(hints(all.clone()).safer_than(none()), some);
    // The server does not say what the tool does if it writes.
    assert_eq!(hints(all.clone()).safer_than(read_only()), some);
    let mut all = all;
    all["readOnlyHint"] = true.into();
    assert_eq!(hints(all).safer_than(read_only()), [Hint::OpenWorld]);
}

#[test]
fn problems_of_the_section_are_reported_at_their_places() {
    let refused = |access: &str| -> Vec<(String, String)> {
        let text = format!(r#"{{"tree": [], "access": {access}}}"#);
        let problems = crate::Config::parse("c.json", text.as_bytes()).unwrap_err();
        let problems = problems.into_iter();
        problems
            .map(|it| (it.code.to_string(), it.pointer.unwrap_or_default()))
            .collect()
    };
    let rule = |rule: &str| refused(&format!(r#"{{{GROUPS}, "rules": [{rule}]}}"#));
    for (found, code, pointer) in [
        (refused(r#"{"rules": []}"#), "config_type", "/access"),
        (refused(r#"{"groups": ["a"]}"#), "config_type", "/access"),
        (
            refused(r#"{"groups": ["a", "a"], "rules": []}"#),
            "config_range",
            "/access/groups/1",
        ),
        (
            refused(r#"{"groups": ["a b"], "rules": []}"#),
            "config_range",
            "/access/groups",
        ),
        (
            rule(r#"{"allow": ["/a"], "to": ["admim"]}"#),
            "access_group_unknown",
            "/access/rules/0/to/0",
        ),
        (
            rule(r#"{"allow": ["/a"], "deny": ["/b"], "to": ["*"]}"#),
            "config_type",
            "/access/rules/0",
        ),
        (
            rule(r#"{"allow": ["/a"]}"#),
            "config_type",
            "/access/rules/0",
        ),
        (
            rule(r#"{"allow": ["/a"], "to": ["*"], "except": ["admin"]}"#),
            "config_type",
            "/access/rules/0/except",
        ),
        (
            rule(r#"{"deny": ["/a"], "to": ["*"], "args": {}}"#),
            "config_type",
            "/access/rules/0/args",
        ),
        (
            rule(r#"{"allow": ["a"], "to": ["*"]}"#),
            "glob_syntax",
            "/access/rules/0/allow/0",
        ),
        (
            rule(r#"{"allow": ["/a"], "to": ["*"], "where": {"readOnly": true}}"#),
            "config_unknown_key",
            "/access/rules/0/where/readOnly",
        ),
        (
            rule(r#"{"allow": ["/a"], "to": ["*"], "args": {"type": {"$claim": "x"}}}"#),
            "config_range",
            "/access/rules/0/args",
        ),
    ] {
        let expected = (code.to_owned(), pointer.to_owned());
        assert!(found.contains(&expected), "{code} {pointer}: {found:?}");
    }
}

fn row() -> impl Strategy<Value = Row> {
    let mask = || 0..16u64;
    let deny = proptest::collection::vec((mask(), mask()), 0..3);
    let narrowed = proptest::collection::vec((mask(), 0..2u32), 0..3);
    (mask(), deny, narrowed).prop_map(|(allow, deny, narrowed)| Row {
        allow,
        deny: deny
            .into_iter()
            .map(|(to, except)| DenyMask { to, except })
            .collect(),
        narrowed: narrowed
            .into_iter()
            .map(|(to, narrowing)| NarrowMask { to, narrowing })
            .collect(),
    })
}

fn of_row(row: Row) -> Matrix {
    let narrowing = |at: u64| Narrowing {
        rule: 0,
        schema: json!({"minProperties": at}),
    };
    Matrix {
        rows: vec![row],
        narrowings: vec![narrowing(0), narrowing(1)],
    }
}

/// The right of callers in `groups`: everything, or the narrowings one of which a call must match.
fn reference(row: &Row, groups: u64) -> (bool, Vec<u32>) {
    let denied = row
        .deny
        .iter()
        .any(|deny| groups & deny.to != 0 && groups & deny.except == 0);
    if denied {
        return (false, Vec::new());
    }
    let narrowed = row.narrowed.iter().filter(|mask| mask.to & groups != 0);
    (
        row.allow & groups != 0,
        narrowed.map(|mask| mask.narrowing).collect(),
    )
}

proptest! {
    #[test]
    fn matrix_is_within_another_exactly_if_no_set_of_groups_gets_more(given in row(), built in row()) {
        let widens = (0..16u64).any(|groups| {
            let (all, narrowed) = reference(&given, groups);
            let (built_all, built_narrowed) = reference(&built, groups);
            !built_all && (all || narrowed.iter().any(|it| !built_narrowed.contains(it)))
        });
        // Groups beyond the four are in no row.
        let widened = of_row(given).widened_from(&of_row(built));
        prop_assert_eq!(!widened.is_empty(), widens);
    }

    #[test]
    fn order_of_rules_does_not_matter(
        rules in proptest::collection::vec((any::<bool>(), "/(a|b|[*][*])", 0..3usize, any::<bool>()), 0..6),
        groups in 0..8u64,
    ) {
        let written: Vec<String> = rules
            .iter()
            .map(|(allow, path, group, narrowed)| {
                let effect = if *allow { "allow" } else { "deny" };
                let group = ["reader", "deployer", "admin"][*group];
                let args = if *allow && *narrowed { r#", "args": {"required": ["x"]}"# } else { "" };
                format!(r#"{{"{effect}": ["{path}"], "to": ["{group}"]{args}}}"#)
            })
            .collect();
        let decide = |rules: Vec<String>| {
            let access = config(&format!(r#"{{{GROUPS}, "rules": [{}]}}"#, rules.join(",")));
            let tools = [tool("/a", json!({})), tool("/b", json!({}))];
            let matrix = Matrix::new(&access, &tools);
            let rows = matrix.rows.iter();
            rows.map(|row| row.as_ref().decide(GroupSet::new(groups), |_| true)).collect::<Vec<_>>()
        };
        let reversed = written.iter().rev().cloned().collect();
        prop_assert_eq!(decide(written), decide(reversed));
    }
}

#[test]
fn call_is_destructive_unless_both_hints_say_otherwise() {
    for (annotations, safety) in [
        (json!({}), CallSafety::Destructive),
        (json!({"readOnlyHint": false}), CallSafety::Destructive),
        (json!({"destructiveHint": "false"}), CallSafety::Destructive),
        (json!({"destructiveHint": false}), CallSafety::Write),
        (json!({"readOnlyHint": true}), CallSafety::Read),
        (
            json!({"readOnlyHint": true, "destructiveHint": true}),
            CallSafety::Read,
        ),
    ] {
        let hints = Hints::read(Some(&annotations));
        assert_eq!(CallSafety::from_hints(hints), safety, "{annotations}");
    }
    assert_eq!(
        CallSafety::from_hints(Hints::read(None)),
        CallSafety::Destructive
    );
}
