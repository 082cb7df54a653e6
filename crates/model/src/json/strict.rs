//! Strict reading: no duplicate keys, exact numbers, bounded nesting.
//!
//! `serde_json` keeps the last of two equal keys and turns an integer above 64 bits into a float, so that
//! two readers of one text could disagree. Text that is reviewed or validated is read here.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::{Map, Number, Value};

use super::number::{Kind, kind_of, may_be_number, number_value, string_value};

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
    /// A number with too many digits or too large an exponent.
    #[error(
        "the number `{number}` at byte {offset} has more than 1000 digits, or an exponent beyond ±10000"
    )]
    Number {
        /// As written, cut after 40 characters.
        number: String,
        /// The byte offset.
        offset: usize,
    },
}

/// Reads `text`, refusing duplicate keys, numbers over a limit, and nesting deeper than serde_json's 128
/// levels. Numbers that `serde_json` cannot hold become number strings (see the module `number`).
pub fn parse(text: &str) -> Result<Value, StrictError> {
    let exact = scan(text, 128)?;
    if exact.is_empty() {
        return Ok(serde_json::from_str::<NoDuplicates>(text)?.0);
    }
    // The parser would round or refuse these numbers: it reads a zero of the same length in their place.
    let mut bytes = text.as_bytes().to_vec();
    for number in &exact {
        bytes[number.range.clone()].fill(b' ');
        bytes[number.range.start] = b'0';
    }
    let numbers = Numbers {
        text,
        exact: &exact,
        seen: Cell::new(0),
        replaced: Cell::new(0),
    };
    let mut reader = serde_json::Deserializer::from_slice(&bytes);
    let value = ValueSeed(Some(&numbers)).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// A number of a text that `serde_json` cannot hold.
struct ExactNumber {
    /// How many numbers are before it.
    index: usize,
    range: Range<usize>,
}

/// Checks nesting and numbers of a JSON text without parsing it, and returns the exact numbers. Does not
/// check that the text is JSON.
fn scan(text: &str, max_depth: usize) -> Result<Vec<ExactNumber>, StrictError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut index) = (0, 0usize, 0);
    let mut exact = Vec::new();
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
                let range = start..at + 1;
                if check_number(&text[range.clone()], start)? == Kind::Exact {
                    exact.push(ExactNumber { index, range });
                }
                index += 1;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(exact)
}

/// Returns the index of the closing quote of the string whose content begins at `at`; the length without one.
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

fn check_number(text: &str, offset: usize) -> Result<Kind, StrictError> {
    match kind_of(text) {
        Some(kind) => Ok(kind),
        // The parser refuses other text with its reason.
        None if serde_json::from_str::<IgnoredAny>(text).is_err() => Ok(Kind::Ordinary),
        None => Err(StrictError::Number {
            number: text.chars().take(40).collect(),
            offset,
        }),
    }
}

/// The exact numbers of a text that is being read. The reader meets numbers in their order.
struct Numbers<'t> {
    text: &'t str,
    exact: &'t [ExactNumber],
    seen: Cell<usize>,
    replaced: Cell<usize>,
}

impl Numbers<'_> {
    /// The next number, if it is exact.
    fn next(&self) -> Option<Value> {
        let index = self.seen.get();
        self.seen.set(index + 1);
        let number = self.exact.get(self.replaced.get())?;
        if number.index != index {
            return None;
        }
        self.replaced.set(self.replaced.get() + 1);
        number_value(&self.text[number.range.clone()])
    }
}

/// A [`Value`] without duplicate keys, of a text without exact numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoDuplicates(pub Value);

impl<'de> Deserialize<'de> for NoDuplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ValueSeed(None).deserialize(deserializer).map(Self)
    }
}

#[derive(Clone, Copy)]
struct ValueSeed<'n>(Option<&'n Numbers<'n>>);

impl ValueSeed<'_> {
    #[inline]
    fn number_or(self, ordinary: impl Into<Value>) -> Value {
        match self.0 {
            None => ordinary.into(),
            Some(numbers) => numbers.next().unwrap_or_else(|| ordinary.into()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
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
        Ok(self.number_or(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.number_or(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number is not finite"))?;
        Ok(self.number_or(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(string_value(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        match may_be_number(&value) {
            true => Ok(string_value(&value)),
            false => Ok(Value::String(value)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
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
    fn strict_json_refuses_duplicates_long_numbers_and_depth() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            message(r#"{"a":1,"b":{"x":1,"x":2}}"#)
                .starts_with("duplicate key `x` at line 1 column"),
            "{}",
            message(r#"{"a":1,"b":{"x":1,"x":2}}"#)
        );
        assert!(message("[1e10001]").contains("`1e10001` at byte 1 has more than 1000 digits"));
        let long = "1".repeat(1001);
        assert!(message(&format!("[{long}]")).contains(&format!("`{}` at", &long[..40])));
        for text in ["[1e]", "[01]", "[1.]", "[-]", "[1e400 1]", "[.5]"] {
            assert!(matches!(parse(text), Err(StrictError::Json(_))), "{text}");
        }
        assert!(message(&"[".repeat(129)).contains("128 levels"));
        assert!(matches!(parse("[1,]"), Err(StrictError::Json(_))));
    }

    #[test]
    fn strict_json_keeps_exact_numbers_as_they_are_written() {
        let text = r#"{"a":[1,1e400,{"1e500":-18446744073709551616,"b":[0.10000000000000000001,2]}],"z":"1e400"}"#;
        let value = parse(text).unwrap();
        assert_eq!(super::super::to_text(&value), text);
        let exact = |pointer: &str| {
            super::super::exact_number(value.pointer(pointer).unwrap()).map(str::to_owned)
        };
        assert_eq!(exact("/a/1").as_deref(), Some("1e400"));
        assert_eq!(
            exact("/a/2/1e500").as_deref(),
            Some("-18446744073709551616")
        );
        assert_eq!((exact("/a/0"), exact("/z")), (None, None));
        assert_eq!(value["a"][2]["b"][1], 2);
    }
}
