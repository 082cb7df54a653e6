//! The cost of equal values, and the places of failures in tuples.

use serde_json::{Value, json};

use super::{Budget, MIN_STEPS, Verdict, compile, compile_as_is};

/// The steps that an equal value takes.
fn steps_of_equal(value: &Value) -> u64 {
    let steps = |schema: Value| {
        let validator = compile(&schema).expect("the schema compiles");
        let evaluation = validator.evaluate(value, &Budget::steps(MIN_STEPS));
        assert_eq!(evaluation.verdict, Verdict::Valid, "{value}");
        evaluation.steps
    };
    let listed = steps(json!({"enum": [value]}));
    if value.is_object() {
        assert_eq!(steps(json!({"const": value})), listed, "{value}");
    }
    listed
}

#[test]
fn equal_value_costs_a_step_for_each_of_its_values() {
    let empty = steps_of_equal(&json!({}));
    // The value of the member, and its name.
    assert_eq!(steps_of_equal(&json!({"a": 1})), empty + 2);
    assert_eq!(steps_of_equal(&json!({"a": 1, "b": 2})), empty + 4);
    assert_eq!(steps_of_equal(&json!({"a": {}})), empty + 2);
    assert_eq!(steps_of_equal(&json!({"a": {"b": {}}})), empty + 4);
    assert_eq!(steps_of_equal(&json!([])), empty);
    assert_eq!(steps_of_equal(&json!([1, 2])), empty + 2);
    assert_eq!(steps_of_equal(&json!([{}, [[]]])), empty + 3);
    // One that has no parts is read, and compared without a further step.
    assert_eq!(steps_of_equal(&json!(true)) + 1, empty);
    let long = "x".repeat(1024);
    assert_eq!(steps_of_equal(&json!([long])), empty + 5);
}

#[test]
fn listed_value_that_differs_is_refused() {
    for (listed, value) in [
        (json!({}), json!({"a": 1})),
        (json!({}), json!([])),
        (json!({"a": {}}), json!({"a": []})),
    ] {
        let validator = compile(&json!({"enum": [listed]})).expect("the schema compiles");
        assert!(!validator.is_valid(&value), "{listed} {value}");
        assert!(validator.is_valid(&listed), "{listed}");
    }
}

/// The places at which the value fails: in the value, the keyword, in the schema.
fn places(schema: &Value, value: &Value) -> Vec<(String, String, String)> {
    let validator = compile(schema).expect("the schema compiles");
    let failures = validator.failures(schema, value, 10);
    let place = |one: &super::SchemaError| {
        let (pointer, keyword) = (one.pointer.clone(), one.keyword.clone());
        (pointer, keyword, one.schema_pointer.clone())
    };
    failures.iter().map(place).collect()
}

#[test]
fn failure_in_a_tuple_of_any_dialect_has_its_place() {
    let owned = |places: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
        let place = |(a, b, c): &(&str, &str, &str)| ((*a).into(), (*b).into(), (*c).into());
        places.iter().map(place).collect()
    };
    let first = json!([{"type": "string"}, {"type": "integer", "minimum": 3}]);
    for dialect in ["draft-04", "draft-06", "draft-07"] {
        let of = |more: Value| {
            json!({"$schema": format!("http://json-schema.org/{dialect}/schema#"),
                "properties": {"t": {"items": first, "additionalItems": more}}})
        };
        let value = json!({"t": [1, 2, "x"]});
        let in_tuple = [
            ("/t/0", "type", "/properties/t/items/0/type"),
            ("/t/1", "minimum", "/properties/t/items/1/minimum"),
        ];
        let at_end = ("/t/2", "type", "/properties/t/additionalItems/type");
        let expected = owned(&[in_tuple[0], in_tuple[1], at_end]);
        assert_eq!(
            places(&of(json!({"type": "null"})), &value),
            expected,
            "{dialect}"
        );
        assert_eq!(
            places(&of(json!({})), &value),
            owned(&in_tuple),
            "{dialect}"
        );
        let value = json!({"t": ["a", 3, 4]});
        let closed = places(&of(json!(false)), &value);
        let pointers: Vec<_> = closed
            .iter()
            .map(|(pointer, ..)| pointer.as_str())
            .collect();
        assert_eq!(pointers, ["/t/2"], "{dialect}: {closed:?}");
        assert_eq!(
            places(&of(json!({"type": "integer"})), &value),
            [],
            "{dialect}"
        );
    }
    // One schema for all items: `additionalItems` has no effect.
    let one = json!({"$schema": "http://json-schema.org/draft-07/schema#",
        "items": {"type": "integer"}, "additionalItems": false});
    let expected = owned(&[("/1", "type", "/items/type")]);
    assert_eq!(places(&one, &json!([1, "x", 2])), expected);
    // The valid part of an invalid schema has the same places.
    let broken = json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {
        "t": {"items": first}, "u": {"type": "no such type"}}});
    let validator = compile_as_is(&broken).expect("a part is valid");
    let failures = validator.failures(&broken, &json!({"t": [1, 3]}), 10);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].pointer, "/t/0");
}
