//! JSON values with their byte offsets; of duplicate keys both are kept.

use serde_json::{Map, Number, Value};

/// A JSON value and the byte offset at which it begins.
#[derive(Debug)]
pub(super) struct Spanned {
    pub(super) at: usize,
    pub(super) data: Data,
}

/// The content of a [`Spanned`].
#[derive(Debug)]
pub(super) enum Data {
    Null,
    Bool(bool),
    /// As written; it may be outside the range of a double.
    Number(String),
    String(String),
    Array(Vec<Spanned>),
    Object(Vec<Member>),
}

/// One member of an object. A duplicate key gives two members.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) at: usize,
    pub(super) key: String,
    pub(super) value: Spanned,
}

impl Spanned {
    /// The name of its type in messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self.data {
            Data::Null => "null",
            Data::Bool(_) => "a boolean",
            Data::Number(_) => "a number",
            Data::String(_) => "a string",
            Data::Array(_) => "a list",
            Data::Object(_) => "an object",
        }
    }

    /// The value without offsets; of duplicate keys the last. A number that cannot be represented is null.
    pub(super) fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Number(text) => number_of(text).map_or(Value::Null, Value::Number),
            Data::String(text) => Value::from(text.as_str()),
            Data::Array(items) => items.iter().map(Self::to_value).collect(),
            Data::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|member| (member.key.clone(), member.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

/// The number that `text` writes; `None` if neither 64 bits nor a double can represent it.
pub(super) fn number_of(text: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(text).ok()?;
    let integer = !text.contains(['.', 'e', 'E']);
    (!integer || number.is_i64() || number.is_u64() || text == "-0").then_some(number)
}
