//! Numbers that `serde_json` cannot hold: their representation in a [`Value`].
//!
//! A [`Value`] holds an integer of 64 bits or a double, so it would round `0.10000000000000000001` and refuse
//! `1e400`. The strict reader keeps such a number as a *number string*: a string of U+FDD0, a noncharacter,
//! and the number as it was written. Every writer here turns it back into the number:
//! [`to_text`](super::to_text), [`to_review_text`](super::to_review_text) and
//! [`to_canonical`](super::to_canonical).
//!
//! A peer cannot forge one. If a string of a peer has this form (U+FDD0 once or more, then a number), the reader
//! puts one more U+FDD0 before it, and the writers remove it. Names of members are never changed.
//!
//! A number is *ordinary* and a `serde_json` number in the [`Value`], if it
//! - is written as an integer of 64 bits, or
//! - is written with a fraction or an exponent, and has the value of the shortest decimal form of its nearest
//!   double, such as `0.1`, `4.50` or `1e300`. Between 2^53 and 2^64 the double must have this value in binary
//!   too, since it is compared with integers there.
//!
//! All others are *exact* numbers: `18446744073709551616`, `1e400`, `0.10000000000000000001`.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::decimal::Decimal;

/// The first character of a number string.
const MARK: char = '\u{fdd0}';
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Whether `text` begins like a number string.
#[inline]
pub fn may_be_number(text: &str) -> bool {
    text.as_bytes().first() == Some(&0xef) && text.starts_with(MARK)
}

/// The number of a number string, as it was written.
#[inline]
pub fn number_in(text: &str) -> Option<&str> {
    if !may_be_number(text) {
        return None;
    }
    let digits = &text[MARK.len_utf8()..];
    Decimal::parse(digits).map(|_| digits)
}

/// The text of an exact number; `None` for every other value.
#[inline]
pub fn exact_number(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => number_in(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// The text of a string as its author wrote it; `None` for every other value, and for exact numbers.
#[inline]
pub fn string_text(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    if !may_be_number(text) {
        return Some(text);
    }
    number_in(text).is_none().then(|| unescaped(text))
}

/// The decimal value of a number of either kind.
pub fn decimal_of(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Some(Decimal::from_number(number)),
        other => Decimal::parse(exact_number(other)?),
    }
}

/// Makes the string of a text that was not read by the strict reader.
pub fn string_value(text: &str) -> Value {
    Value::String(escaped(text).into_owned())
}

/// Makes the value of a JSON number; `None` if it is over a limit or not a number.
pub fn number_value(text: &str) -> Option<Value> {
    match kind_of(text)? {
        Kind::Ordinary => text.parse::<Number>().ok().map(Value::Number),
        Kind::Exact => Some(Value::String(format!("{MARK}{text}"))),
    }
}

/// The text of a string that is kept in a [`Value`].
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if may_be_number(text) && looks_like_number(text) {
        Cow::Owned(format!("{MARK}{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text of a string from a [`Value`] that is not an exact number.
pub(super) fn unescaped(text: &str) -> &str {
    match text.strip_prefix(MARK) {
        Some(rest) if looks_like_number(rest) => rest,
        _ => text,
    }
}

/// Whether a text is one or more marks and a number.
fn looks_like_number(text: &str) -> bool {
    text.starts_with(MARK) && Decimal::parse(text.trim_start_matches(MARK)).is_some()
}

/// How a number is held in a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ordinary,
    Exact,
}

/// The kind of the number `text`; `None` if it is over a limit or not a number.
pub(super) fn kind_of(text: &str) -> Option<Kind> {
    let is_integer = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if is_integer {
        if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
            return Some(Kind::Ordinary);
        }
        return Decimal::parse(text).map(|_| Kind::Exact);
    }
    if is_short(text) {
        return Some(Kind::Ordinary);
    }
    let value = Decimal::parse(text)?;
    let Some(float) = shortest_double(&value, text) else {
        return Some(Kind::Exact);
    };
    let is_among_integers = float.abs() > TWO_TO_53 && float.abs() < TWO_TO_64;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a double of this range is within i128"
    )]
    let is_equal = || value.small_integer() == Some(float as i128);
    match !is_among_integers || is_equal() {
        true => Some(Kind::Ordinary),
        false => Some(Kind::Exact),
    }
}

