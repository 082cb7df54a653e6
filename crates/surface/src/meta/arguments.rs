//! The arguments of the called tool in the body of a meta-tool: an object, or a string with the JSON of one. Clients
//! that convert schemas strictly can send an object of unknown members only as a string.

use std::borrow::Cow;

use broker_model::CallCode;
use broker_model::json::StrictError;
use broker_model::text::shown_line;
use bytes::Bytes;

use super::members::field_invalid;
use broker_core::{Account, Charge, CoreError, memory_error_for_request};

/// The JSON of the member, unless it is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgsJson<'a> {
    /// An object, as written.
    Object(&'a str),
    /// A string in its quotes.
    Quoted(&'a str),
}

impl<'a> ArgsJson<'a> {
    /// Looks at the first byte of the member `name`, whose value is `json`. Returns `None` for null: it means no
    /// arguments.
    ///
    /// # Errors
    ///
    /// The value is of another type.
    pub(super) fn parse(name: &str, json: &'a str) -> Result<Option<Self>, Box<CoreError>> {
        match json.as_bytes().first() {
            Some(b'{') => Ok(Some(Self::Object(json))),
            Some(b'"') => Ok(Some(Self::Quoted(json))),
            Some(b'n') => Ok(None),
            _ => Err(field_invalid(format!("`{name}` must be an object"))),
        }
    }
}

/// Reads the text of a string that must be the JSON of an object; the JSON itself is parsed later.
///
/// # Errors
///
/// The text does not begin as an object.
pub(super) fn unquote<'a>(name: &str, quoted: &'a str) -> Result<Cow<'a, str>, Box<CoreError>> {
    #[derive(serde::Deserialize)]
    struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

    let text = serde_json::from_str(quoted).map(|Text(text)| text);
    let text =
        text.map_err(|_| field_invalid(format!("`{name}` is a string that is not valid text")))?;
    if text
        .trim_start_matches([' ', '\n', '\r', '\t'])
        .starts_with('{')
    {
        return Ok(text);
    }
    let message = format!(
        "`{name}` must be an object, and is the string `{}`",
        shown_line(&text, 80)
    );
    Err(Box::new(field_invalid(message).hint(
        "Send the object itself, or a string that is its JSON.",
    )))
}

/// As [`unquote`], of a long string, whose copy is charged to the caller.
pub(super) fn unquote_long(
    name: &str,
    quoted: &str,
    account: &Account,
) -> Result<Bytes, Box<CoreError>> {
    let mut charge = Charge::default();
    charge
        .cover(account, quoted.len())
        .map_err(|full| Box::new(memory_error_for_request(full, quoted.len(), account)))?;
    let text = unquote(name, quoted)?.into_owned();
    Ok(charge.hold(text.into_bytes()))
}

/// Returns the error for a string whose text is not strict JSON; for a long string, core makes the error, with the same
/// code.
pub(super) fn quoted_invalid(name: &str, error: &StrictError) -> Box<CoreError> {
    let message = format!(
        "`{name}` is a string whose text is not strict JSON: {}",
        shown_line(&error.to_string(), 200)
    );
    let error = CoreError::new(CallCode::JsonInvalid, message);
    Box::new(error.hint("Send the object itself, or a string that is its JSON."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_core::MemoryBudget;

    #[test]
    fn arguments_are_an_object_null_or_a_string_with_an_object() {
        let of = |json| ArgsJson::parse("args", json).ok();
        assert_eq!(of("{}"), Some(Some(ArgsJson::Object("{}"))));
        assert_eq!(of("null"), Some(None));
        assert_eq!(of(r#""{}""#), Some(Some(ArgsJson::Quoted(r#""{}""#))));
        for other in ["1", "-1", "[]", "true", "false"] {
            assert_eq!(of(other), None, "{other}");
        }
        let text = unquote("args", r#""\n {\"a\":1.0}""#).unwrap();
        assert_eq!(text, "\n {\"a\":1.0}");
        for other in [r#""""#, r#""[]""#, r#""null""#, r#""a{}""#, r#""\ud800""#] {
            let message = unquote("args", other).unwrap_err().message;
            assert!(message.starts_with("`args` "), "{message}");
        }
    }

    #[test]
    fn copy_of_a_long_string_is_charged_until_it_is_dropped() {
        let budget = MemoryBudget::new(1 << 20);
        let account = budget.account();
        let quoted = format!("\"{{{}}}\"", " ".repeat(200_000));
        let free = budget.used();
        let text = unquote_long("args", &quoted, &account).unwrap();
        assert_eq!(text.len(), quoted.len() - 2);
        assert!(budget.used() >= free + text.len());
        drop(text);
        assert_eq!(budget.used(), free);
        let huge = format!("\"{{{}}}\"", " ".repeat(2 << 20));
        assert!(unquote_long("args", &huge, &account).is_err());
    }
}
