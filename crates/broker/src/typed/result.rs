//! The result of a call as the server sent it, and its conversion to a type.

use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// A result of `tools/call`: one JSON object with `content`, and perhaps `structuredContent`, `isError`
/// and `_meta`. Byte for byte as the server sent it; `render_mode` and `max_output_chars` of the config
/// do not apply. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct RawResult {
    text: Bytes,
}

/// The members of a result that are read.
#[derive(Deserialize)]
struct ResultMembers<'a> {
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

impl RawResult {
    pub(super) const fn new(text: Bytes) -> Self {
        Self { text }
    }

    /// The JSON text of the server: UTF-8 if the server follows the protocol.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.text
    }

    /// The result as a JSON value.
    ///
    /// # Errors
    ///
    /// If the text cannot be read, for example because it is not UTF-8.
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.members().is_ok_and(|members| members.is_error)
    }

    /// Returns the text blocks of `content`, joined by newlines; empty without text blocks.
    pub fn text(&self) -> String {
        #[derive(Deserialize)]
        struct Block {
            #[serde(rename = "type")]
            kind: String,
            text: String,
        }
        let Ok(members) = self.members() else {
            return String::new();
        };
        let blocks = members.content.into_iter();
        let texts: Vec<String> = blocks
            .filter_map(|block| serde_json::from_str::<Block>(block.get()).ok())
            .filter(|block| block.kind == "text")
            .map(|block| block.text)
            .collect();
        texts.join("\n")
    }

    /// `structuredContent` as a type; without an output schema in the lock it is not read.
    pub(super) fn output<O: DeserializeOwned>(&self, typed: bool) -> Result<O, String> {
        if !typed {
            return read("null");
        }
        let members = self
            .members()
            .map_err(|error| format!("the result cannot be read: {error}"))?;
        match members.structured {
            Some(structured) => read(structured.get()),
            None => {
                Err("the result has no `structuredContent`, which its schema asks for".to_owned())
            }
        }
    }

    fn members(&self) -> Result<ResultMembers<'_>, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }
}

/// Reads a type. JSON Schema accepts `3.0` as an integer and serde does not, so integral floats are
/// tried as integers if the text does not fit.
fn read<O: DeserializeOwned>(text: &str) -> Result<O, String> {
    serde_json::from_str(text).or_else(|error: serde_json::Error| {
        let again = serde_json::from_str::<Value>(text).map(integral);
        again
            .and_then(serde_json::from_value)
            .map_err(|_| format!("`structuredContent` does not fit its type: {error}"))
    })
}

fn integral(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9.2e18 => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(integral).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (name, integral(member)))
            .collect(),
        other => other,
    }
}

impl fmt::Debug for RawResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(body: &'static str) -> RawResult {
        RawResult::new(Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn typed_result_keeps_every_byte() {
        let raw = result(r#"{"content":[],"n":1.00,"structuredContent":{"n":3.0}}"#);
        assert_eq!(
            &raw.as_bytes()[..],
            br#"{"content":[],"n":1.00,"structuredContent":{"n":3.0}}"#
        );
        assert!(!raw.is_error());
        raw.output::<()>(false).unwrap();
    }

    #[test]
    fn typed_output_that_does_not_fit_is_refused_with_the_place() {
        #[derive(Deserialize, Debug)]
        struct Output {
            n: i64,
        }
        let raw = result(r#"{"structuredContent":{"n":3.0}}"#);
        assert_eq!(raw.output::<Output>(true).unwrap().n, 3);
        let raw = result(r#"{"structuredContent":{"n":"x"}}"#);
        let error = raw.output::<Output>(true).unwrap_err();
        assert!(
            error.contains("does not fit") && error.contains("column"),
            "{error}"
        );
        let raw = result(
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}"#,
        );
        assert!(
            raw.output::<Output>(true)
                .unwrap_err()
                .contains("no `structuredContent`")
        );
        assert!(raw.is_error());
        assert_eq!(raw.text(), "a\nb");
    }
}