/// The double whose shortest decimal form has the value of the number `text`.
fn shortest_double(value: &Decimal, text: &str) -> Option<f64> {
    let float: f64 = text.parse().ok()?;
    if !float.is_finite() {
        return None;
    }
    let mut buffer = ryu_js::Buffer::new();
    let shortest = Decimal::parse(buffer.format_finite(float));
    (shortest.as_ref() == Some(value)).then_some(float)
}

/// Whether a 64-bit integer or the shortest decimal form of a double has this value. Digests of such numbers
/// have not changed since `sha256/1:`. The text is one of the number.
pub(super) fn is_in_first_range(value: &Decimal, text: &str) -> bool {
    value.is_64_bit() || shortest_double(value, text).is_some()
}

impl Decimal {
    /// Returns the double for hashing numbers of this value: every ordinary number of this value has it. `None` without
    /// such a number.
    pub fn double_of_ordinary(&self) -> Option<f64> {
        let mut text = Vec::new();
        self.write(&mut text);
        let text = String::from_utf8(text).ok()?;
        is_in_first_range(self, &text)
            .then(|| text.parse().ok())
            .flatten()
    }
}

/// Whether a number has at most 15 digits and an exponent within the range of doubles: such a decimal is the shortest
/// form of its double.
fn is_short(text: &str) -> bool {
    let mut digits = 0usize;
    let mut bytes = text.bytes();
    for byte in bytes.by_ref() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'.' | b'-' => {}
            b'e' | b'E' => {
                let rest: i32 = text
                    .rsplit(['e', 'E'])
                    .next()
                    .and_then(|exponent| exponent.parse().ok())
                    .unwrap_or(i32::MAX);
                return digits <= 15 && (-280..=280).contains(&rest);
            }
            _ => return false,
        }
    }
    digits <= 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_ordinary_if_its_shortest_double_has_its_value() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "0e999",
            "1",
            "1.0",
            "0.1",
            "4.50",
            "1e300",
            "1E30",
            "2e-3",
            "5e-324",
            "1.7976931348623157e308",
            "18446744073709551615",
            "-9223372036854775808",
            "1e15",
            "1e18",
            "1e19",
            "333333333.3333333",
            "100000000000000.00000",
        ] {
            assert_eq!(kind_of(text), Some(Kind::Ordinary), "{text}");
        }
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "1e400",
            "-1e400",
            "1e-400",
            "0.10000000000000000001",
            "0.1000000000000000055511151231257827021181583404541015625",
            "333333333.33333329",
            "9007199254740993.0",
            "1000000000000000000000000000000",
            "123456789012345678e-10",
            "9.223372036854776e18",
            "9007199254740993e0",
        ] {
            assert_eq!(kind_of(text), Some(Kind::Exact), "{text}");
        }
    }

    #[test]
    fn string_that_looks_like_an_exact_number_stays_a_string() {
        for text in [
            "\u{fdd0}1e400",
            "\u{fdd0}\u{fdd0}5",
            "\u{fdd0}",
            "\u{fdd0}x",
            "\u{fdd0}\u{fdd0}",
            "",
            "x",
        ] {
            let value = string_value(text);
            assert_eq!(exact_number(&value), None, "{text:?}");
            assert_eq!(string_text(&value), Some(text), "{text:?}");
        }
        let number = number_value("1e400").unwrap();
        assert_eq!(
            (exact_number(&number), string_text(&number)),
            (Some("1e400"), None)
        );
    }
}
