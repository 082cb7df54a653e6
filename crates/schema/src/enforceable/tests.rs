//! Invalid schemas: the part that is enforced, and verdicts compared with those of the schema without the invalid part.

use super::*;
use crate::{Validator, compile, compile_as_is, inspect_as_is};

fn as_is(schema: &Value) -> Validator {
    compile_as_is(schema).unwrap_or_else(|problem| panic!("{schema}: {}", problem.message))
}

/// Checks which values the enforceable part accepts.
#[track_caller]
fn enforces(schema: Value, accepted: &[Value], refused: &[Value]) {
    let validator = as_is(&schema);
    for value in accepted {
        assert!(validator.is_valid(value), "{schema} refuses {value}");
    }
    for value in refused {
        assert!(!validator.is_valid(value), "{schema} accepts {value}");
        assert!(!validator.failures(&schema, value, 5).is_empty());
    }
}

#[test]
fn valid_keywords_beside_an_invalid_one_are_enforced() {
    let objects = [json!({}), json!({"n": "x"}), json!({"n": 5, "m": 1})];
    enforces(
        json!({"type": "object", "properties": {"n": {"type": "int", "maximum": 5}, "m": {"type": "integer"}}}),
        &objects,
        &[json!({"n": 6}), json!({"m": "x"}), json!([]), json!(1)],
    );
    enforces(
        json!({"properties": {"q": {"type": "string", "required": false}, "required": ["q"]}}),
        &[json!({}), json!({"required": 1})],
        &[json!({"q": 1})],
    );
    enforces(
        json!({"required": ["a", 1], "properties": []}),
        &[json!({"a": 1})],
        &[json!({})],
    );
    enforces(json!("text"), &[json!({})], &[json!([])]);
    let unknown = json!({"$schema": "https://example.com/x", "required": ["a"]});
    enforces(unknown, &[json!({})], &[json!(null)]);
}

#[test]
fn members_are_not_closed_while_declared_names_are_unknown() {
    let closed = |declared: Value| json!({"properties": declared, "additionalProperties": false});
    enforces(closed(json!([])), &[json!({"a": 1})], &[]);
    enforces(
        closed(json!({"a": 5, "b": {"type": "int"}})),
        &[json!({"a": 1, "b": 1})],
        &[json!({"c": 1})],
    );
    enforces(
        json!({"patternProperties": {"(": {"type": "string"}, "^x": {"type": "string"}}, "additionalProperties": false}),
        &[json!({"(": 1, "x": "1"})],
        &[json!({"x": 1})],
    );
    enforces(
        json!({"allOf": [{"properties": []}], "unevaluatedProperties": false}),
        &[json!({"a": 1})],
        &[],
    );
    enforces(
        json!({"allOf": [{"properties": {"a": {"type": "int"}}}], "unevaluatedProperties": false}),
        &[json!({"a": 1})],
        &[json!({"b": 1})],
    );
    for lost in [
        json!({"$ref": "#/none"}),
        json!({"patternProperties": {"(": {}}}),
    ] {
        enforces(
            json!({"allOf": [lost], "unevaluatedProperties": false}),
            &[json!({"a": 1, "(": 1})],
            &[json!([])][..0],
        );
    }
}

#[test]
fn invalid_part_below_not_if_and_one_of_refuses_nothing() {
    let odd = json!({"type": "int"});
    enforces(json!({"not": odd}), &[json!({})], &[]);
    enforces(
        json!({"not": {"properties": {"a": odd}}}),
        &[json!({"a": 1})],
        &[],
    );
    enforces(
        json!({"if": odd, "then": false, "else": false}),
        &[json!({})],
        &[],
    );
    // A branch of `if` is enforced as far as it is valid.
    enforces(
        json!({"if": {"required": ["a"]}, "then": {"type": "int", "required": ["b"]}}),
        &[json!({}), json!({"a": 1, "b": 1})],
        &[json!({"a": 1})],
    );
    enforces(
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"], "type": "int"}]}),
        &[json!({"a": 1}), json!({"a": 1, "b": 1}), json!({"c": 1})],
        &[json!({})],
    );
    enforces(
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"], "type": "int"}], "anyOf": [{"required": ["z"]}]}),
        &[json!({"a": 1, "b": 1, "z": 1})],
        &[json!({"a": 1}), json!({"z": 1})],
    );
    enforces(
        json!({"properties": {"l": {"contains": {"type": "int"}, "maxContains": 1, "minContains": 1}}}),
        &[json!({"l": [1, 2, 3]})],
        &[json!({"l": []})],
    );
    enforces(
        json!({"properties": {"l": {"contains": {"type": "string"}, "minContains": "0"}}}),
        &[json!({"l": []})],
        &[],
    );
}

