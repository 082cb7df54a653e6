//! Schemas with one meaning: references by URI, patterns, and forms of draft 4 and OpenAPI 3.0.

use super::*;
use crate::{compile, inspect};

#[track_caller]
fn reads(schema: Value, noted: &[&str], accepted: &[Value], refused: &[Value]) {
    inspect(&schema).unwrap_or_else(|problem| panic!("{schema}: {}", problem.message));
    let validator =
        compile(&schema).unwrap_or_else(|problem| panic!("{schema}: {}", problem.message));
    for value in accepted {
        assert!(validator.is_valid(value), "{schema} refuses {value}");
    }
    for value in refused {
        let failures = validator.failures(&schema, value, 5);
        assert!(!failures.is_empty(), "{schema} accepts {value}");
        for failure in failures {
            let place = schema.pointer(&failure.schema_pointer);
            assert!(place.is_some(), "{} of {schema}", failure.schema_pointer);
        }
    }
    let found = notes(&schema);
    let pointers: Vec<_> = found.iter().map(|note| note.pointer.as_str()).collect();
    assert_eq!(pointers, noted, "{schema}");
}

#[test]
fn reference_to_the_id_of_the_schema_itself_resolves() {
    let of = |id: &str, target: &str| {
        json!({"$id": id, "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {"$ref": target}}, "definitions": {"A": {"type": "string"}}})
    };
    let id = "https://example.com/x/s.json";
    for target in [
        "https://example.com/x/s.json#/definitions/A",
        "HTTPS://EXAMPLE.com/x/s.json#/definitions/A",
        "s.json#/definitions/A",
        "/x/s.json#/definitions/A",
        "../x/./s.json#/definitions/A",
        "#/definitions/A",
    ] {
        reads(
            of(id, target),
            &[],
            &[json!({"a": "x"})],
            &[json!({"a": 1})],
        );
    }
    reads(
        of("s.json#", "s.json#/definitions/A"),
        &[],
        &[json!({"a": "x"})],
        &[json!({"a": 1})],
    );
    for target in [
        "t.json#/definitions/A",
        "https://example.com/s.json",
        "#/definitions/B",
    ] {
        assert!(inspect(&of(id, target)).is_err(), "{target}");
    }
}

#[test]
fn reference_resolves_within_its_inner_resource_only() {
    let inner = json!({"$id": "inner", "$defs": {"t": {"type": "integer", "$anchor": "here"}},
        "properties": {"own": {"$ref": "#/$defs/t"}, "named": {"$ref": "#here"}}});
    let schema = json!({"$id": "https://example.com/root", "$defs": {"t": {"type": "string"}, "inner": inner},
        "properties": {"p": {"$ref": "inner"}, "q": {"$ref": "#/$defs/t"}, "r": {"$ref": "inner#here"},
            "s": {"$ref": "https://example.com/inner#/properties/own"}}});
    let good = json!({"p": {"own": 1, "named": 1}, "q": "x", "r": 1, "s": 1});
    let bad = [
        json!({"p": {"own": "x"}}),
        json!({"p": {"named": "x"}}),
        json!({"q": 1}),
        json!({"r": "x"}),
        json!({"s": "x"}),
    ];
    reads(schema, &[], &[good], &bad);
}

#[test]
fn inner_ids_hide_no_reference_from_the_bounds() {
    let id = "https://example.com/d";
    let level = |n: usize| {
        let next = format!("{id}{}", n + 1);
        json!({"$id": format!("{id}{n}"), "anyOf": [{"$ref": next}, {"$ref": next}]})
    };
    let levels: Map<_, _> = (0..20)
        .map(|n| (format!("d{n}"), level(n)))
        .chain([("d20".to_owned(), json!({"$id": format!("{id}20")}))])
        .collect();
    let fan = json!({"$ref": format!("{id}0"), "$defs": levels});
    assert!(inspect(&fan).unwrap_err().message.contains("more than"));
    let cycle =
        json!({"$defs": {"a": {"$id": "https://e.com/a", "allOf": [{"$ref": "https://e.com/a"}]}}});
    assert_eq!(inspect(&cycle).unwrap_err().code.as_str(), "schema_cycle");
    let twice = json!({"$id": "https://e.com/a", "$ref": "https://e.com/a#/$defs/x",
        "$defs": {"x": {}, "b": {"$id": "https://e.com/a"}}});
    let problem = inspect(&twice).unwrap_err();
    assert!(
        problem.message.contains("two subschemas"),
        "{}",
        problem.message
    );
}

#[test]
fn forms_of_draft_4_and_openapi_are_read_without_a_dialect() {
    reads(
        json!({"properties": {"t": {"minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}}}),
        &[
            "/properties/t/exclusiveMaximum",
            "/properties/t/exclusiveMinimum",
        ],
        &[json!({"t": 1}), json!({"t": 9})],
        &[json!({"t": 0}), json!({"t": 10})],
    );
    reads(
        json!({"properties": {"t": {"type": "string", "nullable": true}}}),
        &["/properties/t/nullable"],
        &[json!({"t": null}), json!({"t": ""})],
        &[json!({"t": 1})],
    );
    reads(
        json!({"properties": {"box": {"items": [{"type": "number"}, {"$ref": "#/properties/box/items/0"}],
            "additionalItems": {"$ref": "#/properties/box/items/1"}}}}),
        &["/properties/box/items"],
        &[json!({"box": [1, 2, 3]})],
        &[
            json!({"box": ["x"]}),
            json!({"box": [1, "x"]}),
            json!({"box": [1, 2, "x"]}),
        ],
    );
    // A dialect that is named has its own meaning; a flag without a limit has none.
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    for schema in [
        json!({"$schema": dialect, "minimum": 0, "exclusiveMinimum": true}),
        json!({"$schema": dialect, "items": [{}]}),
        json!({"exclusiveMinimum": true}),
    ] {
        assert!(compile(&schema).is_err(), "{schema}");
    }
}

#[test]
fn patterns_are_read_with_u_or_without_it_and_noted() {
    reads(
        json!({"properties": {"u": {"pattern": "^[^]*$"}, "v": {"pattern": r"^[\w-.]+$"}}}),
        &["/properties/v/pattern"],
        &[json!({"u": "a\nb", "v": "a-."})],
        &[json!({"v": "+"})],
    );
    // Two names with one reading keep both schemas.
    reads(
        json!({"patternProperties": {"^\\a": {"type": "string"}, "^a": {"maxLength": 2}, "^\\u0061": {"minLength": 1}}}),
        &["/patternProperties"],
        &[json!({"a": "xy"})],
        &[json!({"a": 1}), json!({"a": "xyz"}), json!({"a": ""})],
    );
    let schema = json!({"properties": {"v": {"pattern": r"^[\w-.]+$"}}});
    let failure = compile(&schema)
        .unwrap()
        .failures(&schema, &json!({"v": "+"}), 1);
    assert_eq!(failure[0].expected, r"a string that matches `^[\w-.]+$`");
}

#[test]
fn schema_with_one_meaning_is_read_as_it_is() {
    let schema = json!({"$id": "https://example.com/s", "type": "object",
        "properties": {"a": {"pattern": "^[a-z]+$"}, "b": {"type": "string", "nullable": false}}});
    assert!(matches!(
        readable(&json!({"type": "object"})),
        Cow::Borrowed(_)
    ));
    let read = readable(&schema);
    assert_eq!(read["properties"], schema["properties"]);
}
