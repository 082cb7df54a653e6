//! The config that an import writes: values whose objects keep their order.

use broker_config::client_file::Spanned;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// A value of the config.
#[derive(Clone)]
pub(super) enum Out {
    /// A value as it is.
    Value(Value),
    /// An image, a file or the like: only the whole text may become a variable.
    Word(String),
    /// A text with variables.
    Template(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Out {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Value(Value::String(text.into()))
    }

    pub(super) fn from_value(value: &Spanned) -> Self {
        Self::Value(value.to_value())
    }

    /// Calls the function with every text that may have variables, and whether it is a word.
    pub(super) fn each_template(&mut self, change: &mut impl FnMut(&mut String, bool)) {
        match self {
            Self::Value(_) => {}
            Self::Word(text) => change(text, true),
            Self::Template(text) => change(text, false),
            Self::List(items) => items.iter_mut().for_each(|item| item.each_template(change)),
            Self::Object(members) => members
                .iter_mut()
                .for_each(|(_, value)| value.each_template(change)),
        }
    }

    /// Whether any text in it has this property; keys are texts too.
    pub(super) fn has_text(&self, is: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Value(value) => has_text(value, is),
            Self::Word(text) | Self::Template(text) => is(text),
            Self::List(items) => items.iter().any(|item| item.has_text(is)),
            Self::Object(members) => members
                .iter()
                .any(|(key, value)| is(key) || value.has_text(is)),
        }
    }
}

fn has_text(value: &Value, is: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => is(&number.to_string()),
        Value::String(text) => is(text),
        Value::Array(items) => items.iter().any(|item| has_text(item, is)),
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| is(key) || has_text(value, is)),
    }
}

impl Serialize for Out {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Word(text) | Self::Template(text) => serializer.serialize_str(text),
            Self::List(items) => items.serialize(serializer),
            Self::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    object.serialize_entry(key, value)?;
                }
                object.end()
            }
        }
    }
}

impl std::fmt::Debug for Out {
    /// Omits its content, since it may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Out")
    }
}
