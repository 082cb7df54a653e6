//! Sets of JSON types. `number` includes the integers: the set contains both.

use broker_model::json::decimal_of;
use serde_json::Value;

/// A JSON type. `Fraction` is a number that is not an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Fraction,
    String,
    Array,
    Object,
}

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Type {
    pub(super) const ALL: [Self; 7] = [
        Self::Null,
        Self::Boolean,
        Self::Integer,
        Self::Fraction,
        Self::String,
        Self::Array,
        Self::Object,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => match number.as_f64() {
                Some(float) if float.fract() == 0.0 => Self::Integer,
                _ => Self::Fraction,
            },
            Value::Number(_) => Self::Integer,
            Value::String(_) => match decimal_of(value) {
                Some(number) if number.is_integer() => Self::Integer,
                Some(_) => Self::Fraction,
                None => Self::String,
            },
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

impl Types {
    pub(super) const ALL: Self = Self(0x7f);

    /// The value of `type`; `None` if it is invalid.
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(name) => Self::named(name),
            Value::Array(names) => names.iter().try_fold(Self(0), |set, name| {
                Some(Self(set.0 | Self::named(name.as_str()?)?.0))
            }),
            _ => None,
        }
    }

    fn named(name: &str) -> Option<Self> {
        let bits = match name {
            "null" => Type::Null.bit(),
            "boolean" => Type::Boolean.bit(),
            "integer" => Type::Integer.bit(),
            "number" => Type::Integer.bit() | Type::Fraction.bit(),
            "string" => Type::String.bit(),
            "array" => Type::Array.bit(),
            "object" => Type::Object.bit(),
            _ => return None,
        };
        Some(Self(bits))
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn narrowed(self, to: Type) -> Self {
        Self(self.0 & to.bit())
    }

    pub(super) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) const fn with(self, one: Type) -> Self {
        Self(self.0 | one.bit())
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn has(self, one: Type) -> bool {
        self.0 & one.bit() != 0
    }

    pub(super) fn has_type_of(self, value: &Value) -> bool {
        self.has(Type::from_value(value))
    }

    pub(super) const fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(super) fn each(self) -> impl Iterator<Item = Type> {
        Type::ALL.into_iter().filter(move |one| self.has(*one))
    }
}
