//! Strict reading: no key twice, no number that would be rounded, no bottomless nesting.
//!
//! `serde_json` keeps the last of two equal keys and turns an integer past 64 bits into a float; two
//! readers of one text could then disagree. What the broker reviews or validates goes through here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why a text was refused.
#[derive(Debug, thiserror::Error)]
pub enum StrictError {
    /// Not JSON, too deep for the reader (128 levels), or a key twice.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Nested deeper than the limit that was given.
    #[error("nested deeper than {limit} levels at byte {offset}")]
    Depth {
        /// The limit, in levels.
        limit: usize,
        /// Where it was passed.
        offset: usize,
    },
    /// A number that a 64-bit integer or a double cannot hold exactly enough to be kept.
    #[error("the number `{number}` at byte {offset} cannot be kept exactly")]
    Number {
        /// As written, cut after 40 characters.
        number: String,
        /// Where it stands.
        offset: usize,
    },
}

/// Reads `text`, refusing duplicate keys, integers past 64 bits, non-finite numbers, and nesting
/// past serde_json's 128 levels.
pub fn parse(text: &str) -> Result<Value, StrictError> {
    scan(text.as_bytes(), 128)?;
    Ok(serde_json::from_str::<NoDuplicates>(text)?.0)
}

/// Looks over JSON bytes without parsing them: nesting within `max_depth`, numbers that can be kept.
/// Does not check that they are JSON.
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

/// The index of the quote that ends the string whose content begins at `at`; the length where none.
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
        // Leading zeros and the like are the parser's to refuse.
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

/// A [`Value`] in which no object had a key twice.
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
    fn accepts_what_can_be_kept() {
        assert_eq!(
            parse(r#"{"a":[1,-2.5e3,18446744073709551615,"\"}]"]}"#).unwrap(),
            json!({"a":[1,-2500.0,u64::MAX,"\"}]"]})
        );
    }

    #[test]
    fn refuses_the_rest() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            message(r#"{"a":1,"b":{"x":1,"x":2}}"#)
                .starts_with("duplicate key `x` at line 1 column"),
            "{}",
            message(r#"{"a":1,"b":{"x":1,"x":2}}"#)
        );
        assert!(message("[18446744073709551616]").contains("`18446744073709551616` at byte 1"));
        assert!(message("[1e400]").contains("cannot be kept exactly"));
        assert!(message(&"[".repeat(129)).contains("128 levels"));
        assert!(matches!(parse("[1,]"), Err(StrictError::Json(_))));
    }
}
