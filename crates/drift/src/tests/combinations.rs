//! Keywords of schemas in combination: steps beside listed values, unions, references to any place, old tuples.

use serde_json::{Value, json};

use super::check;
use crate::class::Class;

use Class::{Breaking, Compatible, Equivalent, Same, Unknown};

/// The classes of a change of arguments and of results.
fn classes(old: &Value, new: &Value) -> (Class, Class) {
    let of = |member: &str| {
        let tool = |schema: &Value| json!([{"name": "a", member: schema}]);
        let report = check(tool(old), tool(new));
        report.tools.first().map_or(Same, |tool| tool.class)
    };
    (of("inputSchema"), of("outputSchema"))
}

fn assert_classes(rows: Vec<(Value, Value, Class, Class)>) {
    for (old, new, input, output) in rows {
        assert_eq!(classes(&old, &new), (input, output), "{old} -> {new}");
    }
}

fn of(schema: Value) -> Value {
    json!({"type": "object", "properties": {"p": schema}, "additionalProperties": false})
}

#[test]
fn step_beside_listed_values_is_compared_exactly() {
    let even = || json!({"type": "integer", "multipleOf": 2, "minimum": 0});
    let below = |schema: Value| of(json!({"anyOf": [{"type": "string"}, schema]}));
    assert_classes(vec![
        (of(json!({"enum": [3]})), of(even()), Breaking, Breaking),
        (of(even()), of(json!({"enum": [3]})), Breaking, Breaking),
        (of(json!({"const": 3})), of(even()), Breaking, Breaking),
        // 4 is a multiple, which no rule proves.
        (of(json!({"const": 4})), of(even()), Unknown, Breaking),
        (
            of(json!({"enum": [2, 3]})),
            of(json!({"enum": [2, 3], "multipleOf": 2})),
            Breaking,
            Compatible,
        ),
        (
            of(json!({"enum": [2, 3], "multipleOf": 2})),
            of(json!({"enum": [2, 3]})),
            Compatible,
            Breaking,
        ),
        (
            of(json!({"const": 3})),
            of(json!({"const": 3, "multipleOf": 2})),
            Breaking,
            Compatible,
        ),
        (
            below(json!({"enum": [3]})),
            below(even()),
            Breaking,
            Breaking,
        ),
        (
            below(even()),
            below(json!({"enum": [3]})),
            Breaking,
            Breaking,
        ),
        (of(json!({"enum": [3]})), below(even()), Breaking, Breaking),
        (
            below(json!({"const": 3})),
            below(json!({"const": 3, "multipleOf": 2})),
            Breaking,
            Compatible,
        ),
    ]);
}

#[test]
fn step_of_one_and_count_of_the_members_change_nothing() {
    let closed = |count: Option<u64>| {
        let mut schema = of(json!({"type": "string"}));
        if let Some(count) = count {
            schema["maxProperties"] = json!(count);
        }
        schema
    };
    assert_classes(vec![
        (
            of(json!({"type": "integer"})),
            of(json!({"type": "integer", "multipleOf": 1})),
            Equivalent,
            Equivalent,
        ),
        (
            of(json!({"type": "number"})),
            of(json!({"type": "number", "multipleOf": 1})),
            Breaking,
            Compatible,
        ),
        (
            of(json!({"type": "integer"})),
            of(json!({"type": "integer", "multipleOf": 2})),
            Breaking,
            Compatible,
        ),
        (closed(None), closed(Some(1)), Equivalent, Equivalent),
        (closed(Some(1)), closed(None), Equivalent, Equivalent),
        (closed(None), closed(Some(0)), Breaking, Compatible),
    ]);
}

/// Branches that `kind` tells apart.
fn union(kinds: &[Value]) -> Value {
    let branch = |kind: &Value| {
        json!({"type": "object", "properties": {"kind": kind, "x": {"type": "string"}},
            "required": ["kind"]})
    };
    let branches: Vec<Value> = kinds.iter().map(branch).collect();
    of(json!({"oneOf": branches}))
}

/// Arguments of a changed union of objects are refused in either direction: the union as a whole declares no member, so
/// that those of a branch count as lost. Results tell a proof from a counterexample.
#[test]
fn union_with_a_discriminator_gains_and_loses_branches() {
    let kind = |name: &str| json!({"const": name});
    let (a, b, c) = (kind("a"), kind("b"), kind("c"));
    let of = |kinds: &[&Value]| union(&kinds.iter().copied().cloned().collect::<Vec<_>>());
    let (two, three) = (of(&[&a, &b]), of(&[&a, &b, &c]));
    let long = json!({"type": "string", "minLength": 2});
    let any = json!({"type": "string", "minLength": 1});
    let shared = json!({"enum": ["a", "c"]});
    assert_classes(vec![
        (two.clone(), three.clone(), Breaking, Breaking),
        (three.clone(), two.clone(), Breaking, Compatible),
        // The other branch of the lock refuses every value of the first, or does not: then results match two branches.
        (of(&[&a, &long]), of(&[&a]), Breaking, Compatible),
        (of(&[&a, &any]), of(&[&a]), Breaking, Breaking),
        (of(&[&a, &shared]), of(&[&a]), Breaking, Breaking),
        (of(&[&a, &b, &shared]), two.clone(), Breaking, Breaking),
        // The new branch shares values with another one.
        (two.clone(), of(&[&a, &b, &shared]), Breaking, Breaking),
        (two.clone(), of(&[&a, &b, &any]), Breaking, Breaking),
        (two, of(&[&a, &b, &long]), Breaking, Breaking),
    ]);
}

