//! Short forms for the schemas of the tools.

use serde_json::{Value, json};

/// A closed object schema; `required` names the required members.
pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(super) fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn integer(description: &str, least: i64, most: i64) -> Value {
    json!({"type": "integer", "description": description, "minimum": least, "maximum": most})
}

pub(super) fn choice(description: &str, values: &[&str]) -> Value {
    json!({"type": "string", "description": description, "enum": values})
}
