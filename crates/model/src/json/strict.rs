//! Strict reading: no duplicate keys, no numbers that would be rounded, bounded nesting.
//!
//! `serde_json` keeps the last of two equal keys and turns an integer above 64 bits into a float, so that
//! two readers of one text could disagree. Text that is reviewed or validated is read here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The reason why a text was refused.
#[derive(Debug, thiserror::Error)]
pub enum StrictError {
    /// Not JSON, nested deeper than the reader's 128 levels, or a duplicate key.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Nested deeper than the given limit.
    #[error("nested deeper than {limit} levels at byte {offset}")]
    Depth {
        /// The limit, in levels.
        limit: usize,
        /// The byte offset.
        offset: usize,
    },
    /// A number that neither a 64-bit integer nor a double represents exactly enough.
    #[error("the number `{number}` at byte {offset} cannot be represented exactly")]
    Number {
        /// As written, cut after 40 characters.
        number: String,
        /// The byte offset.
        offset: usize,
    },
}

/// Reads `text`, refusing duplicate keys, integers above 64 bits, non-finite numbers, and nesting deeper
/// than serde_json's 128 levels.
pub fn parse(text: &str) -> Result<Value, StrictError> {
    scan(text.as_bytes(), 128)?;
    Ok(serde_json::from_str::<NoDuplicates>(text)?.0)
}

/// Checks nesting and numbers of JSON bytes without parsing them. Does not check that they are JSON.
pub fn scan(bytes: &[u8], max_depth: usize) -> Result<(), StrictError> {
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at + 1),
            b'[' | b'{' => {
                depth += 1;
                if depth > max_depth {
                    return Err(StrictError::Depth {
                        limit: max_depth,
                        offset: at,
                    });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                let start = at;
                while bytes
                    .get(at + 1)
                    .is_some_and(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                {
                    at += 1;
                }
                check_number(&bytes[start..=at], start)?;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The index of the closing quote of the string whose content begins at `at`; the length if there is none.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn check_number(digits: &[u8], offset: usize) -> Result<(), StrictError> {
    let text = String::from_utf8_lossy(digits);
    let kept = if digits.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        text.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        // Leading zeros and similar errors are left to the parser.
        text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() || text == "-"
    };
    if kept {
        return Ok(());
    }
    Err(StrictError::Number {
        number: text.chars().take(40).collect(),
        offset,
    })
}

/// A [`Value`] without duplicate keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoDuplicates(pub Value);

impl<'de> Deserialize<'de> for NoDuplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(NoDuplicates(item)) = items.next_element()? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let NoDuplicates(value) = members.next_value()?;
            match out.entry(key) {
                serde_json::map::Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                serde_json::map::Entry::Occupied(entry) => {
                    return Err(A::Error::custom(format_args!(
                        "duplicate key `{}`",
                        crate::text::shown_line(entry.key(), 80)
                    )));
                }
            }
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strict_json_accepts_exact_values() {
        assert_eq!(
            parse(r#"{"a":[1,-2.5e3,18446744073709551615,"\"}]"]}"#).unwrap(),
            json!({"a":[1,-2500.0,u64::MAX,"\"}]"]})
        );
    }

    #[test]
    fn strict_json_refuses_duplicates_inexact_numbers_and_depth() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            message(r#"{"a":1,"b":{"x":1,"x":2}}"#)
                .starts_with("duplicate key `x` at line 1 column"),
            "{}",
            message(r#"{"a":1,"b":{"x":1,"x":2}}"#)
        );
        assert!(message("[18446744073709551616]").contains("`18446744073709551616` at byte 1"));
        assert!(message("[1e400]").contains("cannot be represented exactly"));
        assert!(message(&"[".repeat(129)).contains("128 levels"));
        assert!(matches!(parse("[1,]"), Err(StrictError::Json(_))));
    }
}
