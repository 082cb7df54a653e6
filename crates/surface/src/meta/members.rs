//! The members of a body: one strict object, readers of optional members, and the errors that name a member.

use broker_model::CallCode;
use broker_model::json::{self, StrictError};
use broker_model::suggest;
use broker_model::text::shown_line;
use serde_json::{Map, Value, json};

use broker_core::CoreError;

/// Removes the optional members whose value means absence. Clients with strict schemas must send every member.
pub(super) fn remove_absent(members: &mut Map<String, Value>, optional: &[&str]) {
    members.retain(|name, value| {
        let is_absent = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        };
        !(is_absent && optional.contains(&name.as_str()))
    });
}

/// Returns the integer from 1 to `max` of a member, if the member is there. It may be a string of digits.
pub(super) fn integer(
    members: &Map<String, Value>,
    name: &str,
    max: u64,
) -> Result<Option<u64>, Box<CoreError>> {
    let Some(value) = members.get(name) else {
        return Ok(None);
    };
    let number = match value {
        Value::String(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok()
        }
        other => other.as_u64(),
    };
    match number {
        Some(number) if (1..=max).contains(&number) => Ok(Some(number)),
        _ => Err(field_invalid(format!(
            "`{name}` must be an integer from 1 to {max}"
        ))),
    }
}

/// Reads one object with no other members than `known`.
pub(super) fn object(text: &str, known: &[&str]) -> Result<Map<String, Value>, Box<CoreError>> {
    let value = json::parse(text).map_err(|error| json_invalid(text, 0, text, &error))?;
    let Value::Object(members) = value else {
        return Err(refusal(
            CallCode::JsonInvalid,
            "the body must be one JSON object",
        ));
    };
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(unknown_field(name, known)),
        None => Ok(members),
    }
}

/// The body as text.
pub(super) fn utf8(body: &[u8]) -> Result<&str, Box<CoreError>> {
    std::str::from_utf8(body).map_err(|error| {
        let offset = error.valid_up_to();
        let message = format!("the body is not UTF-8 at byte {offset}");
        let error = CoreError::new(CallCode::JsonInvalid, message);
        Box::new(error.details(json!({ "offset": offset })))
    })
}

/// The error for a body, or a part of it at `offset`, that is not strict JSON; with the position.
pub(super) fn json_invalid(
    body: &str,
    offset: usize,
    part: &str,
    error: &StrictError,
) -> Box<CoreError> {
    Box::new(broker_core::json_invalid(body, offset, part, error))
}

/// Names that callers give to members, and the member that each means.
const SYNONYMS: [(&str, &str); 13] = [
    ("arguments", "args"),
    ("argument", "args"),
    ("params", "args"),
    ("parameters", "args"),
    ("input", "args"),
    ("inputs", "args"),
    ("tool", "path"),
    ("tool_name", "path"),
    ("tool_path", "path"),
    ("name", "path"),
    ("node", "path"),
    ("tools", "paths"),
    ("names", "paths"),
];

/// The error for an unknown member.
pub(super) fn unknown_field(name: &str, known: &[&str]) -> Box<CoreError> {
    let shown = shown_line(name, 80);
    let mut error = refusal(
        CallCode::FieldUnknown,
        format!("the member `{shown}` is unknown"),
    );
    let synonym = SYNONYMS
        .iter()
        .find(|(wrong, right)| name.eq_ignore_ascii_case(wrong) && known.contains(right));
    if let Some((_, right)) = synonym {
        error.message = format!("{}: it is called `{right}`", error.message);
        error.did_you_mean = vec![(*right).to_owned()];
    } else {
        error.did_you_mean = similar_names(name, known);
    }
    let hint = match error.did_you_mean.first() {
        Some(near) => format!("Rename it to `{near}`, or remove it."),
        None => format!("Remove it; the members are `{}`.", known.join("`, `")),
    };
    Box::new(error.hint(hint))
}

