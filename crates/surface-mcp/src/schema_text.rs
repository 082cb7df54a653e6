//! A schema in the text of a refusal: whole if it is short, else without the texts for readers.

use broker_model::json::to_text;
use serde_json::{Map, Value};

/// The maximum length of a schema that is shown as it is, in bytes.
const MAX_WHOLE_BYTES: usize = 400;
/// Keywords that no value is checked against. `meta_desc` and `tools/list` show them.
const TEXTS: [&str; 5] = ["$comment", "$schema", "description", "examples", "title"];
/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 15] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords whose value has schemas as its members.
const MAPS: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// A schema as the text shows it.
pub(super) fn schema(whole: &Value) -> Value {
    match to_text(whole).len() <= MAX_WHOLE_BYTES {
        true => whole.clone(),
        false => without_texts(whole),
    }
}

/// Parts of a schema by their pointers, as the text shows them.
pub(super) fn parts(parts: &Value) -> Value {
    match parts {
        Value::Object(parts) if to_text(parts).len() > MAX_WHOLE_BYTES => {
            each(parts, without_texts)
        }
        other => other.clone(),
    }
}

fn without_texts(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(without_texts).collect(),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !TEXTS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), member(name, value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn member(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) if MAPS.contains(&name) => each(members, without_texts),
        _ if SCHEMAS.contains(&name) => without_texts(value),
        _ => value.clone(),
    }
}

fn each(members: &Map<String, Value>, change: impl Fn(&Value) -> Value) -> Value {
    let changed = members
        .iter()
        .map(|(name, value)| (name.clone(), change(value)));
    changed.collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_schema_loses_its_texts_and_keeps_what_is_checked() {
        let long = "x".repeat(MAX_WHOLE_BYTES);
        let whole = json!({
            "$schema": "s", "description": long, "required": ["title"], "type": "object",
            "properties": {
                "title": {"type": "string", "title": "T"},
                "description": {"anyOf": [{"const": {"title": "kept"}}, {"description": "d", "type": "null"}]},
                "list": {"type": "array", "items": {"description": "d", "enum": [{"description": "kept"}]}}},
            "$defs": {"examples": {"examples": [1], "type": "integer"}},
            "additionalProperties": false});
        let short = json!({
            "required": ["title"], "type": "object",
            "properties": {
                "title": {"type": "string"},
                "description": {"anyOf": [{"const": {"title": "kept"}}, {"type": "null"}]},
                "list": {"type": "array", "items": {"enum": [{"description": "kept"}]}}},
            "$defs": {"examples": {"type": "integer"}},
            "additionalProperties": false});
        assert_eq!(schema(&whole), short);
        assert_eq!(
            parts(&json!({"/properties/a": whole})),
            json!({"/properties/a": short})
        );
    }

    #[test]
    fn short_schema_is_shown_as_it_is() {
        let whole = json!({"description": "d", "type": "object"});
        assert_eq!(schema(&whole), whole);
        assert_eq!(parts(&json!({"/a": whole})), json!({"/a": whole}));
    }
}
