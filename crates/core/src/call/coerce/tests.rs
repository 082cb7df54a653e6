//! Conversions of arguments: only what fails, only at its place, and what is written is what was checked.

use broker_model::json::parse;
use broker_schema::{Budget, compile};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Coercion, coerce};

/// Returns the converted text, and the warning.
fn converted(schema: &Value, text: &str) -> Option<(String, String)> {
    let validator = compile(schema).expect("the schema compiles");
    let args = parse(text).expect("the arguments are JSON");
    let budget = Budget::steps(1_000_000);
    match coerce(&validator, schema, text, &args, &budget) {
        Coercion::Done(done) => {
            let text = std::str::from_utf8(&done.text).expect("a text").to_owned();
            assert_eq!(parse(&text).expect("JSON"), done.value, "checked and sent");
            assert!(validator.is_valid(&done.value));
            Some((text, done.warning))
        }
        Coercion::Impossible => None,
        Coercion::OverBudget => panic!("the budget is large"),
    }
}

fn of(property: Value, value: &str) -> Option<String> {
    let schema = json!({"type": "object", "properties": {"a": property}});
    let text = format!("{{\"a\":{value}}}");
    converted(&schema, &text).map(|(text, _)| text)
}

#[test]
fn texts_become_the_numbers_and_booleans_that_the_schema_wants() {
    let integer = || json!({"type": "integer"});
    for (property, value, sent) in [
        (integer(), r#""3""#, "3"),
        (integer(), r#""-7""#, "-7"),
        (
            integer(),
            r#""123456789012345678901234567890""#,
            "123456789012345678901234567890",
        ),
        (json!({"type": "number"}), r#""1.50""#, "1.50"),
        (json!({"type": "number"}), r#""2e3""#, "2e3"),
        (json!({"type": "boolean"}), r#""true""#, "true"),
        (json!({"type": ["integer", "null"]}), r#""3""#, "3"),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            r#""3""#,
            "3",
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            r#"["1", 2, "3"]"#,
            "[1,2,3]",
        ),
    ] {
        let sent = format!("{{\"a\":{sent}}}");
        assert_eq!(
            of(property.clone(), value),
            Some(sent),
            "{property} {value}"
        );
    }
}

#[test]
fn other_texts_are_not_converted() {
    let integer = || json!({"type": "integer"});
    for (property, value) in [
        (integer(), r#""""#),
        (integer(), r#"" 3""#),
        (integer(), r#""3 ""#),
        (integer(), r#""+3""#),
        (integer(), r#""03""#),
        (integer(), r#""0x3""#),
        (integer(), r#""3.5""#),
        (integer(), r#""1_000""#),
        (integer(), r#""true""#),
        (integer(), "[]"),
        (integer(), "[\"3\"]"),
        (integer(), "true"),
        (json!({"type": "number"}), r#""NaN""#),
        (json!({"type": "number"}), r#"".5""#),
        (json!({"type": "number"}), r#""5.""#),
        (json!({"type": "boolean"}), r#""1""#),
        (json!({"type": "boolean"}), r#""True""#),
        (json!({"type": "boolean"}), "1"),
        (json!({"type": "string"}), "3"),
        (json!({"type": "integer", "maximum": 2}), r#""3""#),
        // A number would pass a pattern that the text does not match.
        (json!({"pattern": "^x"}), r#""3""#),
        (
            json!({"anyOf": [{"type": "string", "maxLength": 0}, {"type": "integer"}]}),
            r#""3""#,
        ),
        (json!({"not": {"type": "string"}}), r#""3""#),
    ] {
        assert_eq!(of(property.clone(), value), None, "{property} {value}");
    }
}

#[test]
fn null_becomes_absence_only_of_an_optional_member_that_does_not_admit_it() {
    let schema = json!({"type": "object", "required": ["r"], "properties": {
        "r": {"type": "integer"}, "o": {"type": "integer"}, "n": {"type": ["integer", "null"]}}});
    let (text, warning) = converted(&schema, r#"{"r":1,"o":null,"n":null}"#).expect("converted");
    assert_eq!(text, r#"{"r":1,"n":null}"#);
    assert_eq!(
        warning,
        "converted before the call: null at `/o` to absence"
    );
    assert_eq!(converted(&schema, r#"{"r":null}"#), None);
    let list = json!({"properties": {"l": {"items": {"type": "integer"}}}});
    assert_eq!(converted(&list, r#"{"l":[null]}"#), None);
}

#[test]
fn other_places_keep_their_bytes() {
    let schema = json!({"type": "object", "properties": {
        "a~/b": {"properties": {"n": {"type": "integer"}}}, "x": {}, "y": {"type": "string"}}});
    let text = r#"{ "x" : [1.00, {"k":"\u0041"}], "a~/b": {"n" : "3", "m": "3"}, "y":"4" }"#;
    let (sent, warning) = converted(&schema, text).expect("converted");
    assert_eq!(
        sent,
        r#"{"x":[1.00, {"k":"\u0041"}],"a~/b":{"n":3,"m":"3"},"y":"4"}"#
    );
    assert_eq!(
        warning,
        "converted before the call: `/a~0~1b/n` to an integer"
    );
}

fn property() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "integer"})),
        Just(json!({"type": "number", "minimum": 0})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "string"})),
        Just(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})),
        Just(json!({"type": "array", "items": {"type": "integer"}})),
    ]
}

fn argument() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"true\"".to_owned()),
        any::<i16>().prop_map(|n| format!("\"{n}\"")),
        any::<i16>().prop_map(|n| n.to_string()),
        "[ -9a-z.+]{0,4}".prop_map(|text| Value::from(text).to_string()),
    ];
    prop_oneof![
        scalar.clone(),
        proptest::collection::vec(scalar, 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    /// Whatever is converted was checked as it is sent, and only places that did not match differ.
    #[test]
    fn checked_bytes_are_the_sent_bytes(
        properties in proptest::collection::btree_map("[a-d]", property(), 1..4),
        arguments in proptest::collection::btree_map("[a-d]", argument(), 0..4),
    ) {
        let schema = json!({"type": "object", "properties": properties});
        let members: Vec<_> = arguments.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        let text = format!("{{{}}}", members.join(", "));
        let args = parse(&text).expect("JSON");
        let validator = compile(&schema).expect("it compiles");
        if validator.is_valid(&args) {
            return Ok(());
        }
        if let Some((sent, _)) = converted(&schema, &text) {
            let sent = parse(&sent).expect("JSON");
            for (name, value) in args.as_object().expect("an object") {
                let alone = json!({ name.clone(): value });
                if validator.is_valid(&alone) {
                    prop_assert_eq!(sent.get(name), Some(value));
                }
            }
        }
    }
}
