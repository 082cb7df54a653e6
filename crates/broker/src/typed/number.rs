//! A JSON number as it was written: `3` stays `3`, and no integer of 64 bits is rounded.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// A JSON number. Converts from every number type of Rust; a float that is not finite is written as
/// null, so the schema of a number refuses it.
///
/// ```
/// use mcp_broker::typed::Number;
///
/// let number: Number = 3.into();
/// assert_eq!(number.as_f64(), 3.0);
/// assert_eq!(serde_json::to_string(&number).unwrap(), "3");
/// assert_eq!(serde_json::to_string(&Number::from(0.5)).unwrap(), "0.5");
/// assert_eq!(Number::from(3), Number::from(3.0));
/// ```
#[derive(Clone, Copy)]
pub struct Number(Form);

#[derive(Clone, Copy)]
enum Form {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Number {
    /// The nearest double.
    pub const fn as_f64(self) -> f64 {
        match self.0 {
            Form::Signed(number) => number as f64,
            Form::Unsigned(number) => number as f64,
            Form::Float(number) => number,
        }
    }

    /// The integer, if it is one and fits; `3.0` is 3.
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Form::Signed(number) => Some(number),
            Form::Unsigned(number) => i64::try_from(number).ok(),
            Form::Float(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                Some(number as i64)
            }
            Form::Float(_) => None,
        }
    }
}

impl PartialEq for Number {
    /// By value: `3` and `3.0` are equal, and integers are compared exactly.
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Form::Signed(a), Form::Signed(b)) => a == b,
            (Form::Unsigned(a), Form::Unsigned(b)) => a == b,
            (Form::Signed(a), Form::Unsigned(b)) | (Form::Unsigned(b), Form::Signed(a)) => {
                u64::try_from(a) == Ok(b)
            }
            _ => self.as_f64() == other.as_f64(),
        }
    }
}

macro_rules! from {
    ($form:ident: $($number:ty),*) => {
        $(impl From<$number> for Number {
            fn from(number: $number) -> Self {
                Self(Form::$form(number.into()))
            }
        })*
    };
}

from!(Signed: i8, i16, i32, i64, u8, u16, u32);
from!(Unsigned: u64);
from!(Float: f32, f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Form::Signed(number) => serializer.serialize_i64(number),
            Form::Unsigned(number) => serializer.serialize_u64(number),
            Form::Float(number) => serializer.serialize_f64(number),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(number.into())
            }
            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(number.into())
            }
            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(number.into())
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Form::Signed(number) => number.fmt(f),
            Form::Unsigned(number) => number.fmt(f),
            Form::Float(number) => number.fmt(f),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn number_is_written_as_it_was_read() {
        for text in [
            "3",
            "3.0",
            "-7",
            "0.1",
            "18446744073709551615",
            "-9223372036854775808",
            "1e300",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let number: Number = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(number).unwrap(), value, "{text}");
        }
        assert!(serde_json::from_value::<Number>(json!("3")).is_err());
        assert!(serde_json::from_value::<Number>(json!(null)).is_err());
    }

    #[test]
    fn numbers_are_equal_by_value_and_exact_beyond_doubles() {
        assert_eq!(Number::from(7_u64), Number::from(7));
        assert_ne!(Number::from(u64::MAX), Number::from(u64::MAX - 1));
        assert_ne!(Number::from(-1), Number::from(u64::MAX));
        assert_eq!(Number::from(3.0).as_i64(), Some(3));
        assert_eq!(Number::from(3.5).as_i64(), None);
        assert_eq!(
            serde_json::to_value(Number::from(f64::NAN)).unwrap(),
            Value::Null
        );
    }
}