#[test]
fn invalid_definition_counts_where_it_is_referred_to() {
    let definitions =
        json!({"odd": {"type": "int", "required": ["a"]}, "fine": {"required": ["b"]}});
    enforces(
        json!({"$defs": definitions, "allOf": [{"$ref": "#/$defs/odd"}, {"$ref": "#/$defs/fine"}]}),
        &[json!({"a": 1, "b": 1})],
        &[json!({"a": 1}), json!({"b": 1})],
    );
    enforces(
        json!({"$defs": definitions, "not": {"$ref": "#/$defs/odd"}}),
        &[json!({"a": 1})],
        &[],
    );
    enforces(
        json!({"$defs": definitions, "not": {"$ref": "#/$defs/fine"}}),
        &[json!({"a": 1})],
        &[json!({"b": 1})],
    );
    // The alternative has another place now; the reference follows it.
    enforces(
        json!({"oneOf": [{"required": ["a"]}, {"type": "int"}], "properties": {"p": {"$ref": "#/oneOf/0"}}}),
        &[json!({"p": {"a": 1}})],
        &[json!({"p": {}})],
    );
}

#[test]
fn reference_without_a_target_is_not_enforced() {
    for target in [
        "#/$defs/none",
        "https://example.com/other.json",
        "#none",
        "#/properties/p/enum",
    ] {
        enforces(
            json!({"properties": {"p": {"$ref": target, "minLength": 2, "enum": ["x", "xy"]}}}),
            &[json!({"p": "xy"})],
            &[json!({"p": "x"})],
        );
        // In draft 7 the members beside a reference have no meaning.
        enforces(
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "required": ["p"],
                "properties": {"p": {"$ref": target, "minLength": 2, "enum": ["x"]}}}),
            &[json!({"p": "xy"}), json!({"p": "z"})],
            &[json!({})],
        );
    }
    // Without its `$id`, the reference of the inner resource would name a place of the root.
    enforces(
        json!({"$defs": {"t": {"type": "string"}}, "type": "int", "properties": {
            "p": {"$id": "https://example.com/inner", "$ref": "#/$defs/t"}}}),
        &[json!({"p": 1})],
        &[],
    );
    enforces(
        json!({"$dynamicRef": "#x", "properties": {"p": {"$dynamicAnchor": "x", "type": "int"}}, "required": ["q"]}),
        &[json!({})],
        &[],
    );
}

#[test]
fn invalid_part_of_every_dialect_is_found_alone() {
    for dialect in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        enforces(
            json!({"$schema": dialect, "properties": {"l": {"items": {"type": "int", "minLength": 2}}},
                "additionalProperties": {"type": 7, "minimum": 3}}),
            &[json!({"l": ["xy", 1], "m": 3})],
            &[json!({"l": ["x"]}), json!({"m": 2})],
        );
    }
    // A list of items is a tuple up to 2019-09, and nothing in 2020-12.
    for (year, refused) in [("2019-09", &[json!({"l": ["x"]})][..]), ("2020-12", &[])] {
        let dialect = format!("https://json-schema.org/draft/{year}/schema");
        enforces(
            json!({"$schema": dialect, "properties": {"l": {"items": [{"type": "integer"}]}}, "required": "a"}),
            &[json!({"l": [1]})],
            refused,
        );
    }
    enforces(
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "required": ["a"],
            "properties": {"a": {"exclusiveMinimum": true, "type": "integer"}}}),
        &[json!({"a": 0})],
        &[json!({"a": "x"}), json!({})],
    );
}

#[test]
fn bounds_hold_for_a_schema_that_is_enforced_in_part() {
    let odd = |mut schema: Value| {
        schema["type"] = json!("int");
        schema
    };
    let deep = (0..70).fold(json!({}), |inner, _| json!({"items": inner}));
    let levels: Map<_, _> = (0..20)
        .map(|n| {
            let next = format!("#/$defs/d{}", n + 1);
            (
                format!("d{n}"),
                json!({"anyOf": [{"$ref": next}, {"$ref": next}]}),
            )
        })
        .chain([("d20".to_owned(), json!({}))])
        .collect();
    let nested_ids: Value = (0..40).fold(
        json!({}),
        |inner, _| json!({"$id": "a".repeat(500) + "/", "items": inner}),
    );
    for bomb in [
        deep,
        json!({"$ref": "#/$defs/d0", "$defs": levels}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"description": "x".repeat(300 << 10)}),
        nested_ids,
    ] {
        assert!(inspect_as_is(&odd(bomb)).is_err());
    }
    // Backtracking has its bound, as in a valid schema, and a pattern that is too large is not enforced.
    let slow = odd(json!({"properties": {"p": {"pattern": "^(?:(a|aa)+)(?=c)$"}}}));
    enforces(slow, &[json!({"p": 1})], &[json!({"p": "a".repeat(60)})]);
    enforces(
        odd(json!({"properties": {"p": {"pattern": "(((a{999}){999}){999}){999}"}}})),
        &[json!({"p": "x"})],
        &[],
    );
}

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn schema(&mut self, depth: u64, kinds: u64) -> Value {
        let part = |this: &mut Self| match depth {
            0 => json!({}),
            _ => this.schema(depth - 1, kinds),
        };
        match self.below(kinds) {
            0 => json!({"type": "string", "minLength": self.below(3)}),
            1 => json!({"type": "integer", "minimum": self.below(4)}),
            2 => json!({"type": "array", "items": part(self), "maxItems": 2}),
            3 => json!({"anyOf": [part(self), part(self)]}),
            4 => json!({"allOf": [part(self), part(self)]}),
            5 => json!({"properties": {"a": part(self), "b": part(self)}, "required": ["a"]}),
            6 => json!({"properties": {"a": part(self)}, "additionalProperties": part(self)}),
            7 => json!({"properties": {"a": part(self)}, "additionalProperties": false}),
            8 => json!({"not": part(self)}),
            9 => json!({"oneOf": [part(self), part(self)]}),
            10 => json!({"if": part(self), "then": part(self), "else": part(self)}),
            11 => json!({"contains": part(self), "maxContains": 1}),
            _ => json!({"allOf": [part(self)], "unevaluatedProperties": false}),
        }
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 3 } else { 6 }) {
            0 => json!(self.below(5)),
            1 => json!(["", "x", "xyz"][self.below(3) as usize]),
            2 => json!(null),
            3 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let names = ["a", "b", "c"].into_iter().filter(|_| self.below(2) == 0);
                let names: Vec<_> = names.collect();
                let member = |name: &str| (name.to_owned(), self.value(depth - 1));
                Value::Object(names.into_iter().map(member).collect())
            }
        }
    }

    fn node(&mut self, schema: &Value) -> String {
        let graph = Graph::new(schema).unwrap();
        let nodes: Vec<_> = graph
            .nodes
            .iter()
            .map(|node| node.pointer.clone())
            .collect();
        nodes[self.below(nodes.len() as u64) as usize].clone()
    }
}

