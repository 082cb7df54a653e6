//! Leaves out keywords whose numbers no type of Rust here can hold: the rest accepts more values.

use broker_model::json::exact_number;
use serde_json::{Value, json};

/// Returns the schema without such keywords; `None` if it does not have them. An integer that such a number bounds may
/// be one, so it becomes a number.
pub(in crate::types) fn without_exact_numbers(schema: &Value) -> Option<Value> {
    if !has_one(schema) {
        return None;
    }
    let mut schema = schema.clone();
    widen(&mut schema);
    Some(schema)
}

fn has_one(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_one),
        Value::Array(items) => items.iter().any(has_one),
        other => exact_number(other).is_some(),
    }
}

fn widen(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            let count = keywords.len();
            keywords.retain(|keyword, value| {
                let is_listed = matches!(&**keyword, "enum" | "const" | "default" | "examples");
                exact_number(value).is_none() && !(is_listed && has_one(value))
            });
            if keywords.len() < count && keywords.get("type") == Some(&json!("integer")) {
                keywords.insert("type".to_owned(), json!("number"));
            }
            keywords.values_mut().for_each(widen);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(widen),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_with_exact_numbers_are_left_out() {
        let schema = broker_model::json::parse(
            r#"{"properties": {"a": {"type": "integer", "maximum": 1e400}, "b": {"enum": [1e400, "x"]},
                "c": {"type": "integer", "maximum": 5}}}"#,
        );
        assert_eq!(
            without_exact_numbers(&schema.unwrap()),
            Some(json!({"properties": {"a": {"type": "number"}, "b": {},
                "c": {"type": "integer", "maximum": 5}}}))
        );
        assert_eq!(without_exact_numbers(&json!({"maximum": 5})), None);
    }
}
