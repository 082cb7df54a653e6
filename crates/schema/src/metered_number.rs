//! Numbers as `jsonschema` reads them: ordinary ones, and exact ones by their text.

use std::borrow::Cow;

use jsonschema::json::JsonNumber;
use serde_json::Number;

use broker_model::json::Decimal;

/// The largest exponent of a double.
const MAX_EXPONENT: i32 = 310;

/// A number of a value.
#[derive(Clone, Copy)]
pub(super) enum MeteredNumber<'a> {
    Ordinary(&'a Number),
    /// The text of an exact number.
    Exact(&'a str),
}

impl JsonNumber for MeteredNumber<'_> {
    #[inline]
    fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Ordinary(number) => number.as_u64(),
            Self::Exact(_) => None,
        }
    }

    #[inline]
    fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Ordinary(number) => number.as_i64(),
            Self::Exact(_) => None,
        }
    }

    #[inline]
    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Ordinary(number) => number.as_f64(),
            Self::Exact(text) => text.parse().ok().filter(|float: &f64| float.is_finite()),
        }
    }

    /// The digits of a large double, so that divisions of it are exact.
    fn as_str(&self) -> Cow<'_, str> {
        match self {
            Self::Ordinary(number) if number.is_f64() => Cow::Owned(plain(number)),
            Self::Ordinary(number) => Cow::Owned(number.to_string()),
            Self::Exact(text) => Cow::Borrowed(text),
        }
    }

    fn to_number(&self) -> Cow<'_, Number> {
        match self {
            Self::Ordinary(number) => Cow::Borrowed(number),
            Self::Exact(_) => Cow::Owned(0.into()),
        }
    }

    #[inline]
    fn is_integer(&self) -> bool {
        match self {
            Self::Ordinary(number) => match number.as_f64() {
                Some(float) if number.is_f64() => float.fract() == 0.0,
                _ => true,
            },
            Self::Exact(text) => Decimal::parse(text).is_some_and(|number| number.is_integer()),
        }
    }

    fn is_written_as_integer(&self) -> bool {
        match self {
            Self::Ordinary(number) => !number.is_f64(),
            Self::Exact(text) => !text.contains(['.', 'e', 'E']),
        }
    }
}

/// An integer of a double without exponent.
fn plain(number: &Number) -> String {
    let text = number.to_string();
    match Decimal::parse(&text) {
        Some(value) if value.is_integer() && value.exponent() <= MAX_EXPONENT => {
            let mut plain = String::new();
            if value.is_negative() {
                plain.push('-');
            }
            plain.push_str(&String::from_utf8_lossy(value.digits()));
            let zeros = usize::try_from(value.exponent()).unwrap_or(0);
            plain.extend(std::iter::repeat_n('0', zeros));
            plain
        }
        _ => text,
    }
}
