//! Ids of requests: counters of the broker, and arbitrary ids of clients and servers.

use std::fmt;

use serde_json::Value;

use crate::Raw;

/// Longer ids are refused: every request in flight stores its id.
pub const MAX_ID_BYTES: usize = 1024;
/// The number of digits that always fits into 64 bits.
const MAX_PLAIN_DIGITS: usize = 18;

/// The id of a request. `1` and `"1"` are different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// An integer.
    Integer(i128),
    /// A string.
    Text(String),
    /// Another JSON value, or an id that is too long. Only in messages of servers; it is echoed
    /// unchanged.
    Other(Raw),
}

impl Id {
    /// Reads an id; `None` if it is neither string nor integer, or too long.
    pub fn parse(raw: &str) -> Option<Self> {
        if raw.len() > MAX_ID_BYTES {
            return None;
        }
        // Nearly every id is a short number.
        if raw.len() <= MAX_PLAIN_DIGITS && is_digits(raw) && !raw.starts_with('0') {
            return raw.parse().ok().map(Self::Integer);
        }
        match serde_json::from_str(raw).ok()? {
            Value::String(text) => Some(Self::Text(text)),
            Value::Number(number) => {
                let signed = number.as_i64().map(i128::from);
                let integer = signed.or_else(|| number.as_u64().map(i128::from))?;
                Some(Self::Integer(integer))
            }
            _ => None,
        }
    }

    /// Returns the number of a request of the broker. A server may return it as a string, or as the same number in
    /// another form: JSON does not tell `1.0` from `1`.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Integer(integer) => u64::try_from(*integer).ok(),
            Self::Text(text) if is_digits(text) => text.parse().ok(),
            Self::Other(raw) => whole_number(raw.bytes()),
            Self::Text(_) => None,
        }
    }

    /// Whether the id is too long for an answer.
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::Other(raw) if raw.bytes().len() > MAX_ID_BYTES)
    }
}

/// Returns the value of a JSON number with a fraction or an exponent, if it is a whole number that a double has
/// exactly.
fn whole_number(raw: &[u8]) -> Option<u64> {
    const MAX_EXACT: f64 = (1u64 << 53) as f64;
    if !matches!(raw.first(), Some(b'0'..=b'9')) || raw.len() > MAX_ID_BYTES {
        return None;
    }
    let number: f64 = serde_json::from_slice(raw).ok()?;
    let is_whole = number.fract() == 0.0 && number < MAX_EXACT;
    // In the range that was checked, the cast is exact.
    is_whole.then_some(number as u64)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// As JSON.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Text(text) => Value::from(text.as_str()).fmt(f),
            Self::Other(raw) => f.write_str(&String::from_utf8_lossy(raw.bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_keeps_its_type() {
        let id = |text: &str| Id::parse(text).unwrap();
        assert_ne!(id("1"), id("\"1\""));
        assert_eq!(id("\"a\\u0062\\n\"").to_string(), "\"ab\\n\"");
        for text in [
            "0",
            "-5",
            "999999999999999999",
            "18446744073709551615",
            "-9223372036854775808",
        ] {
            assert_eq!(id(text).to_string(), text);
        }
        for text in ["", "00", "01", "1.0", "null", "[1]", "99999999999999999999"] {
            assert_eq!(Id::parse(text), None, "{text}");
        }
    }

    #[test]
    fn id_of_an_answer_is_compared_by_value() {
        let number = |text: &str| {
            let line = bytes::Bytes::copy_from_slice(text.as_bytes());
            let value = serde_json::from_slice(&line).expect("JSON");
            Id::Other(Raw::new(&line, value)).number()
        };
        assert_eq!(number("1.0"), Some(1));
        assert_eq!(number("1e0"), Some(1));
        assert_eq!(number("1.20E1"), Some(12));
        for text in ["1.5", "-1.0", "1e400", "1e300", "[1]", "null", "{}"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn id_number_is_recognised_as_a_string_too() {
        let number = |text: &str| Id::parse(text).and_then(|id| id.number());
        assert_eq!(number("7"), Some(7));
        assert_eq!(number("\"007\""), Some(7));
        assert_eq!(number("18446744073709551615"), Some(u64::MAX));
        for text in ["-7", "\"-7\"", "\"+7\"", "\"\"", "\"a\"", "1.5"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
