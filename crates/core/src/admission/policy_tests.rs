//! Rules of a config that is not the compiled-in one: they may only narrow the compiled-in rules.

use broker_model::DiagnosticCode;
use serde_json::{Value, json};

use crate::StartMode;
use crate::catalog::{AccessTable, Catalog, Item};
use crate::tests::fixture::{built_over, catalog, config_with};

/// The catalog of the fixture with rules: the group `first` may use every tool.
fn with_rules(table: AccessTable) -> &'static Catalog {
    let base = catalog();
    let items = base.items.iter().map(|item| Item { allow: 1, ..*item });
    let items: Vec<_> = items.collect();
    Box::leak(Box::new(Catalog {
        access: Some(table),
        items: items.leak(),
        ..*base
    }))
}

/// The pointers of the members of `access` that are refused.
fn refused(table: AccessTable, access: &Value) -> Vec<String> {
    let config = config_with(json!({}), json!({}), Some(access.clone()));
    let built = built_over(with_rules(table), &config, |builder| {
        builder.mode(StartMode::Plain)
    });
    let problems = built.err().unwrap_or_default().into_iter();
    problems
        .map(|problem| {
            assert_eq!(problem.code, DiagnosticCode::LockWiden, "{problem:?}");
            problem.pointer.expect("a place")
        })
        .collect()
}

#[test]
fn config_may_narrow_each_part_of_the_compiled_in_rules_and_widen_none() {
    let table = AccessTable {
        digest: "",
        groups: &["first", "second"],
        narrowings: &[],
        local: 1,
        secret: 1,
        anonymous: 1,
        operators: Some(1),
        is_forbidden_shown: false,
    };
    let shows_denials = AccessTable {
        is_forbidden_shown: true,
        ..table
    };
    let to = |group: &str| json!([{"allow": ["/**"], "to": [group]}]);
    let first = json!(["first"]);
    let same = json!({"groups": ["first", "second"], "local": first, "secret": first,
        "anonymous": first, "operators": first, "rules": to("first"), "denied": "hidden"});
    assert_eq!(refused(table, &same), [""; 0]);
    let narrower = json!([{"allow": ["/a/echo"], "to": ["first"]}]);
    for (member, wider, narrower) in [
        ("local", json!(["first", "second"]), json!([])),
        ("secret", json!(["second"]), json!([])),
        ("anonymous", json!(["second"]), json!([])),
        ("operators", json!(["second"]), json!([])),
        ("rules", to("second"), narrower),
        ("denied", json!("forbidden"), json!("hidden")),
    ] {
        let mut access = same.clone();
        access[member] = wider;
        let found = refused(table, &access);
        assert_eq!(found, [format!("/access/{member}")]);
        access[member] = narrower;
        assert_eq!(refused(table, &access), [""; 0], "{member}");
    }
    let mut access = same.clone();
    access["denied"] = json!("forbidden");
    assert_eq!(refused(shows_denials, &access), [""; 0]);
    access["groups"] = json!(["first", "second", "third"]);
    assert_eq!(refused(shows_denials, &access), ["/access/groups/2"]);
}
