//! JSON values with their byte offsets; of duplicate keys both are kept.

use std::fmt;

use serde_json::{Map, Value};

use broker_model::json::{number_value, string_value};

/// A JSON value and the byte offset of its start.
#[derive(Clone, Debug)]
pub struct Spanned {
    /// The byte offset.
    pub at: usize,
    /// The value.
    pub data: Data,
}

/// The content of a [`Spanned`]. `Debug` shows only its type, since it may contain secrets.
#[derive(Clone)]
pub enum Data {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// As written; it may be outside the range of a double.
    Number(String),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Spanned>),
    /// An object.
    Object(Vec<Member>),
}

/// One member of an object. A duplicate key gives two members.
#[derive(Clone, Debug)]
pub struct Member {
    /// The byte offset of the key.
    pub at: usize,
    /// The key.
    pub key: String,
    /// The value.
    pub value: Spanned,
}

impl Spanned {
    /// The name of its type in messages.
    pub fn type_name(&self) -> &'static str {
        self.data.type_name()
    }

    /// The value of the last member of this name, if it is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let mut members = self.members().iter().rev();
        let found = members.find(|member| member.key == key)?;
        Some(&found.value)
    }

    /// Returns its members; an empty slice if it is not an object.
    pub fn members(&self) -> &[Member] {
        match &self.data {
            Data::Object(members) => members,
            _ => &[],
        }
    }

    /// The value without offsets; of duplicate keys the last. A number that cannot be represented is null.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Number(text) => number_value(text).unwrap_or_default(),
            Data::String(text) => string_value(text),
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

impl Data {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}