/// Returns the error for an argument of a tool next to `path`: it belongs in `args`.
pub(super) fn argument_outside(name: &str, path: &str) -> Box<CoreError> {
    let (name, path) = (shown_line(name, 80), shown_line(path, 160));
    let mut error = refusal(
        CallCode::FieldUnknown,
        format!("the member `{name}` is unknown: arguments of the tool belong in `args`"),
    );
    error.did_you_mean = vec!["args".to_owned()];
    let body = json!({ "path": path, "args": { name: "…" } });
    Box::new(error.hint(format!("Send the arguments in `args`: `{body}`.")))
}

/// The names of `known` that resemble `name`, the most similar first.
pub fn similar_names(name: &str, known: &[&str]) -> Vec<String> {
    let near = suggest::nearest(name, known.iter().copied(), known.len());
    near.into_iter().map(str::to_owned).collect()
}

pub(super) fn path_missing() -> Box<CoreError> {
    refusal(CallCode::PathInvalid, "`path` is missing")
}

pub(super) fn path_type() -> Box<CoreError> {
    refusal(CallCode::PathInvalid, "`path` must be a string")
}

/// The error for `meta` that cannot be forwarded.
pub(super) fn meta_invalid(problem: &str) -> Box<CoreError> {
    field_invalid(format!("`meta` {problem}"))
}

/// Whether a JSON value is a string with the beginning of an object.
pub fn is_quoted_object(json: &str) -> bool {
    let Some(mut text) = json.strip_prefix('"') else {
        return false;
    };
    let blank = [" ", "\\n", "\\t", "\\r"];
    while let Some(rest) = blank.iter().find_map(|blank| text.strip_prefix(blank)) {
        text = rest;
    }
    text.starts_with('{')
}

fn refusal(code: CallCode, message: impl Into<String>) -> Box<CoreError> {
    Box::new(CoreError::new(code, message))
}

pub(super) fn field_invalid(message: impl Into<String>) -> Box<CoreError> {
    refusal(CallCode::FieldInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_the_nearest_fields() {
        assert_eq!(similar_names("argz", &["path", "args"]), ["args"]);
        assert_eq!(
            similar_names("pathes", &["path", "paths"]),
            ["paths", "path"]
        );
        assert!(similar_names("zzz", &["path", "args"]).is_empty());
    }

    #[test]
    fn member_with_a_usual_wrong_name_is_named_in_the_message() {
        for name in ["arguments", "params", "input", "Parameters"] {
            let error = unknown_field(name, &["path", "args"]);
            assert_eq!(
                error.message,
                format!("the member `{name}` is unknown: it is called `args`")
            );
            assert_eq!(error.did_you_mean, ["args"]);
        }
        let error = unknown_field("input", &["path", "depth"]);
        assert!(error.did_you_mean.is_empty());
        let hint = error.hint.unwrap();
        assert!(hint.contains("`path`, `depth`") && !hint.contains("did_you_mean"));
    }

    #[test]
    fn quoted_object_is_recognised_by_its_beginning() {
        for (text, quoted) in [
            (r#""{}""#, true),
            (r#"" \n\t{\"a\":1}""#, true),
            (r#""a{}""#, false),
            ("{}", false),
            ("\"", false),
            (r#""""#, false),
        ] {
            assert_eq!(is_quoted_object(text), quoted, "{text}");
        }
    }

    #[test]
    fn body_error_position_counts_from_the_whole_body() {
        let body = "{\"path\":\"/a\",\n \"args\":{\"x\":1,\n  \"x\":2}}";
        let part = &body[body.find("{\"x").unwrap()..body.len() - 1];
        let error = json::parse(part).unwrap_err();
        let refusal = json_invalid(body, body.find(part).unwrap(), part, &error);
        let details = refusal.details.clone().unwrap();
        assert_eq!(details["line"], 3, "{details}");
        assert!(refusal.message.contains("duplicate key `x` at byte"));
    }
}