fn with(schema: &Value, pointer: &str, keyword: &str, value: Option<Value>) -> Value {
    let mut schema = schema.clone();
    let at = schema.pointer_mut(pointer).unwrap();
    if at.is_boolean() {
        *at = json!({});
    }
    let keywords = at.as_object_mut().unwrap();
    match value {
        Some(value) => keywords.insert(keyword.to_owned(), value),
        None => keywords.remove(keyword),
    };
    schema
}

fn invalid(numbers: &mut Numbers) -> (&'static str, Value, Vec<Value>) {
    // A keyword, its invalid value, and values that the server may mean.
    [
        (
            "type",
            json!("int"),
            vec![json!("integer"), json!("string"), json!("object")],
        ),
        ("maximum", json!("3"), vec![json!(0), json!(3)]),
        ("enum", json!("x"), vec![json!(["x"]), json!([1, {}])]),
        ("required", json!(true), vec![json!(["a"]), json!(["c"])]),
        ("pattern", json!("("), vec![json!("^x"), json!("^$")]),
        ("minProperties", json!(-1), vec![json!(1), json!(2)]),
        (
            "dependentSchemas",
            json!(5),
            vec![json!({"a": {"required": ["b"]}})],
        ),
    ]
    .swap_remove_at(numbers.below(7) as usize)
}

trait SwapRemove<T> {
    fn swap_remove_at(self, at: usize) -> T;
}

impl<T, const N: usize> SwapRemove<T> for [T; N] {
    fn swap_remove_at(self, at: usize) -> T {
        Vec::from(self).swap_remove(at)
    }
}

#[test]
fn verdicts_are_those_of_the_schema_without_its_invalid_part() {
    let mut numbers = Numbers(1);
    let mut verdicts = [0, 0];
    for _ in 0..200 {
        // Without keywords whose effect depends on an inexact subschema.
        let schema = numbers.schema(3, 8);
        let at = numbers.node(&schema);
        let (keyword, value, _) = invalid(&mut numbers);
        let bad = as_is(&with(&schema, &at, keyword, Some(value)));
        let without = with(&schema, &at, keyword, None);
        let removed = compile(&without).unwrap();
        for _ in 0..80 {
            let value = numbers.value(3);
            let expected = removed.is_valid(&value) && value.is_object();
            assert_eq!(bad.is_valid(&value), expected, "{without} {value}");
            verdicts[usize::from(expected)] += 1;
        }
    }
    assert!(verdicts[0] > 1000 && verdicts[1] > 500, "{verdicts:?}");
}

#[test]
fn no_meaning_of_an_invalid_part_refuses_fewer_values() {
    let mut numbers = Numbers(2);
    let mut accepted = 0;
    for _ in 0..400 {
        let schema = numbers.schema(3, 13);
        let at = numbers.node(&schema);
        let (keyword, value, meanings) = invalid(&mut numbers);
        let part = with(&schema, &at, keyword, Some(value));
        let validator = as_is(&part);
        for meaning in meanings {
            let meant = compile(&with(&schema, &at, keyword, Some(meaning))).unwrap();
            for _ in 0..30 {
                let value = numbers.value(3);
                if value.is_object() && meant.is_valid(&value) {
                    accepted += 1;
                    assert!(validator.is_valid(&value), "{part} refuses {value}");
                }
            }
        }
    }
    assert!(accepted > 2000, "{accepted}");
}
