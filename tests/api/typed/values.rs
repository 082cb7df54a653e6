//! Golden types compile without a warning, and keep the required values.

#![deny(warnings)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

macro_rules! golden {
    ($($name:ident),*) => {
        $(mod $name {
            include!(concat!("golden/", stringify!($name), ".rs"));
        })*
    };
}

golden!(absent, hostile, names, plain, unions);

fn survives<T: DeserializeOwned + Serialize>(value: Value) {
    let typed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    assert_eq!(serde_json::to_value(typed).unwrap(), value);
}

fn refused<T: DeserializeOwned>(value: Value) {
    assert!(
        serde_json::from_value::<T>(value.clone()).is_err(),
        "{value}"
    );
}

#[test]
fn typed_member_absent_null_or_empty_is_distinguished() {
    use absent::tools::absent::absence::{Args, Required};
    for more in [
        json!({}),
        json!({"may": "x", "may_null": "x"}),
        json!({"may_null": null}),
        json!({"list": []}),
        json!({"list": [1, null]}),
        json!({"map": {}}),
        json!({"map": {"a": true}}),
        json!({"anything": null}),
        json!({"anything": {"a": [1.5]}}),
        json!({"named": {}}),
        json!({"named": {"a": 1, "b": "x"}}),
        json!({"stranger": {"n": 3.0}, "extra": null}),
    ] {
        let mut value = json!({"must_null": null, "undeclared": [1]});
        value
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        survives::<Args>(value);
    }
    refused::<Args>(json!({"undeclared": 1}));
    refused::<Args>(json!({"must_null": 1, "undeclared": 1}));
    let args = Args::new(Required {
        must_null: None,
        undeclared: json!(1),
    });
    assert_eq!(
        serde_json::to_value(&args).unwrap(),
        json!({"must_null": null, "undeclared": 1})
    );
    let named = absent::tools::absent::absence::ArgsNamed::default().with_a(2);
    let args = args
        .with_may("x".to_owned())
        .with_may_null(None)
        .with_named(named);
    assert_eq!(
        serde_json::to_value(args).unwrap(),
        json!({"must_null": null, "undeclared": 1, "may": "x", "may_null": null, "named": {"a": 2}})
    );
}

#[test]
fn typed_members_keep_their_names_on_the_wire() {
    use names::tools::names;
    survives::<names::members::Args>(json!({
        "order_by": "a", "orderBy": "b", "$filter": "c", "extra": "d", "名前": "e", "a\u{202e}b": "f",
        "": "g", "sign": "+", "case": "ASC", "word": "c\"d", "more": 1,
    }));
    survives::<names::members::Args>(json!({"order_by": "a", "word": null}));
    // The member `extra` belongs to the schema; it is not the field for undeclared members.
    let mut args: names::members::Args =
        serde_json::from_value(json!({"order_by_c5e4ca": "a", "order_by": "b", "extra": "d"}))
            .unwrap();
    assert_eq!(args.undeclared_members.len(), 1);
    args = args.with_extra_9c99a6("e".to_owned());
    assert_eq!(serde_json::to_value(args).unwrap()["extra"], "e");
    survives::<names::type_::Args>(json!({"type": "x", "self": "y"}));
    survives::<names::clash::Args>(
        json!({"filter": {"a": "x"}, "other": {"b": "x"}, "third": {"c": "x"}}),
    );
    refused::<names::clash::Args>(json!({"filter": {"b": "x"}}));
    assert_eq!(names::_3d::PATH, "/names/3d");
}

#[test]
fn typed_alternatives_keep_every_valid_value() {
    use unions::tools::unions::unions::Args;
    let with = |key: &str, value: Value| {
        let mut all = json!({"either": 1, "tagged": {"kind": "none"}, "numbers": 3, "tree": {"children": []}, "json": "x"});
        all[key] = value;
        all
    };
    for (key, value) in [
        ("either", json!("x")),
        ("numbers", json!(3)),
        ("numbers", json!(3.0)),
        ("numbers", json!(u64::MAX)),
        ("tagged", json!({"kind": "file", "path": "a", "more": [1]})),
        ("tagged", json!({"kind": "none", "path": "a"})),
        (
            "tree",
            json!({"children": [{"children": []}], "next": {"children": []}}),
        ),
        ("json", json!({"a": [1, 2.5, "x", {"b": []}]})),
        ("big", json!(1e30)),
    ] {
        survives::<Args>(with(key, value));
    }
    refused::<Args>(with("either", json!(true)));
    refused::<Args>(with("tagged", json!({"kind": "other"})));
}

#[test]
fn typed_value_without_a_type_is_kept_unchanged() {
    use hostile::tools::hostile;
    survives::<hostile::hostile::Args>(json!({
        "one": {"a": "x", "c": 1}, "two": {}, "remote": 1, "nowhere": null, "itself": [1], "parts": {"x": 1, "y": 2},
        "tuple": ["a", 1], "untyped": "x", "chosen": "x", "mixed": true, "x-a": "b",
    }));
    survives::<hostile::hostile::Output>(json!({"ok": true}));
    survives::<hostile::hostile::Output>(json!({"error": "x", "more": 1}));
    survives::<hostile::scalar::Output>(json!({"a": 1}));
    survives::<plain::tools::plain::ping::Args>(json!({"a": 1.0}));
    refused::<plain::tools::plain::now::Args>(json!({"a": 1}));
}