#[test]
fn union_whose_branches_have_no_discriminator_is_not_covered() {
    let member = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
    let needs = |name: &str| {
        let mut schema = member(name);
        schema["required"] = json!([name]);
        schema
    };
    let old = of(needs("a"));
    for other in [member("a"), member("b"), needs("b"), needs("a")] {
        let new = of(json!({"oneOf": [needs("a"), other]}));
        let (input, _) = classes(&old, &new);
        assert!(input.withdraws(), "{new}: {input:?}");
    }
}

/// A schema that refers to `pointer`, and the target in a keyword of the server's own.
fn referring(pointer: &str, target: &Value) -> Value {
    json!({"type": "object", "properties": {"p": {"$ref": pointer}}, "x-types": {"t": target},
        "$defs": {"t": target, "far": {"$ref": "#/x-types/t"}}})
}

#[test]
fn unchanged_reference_to_a_changed_place_is_a_change() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let pointers = ["#/x-types/t", "#/$defs/t", "#/$defs/far"];
    for pointer in pointers {
        let of = |target: &Value| referring(pointer, target);
        assert_eq!(
            classes(&of(&text), &of(&number)),
            (Breaking, Breaking),
            "{pointer}"
        );
        assert_eq!(
            classes(&of(&text), &of(&json!({"type": ["string", "null"]}))),
            (Compatible, Breaking),
            "{pointer}"
        );
    }
    // Only the place outside `$defs` changes.
    let of = |target: &Value| json!({"type": "object", "properties": {"p": {"$ref": "#/x-types/t"}}, "x-types": {"t": target}});
    assert_eq!(classes(&of(&text), &of(&number)), (Breaking, Breaking));
}

#[test]
fn unchanged_condition_that_refers_to_a_changed_place_is_a_change() {
    let (text, number) = (
        json!({"type": "string", "minLength": 1}),
        json!({"type": "integer", "minimum": 1}),
    );
    for condition in [
        json!({"not": {"$ref": "#/x-types/t"}}),
        json!({"if": {"$ref": "#/x-types/t"}, "then": false}),
        json!({"type": "array", "contains": {"$ref": "#/x-types/t"}}),
        json!({"oneOf": [{"type": "null"}, {"$ref": "#/x-types/t"}]}),
        json!({"anyOf": [{"type": "null"}, {"items": {"$ref": "#/x-types/t"}, "type": "array"}]}),
        json!({"type": "object", "dependentSchemas": {"a": {"properties": {"a": {"$ref": "#/x-types/t"}}}}}),
        json!({"type": "array", "prefixItems": [{"$ref": "#/x-types/t"}]}),
    ] {
        let of = |target: &Value| json!({"type": "object", "properties": {"p": condition}, "x-types": {"t": target}});
        let (input, output) = classes(&of(&text), &of(&number));
        assert!(input.withdraws(), "{condition}: {input:?}");
        assert!(output.withdraws(), "{condition}: {output:?}");
    }
    // The target is a declared property, as generators write it.
    let of = |target: &Value| json!({"type": "object", "properties": {"a": target, "b": {"not": {"$ref": "#/properties/a"}}}});
    let (input, output) = classes(&of(&text), &of(&number));
    assert!(
        input.withdraws() && output.withdraws(),
        "{input:?} {output:?}"
    );
}

#[test]
fn tuple_of_an_old_dialect_is_compared_by_position() {
    let tuple = |items: Value, more: Value| {
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"p": {"type": "array", "items": items, "additionalItems": more}}})
    };
    let pair = || json!([{"type": "string"}, {"type": "integer"}]);
    let number = || json!({"type": "integer"});
    assert_classes(vec![
        (
            tuple(pair(), json!(false)),
            tuple(
                json!([{"type": "string"}, {"type": "number"}]),
                json!(false),
            ),
            Compatible,
            Breaking,
        ),
        (
            tuple(pair(), json!(false)),
            tuple(
                json!([{"type": "integer"}, {"type": "string"}]),
                json!(false),
            ),
            Breaking,
            Breaking,
        ),
        (
            tuple(pair(), json!(false)),
            tuple(pair(), number()),
            Compatible,
            Breaking,
        ),
        (
            tuple(pair(), number()),
            tuple(pair(), json!({"type": "string"})),
            Breaking,
            Breaking,
        ),
        (
            tuple(pair(), number()),
            tuple(json!([{"type": "string"}]), number()),
            Equivalent,
            Equivalent,
        ),
        // Without positions, `additionalItems` has no effect.
        (
            tuple(number(), json!(false)),
            tuple(number(), json!(true)),
            Equivalent,
            Equivalent,
        ),
    ]);
}

#[test]
fn tuple_of_an_old_dialect_has_another_meaning_in_a_new_one() {
    let of = |dialect: &str| {
        json!({"$schema": dialect, "type": "object", "properties": {"p": {
            "type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}}})
    };
    let seven = of("http://json-schema.org/draft-07/schema#");
    let twenty = of("https://json-schema.org/draft/2020-12/schema");
    let (input, output) = classes(&seven, &twenty);
    assert!(
        input.withdraws() && output.withdraws(),
        "{input:?} {output:?}"
    );
}
