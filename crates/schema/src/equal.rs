//! Compares two values as a validator does: numbers by value, also exact ones.

use serde_json::Value;

use broker_model::json::{decimal_of, exact_number};

/// Bytes of digits that are read or compared in one step. A number is read several times.
pub(super) const DIGITS_PER_STEP: usize = 2;

/// Whether two values are equal for a validator: numbers by value. `take` is asked for the cost of each part
/// before it is read; if it refuses, the values count as equal.
pub(super) fn is_equal(one: &Value, other: &Value, take: &mut impl FnMut(usize) -> bool) -> bool {
    match (one, other) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && (!take(1 + one.len())
                    || one
                        .iter()
                        .zip(other)
                        .all(|(one, other)| is_equal(one, other, take)))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && (!take(1 + one.len())
                    || one
                        .iter()
                        .zip(other)
                        .all(|((name, one), (other_name, other))| {
                            !take(name.len() / 256)
                                || (name == other_name && is_equal(one, other, take))
                        }))
        }
        (Value::Number(one), Value::Number(other)) => {
            jsonschema::json::cmp::equal_numbers(&one, other)
        }
        (Value::String(text), Value::String(other_text)) => {
            match (exact_number(one), exact_number(other)) {
                (None, None) => {
                    text.len() == other_text.len()
                        && (!take(text.len() / 256) || text == other_text)
                }
                (Some(_), Some(_)) => is_equal_number(one, other, take),
                (None, Some(_)) | (Some(_), None) => false,
            }
        }
        (Value::Number(_), Value::String(_)) | (Value::String(_), Value::Number(_)) => {
            is_equal_number(one, other, take)
        }
        _ => false,
    }
}

fn is_equal_number(one: &Value, other: &Value, take: &mut impl FnMut(usize) -> bool) -> bool {
    let length = |value: &Value| exact_number(value).map_or(24, str::len);
    if !take((length(one) + length(other)) / DIGITS_PER_STEP) {
        return true;
    }
    match (decimal_of(one), decimal_of(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}
