//! The arguments of one call: checked against the tool's schema, as far as the schemas here go (known and
//! required members, type, enum, range), then read by name.

use serde_json::{Map, Value};

use super::Failure;

#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    pub(super) fn check(values: &'a Map<String, Value>, schema: &Value) -> Result<Self, Failure> {
        check_object(values, schema)?;
        Ok(Self { values })
    }

    /// A required text; the schema guarantees that it exists and is a string.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, Failure> {
        self.find(name)?.ok_or_else(|| missing(name))
    }

    /// An optional text.
    pub(super) fn find(&self, name: &str) -> Result<Option<&'a str>, Failure> {
        match self.values.get(name) {
            None => Ok(None),
            Some(value) => value
                .as_str()
                .map(Some)
                .ok_or_else(|| wrong_type(name, "string")),
        }
    }

    /// An optional integer; `1.0` is one as well.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Failure> {
        match self.values.get(name) {
            None => Ok(None),
            Some(value) => as_integer(value)
                .map(Some)
                .ok_or_else(|| wrong_type(name, "integer")),
        }
    }
}

/// The members of an object against `properties`, `required` and `additionalProperties: false`.
fn check_object(values: &Map<String, Value>, schema: &Value) -> Result<(), Failure> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    for (name, value) in values {
        let Some(property) = properties.get(name) else {
            let known: Vec<_> = properties.keys().map(|key| format!("`{key}`")).collect();
            return Err(Failure::new(format!(
                "argument `{}` is not known; known are {}",
                name.escape_debug(),
                if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                }
            )));
        };
        check_value(name, value, property)?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !values.contains_key(name) {
            return Err(missing(name));
        }
    }
    Ok(())
}

fn check_value(name: &str, value: &Value, schema: &Value) -> Result<(), Failure> {
    let kind = schema["type"].as_str().unwrap_or_default();
    let has_kind = match kind {
        "integer" => as_integer(value).is_some(),
        _ => value.is_string(),
    };
    if !has_kind {
        return Err(wrong_type(name, kind));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        let choices: Vec<_> = choices
            .iter()
            .filter_map(Value::as_str)
            .map(|choice| format!("`{choice}`"))
            .collect();
        return Err(Failure::new(format!(
            "argument `{name}` must be one of {}",
            choices.join(", ")
        )));
    }
    if let (Some(given), Some(least), Some(most)) = (
        as_integer(value),
        schema["minimum"].as_i64(),
        schema["maximum"].as_i64(),
    ) && !(least..=most).contains(&given)
    {
        return Err(Failure::new(format!(
            "argument `{name}` must be from {least} to {most}"
        )));
    }
    Ok(())
}

/// JSON Schema counts `1.0` as an integer; a float this small is exact.
fn as_integer(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_i64().or_else(|| {
        let float = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the range and the fraction are checked before"
        )]
        (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
    })
}

fn missing(name: &str) -> Failure {
    Failure::new(format!("argument `{name}` is missing"))
}

fn wrong_type(name: &str, kind: &str) -> Failure {
    Failure::new(format!("argument `{name}` must be of type {kind}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integer_argument_accepts_a_whole_float_only() {
        assert_eq!(as_integer(&json!(2.0)), Some(2));
        assert_eq!(as_integer(&json!(2.5)), None);
        assert_eq!(as_integer(&json!(1e300)), None);
        assert_eq!(as_integer(&json!("2")), None);
    }
}
