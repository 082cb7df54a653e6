//! The forms of schemas for clients. `tests/mcp/clients/odd_tools.rs` lists such schemas by the clients themselves.

use serde_json::{Value, json};

use super::{arguments_form, results_form};

fn arguments(schema: Value) -> Result<Value, &'static str> {
    let form = arguments_form(&schema).map_err(|unlistable| unlistable.reason());
    form.map(|form| form.into_owned())
}

fn results(schema: Value) -> Result<Value, &'static str> {
    let form = results_form(&schema).map_err(|unlistable| unlistable.reason());
    form.map(|form| form.into_owned())
}

#[test]
fn schema_of_arguments_gets_the_type_of_every_argument() {
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert_eq!(arguments(plain.clone()), Ok(plain));
    for (schema, form) in [
        (json!({}), json!({"type": "object"})),
        (json!(true), json!({"type": "object"})),
        (json!(false), json!({"type": "object", "not": {}})),
        (
            json!({"type": ["object", "null"]}),
            json!({"type": "object"}),
        ),
        (
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}, "type": "object"}),
        ),
        (
            json!({"properties": {"a": true, "b": false, "c": {"properties": {"d": true}}}}),
            json!({"type": "object", "properties":
                {"a": {}, "b": {"not": {}}, "c": {"properties": {"d": true}}}}),
        ),
    ] {
        assert_eq!(arguments(schema), Ok(form));
    }
}

#[test]
fn schema_of_arguments_without_a_form_is_refused() {
    for schema in [
        json!({"type": "string"}),
        json!({"type": ["array", "null"]}),
        json!({"type": null}),
        json!([]),
        json!({"type": "object", "$schema": 7}),
        json!({"type": "object", "required": "a"}),
        json!({"type": "object", "required": ["a", 1]}),
        json!({"type": "object", "properties": null}),
        json!({"type": "object", "properties": {"a": null}}),
    ] {
        assert!(arguments(schema.clone()).is_err(), "{schema}");
    }
}

#[test]
fn schema_of_results_gets_a_type_only_where_it_accepts_nothing_but_objects() {
    let object = json!({"type": "object"});
    for mut schema in [
        json!({"allOf": [{}, object]}),
        json!({"anyOf": [object, {"$ref": "#/$defs/A"}], "$defs": {"A": {"enum": [{"a": 1}]}}}),
        json!({"oneOf": [{"const": {}}, {"type": ["object"]}]}),
        json!({"type": ["object"]}),
    ] {
        let form = results(schema.clone());
        schema["type"] = json!("object");
        assert_eq!(form, Ok(schema));
    }
    for schema in [
        json!({}),
        json!({"properties": {"a": {}}}),
        json!({"type": "array"}),
        json!({"type": ["object", "null"]}),
        json!({"anyOf": [object, {"type": "string"}]}),
        json!({"anyOf": []}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/A",
            "allOf": [object], "definitions": {"A": {}}}),
        json!(true),
    ] {
        assert!(results(schema.clone()).is_err(), "{schema}");
    }
}

#[test]
fn schema_of_results_that_ajv_does_not_compile_is_refused() {
    let of = |property: Value| json!({"type": "object", "properties": {"a": property}});
    for property in [
        json!({"type": "string", "pattern": "^(?P<id>[0-9]+)$"}),
        json!({"type": "string", "pattern": "^https\\:\\/\\/"}),
        json!({"patternProperties": {"(": {}}}),
        json!({"nullable": true}),
        json!({"type": "null", "nullable": false}),
        json!({"type": "text"}),
        json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
        json!({"enum": []}),
        json!({"id": "a"}),
        json!({"$id": "a"}),
        json!({"$async": true}),
        json!({"items": [{"type": "string"}]}),
        json!({"anyOf": [1]}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": "https://example.com/other"}),
    ] {
        assert!(results(of(property.clone())).is_err(), "{property}");
    }
    for property in [
        json!({"type": "string", "pattern": "^https://[^/]+$", "format": "unknown"}),
        json!({"type": "string", "nullable": true}),
        json!({"type": ["string", "null"]}),
        json!({"prefixItems": [{"type": "string"}]}),
        json!({"unknown": {"type": "text"}}),
        json!(true),
    ] {
        assert!(results(of(property.clone())).is_ok(), "{property}");
    }
    let mut tuple = of(json!({"items": [{"type": "string"}]}));
    tuple["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(results(tuple.clone()).is_ok());
    tuple["$schema"] = json!("http://json-schema.org/draft-04/schema#");
    assert!(results(tuple).is_err());
    let unused = json!({"type": "object", "$defs": {"A": {"pattern": "("}}});
    assert!(results(unused).is_ok());
}
