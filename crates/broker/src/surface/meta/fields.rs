//! The bodies of `meta_tree` and `meta_desc`, and the common errors of bodies. Core checks whether a
//! path is well-formed and exists.

use broker_model::CallCode;
use broker_model::json::{self, StrictError};
use broker_model::suggest;
use broker_model::text::shown_line;
use serde_json::{Map, Value, json};

use crate::core::{self, CoreError, MAX_DEPTH, MAX_DESCRIBED};

/// A checked `meta_tree` body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeBody {
    pub(super) path: String,
    pub(super) depth: u8,
}

/// A checked `meta_desc` body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DescBody {
    /// `{"path":…}`
    One(String),
    /// `{"paths":[…]}`
    Many(Vec<String>),
}

impl TreeBody {
    pub(super) fn parse(text: &str) -> Result<Self, Box<CoreError>> {
        let mut members = object(text, &["path", "depth"])?;
        let path = match members.remove("path") {
            None => "/".to_owned(),
            Some(Value::String(path)) => path,
            Some(_) => return Err(path_type()),
        };
        let depth = match members.get("depth").map(Value::as_u64) {
            None => 1,
            Some(Some(depth)) if (1..=u64::from(MAX_DEPTH)).contains(&depth) => depth as u8,
            Some(_) => {
                return Err(field_invalid(format!(
                    "`depth` must be an integer from 1 to {MAX_DEPTH}"
                )));
            }
        };
        Ok(Self { path, depth })
    }
}

impl DescBody {
    pub(super) fn parse(text: &str) -> Result<Self, Box<CoreError>> {
        let mut members = object(text, &["path", "paths"])?;
        match (members.remove("path"), members.remove("paths")) {
            (Some(Value::String(path)), None) => Ok(Self::One(path)),
            (Some(_), None) => Err(path_type()),
            (None, Some(Value::Array(items))) if items.len() <= MAX_DESCRIBED => items
                .into_iter()
                .map(|item| match item {
                    Value::String(path) => Ok(path),
                    _ => Err(paths_type()),
                })
                .collect::<Result<_, _>>()
                .map(Self::Many),
            (None, Some(_)) => Err(paths_type()),
            (Some(_), Some(_)) => Err(field_invalid("give `path` or `paths`, not both")),
            (None, None) => Err(field_invalid("give `path` or `paths`")),
        }
    }
}

/// Reads one object with no other members than `known`.
fn object(text: &str, known: &[&str]) -> Result<Map<String, Value>, Box<CoreError>> {
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
    Box::new(core::json_invalid(body, offset, part, error))
}

/// The error for an unknown member.
pub(super) fn unknown_field(name: &str, known: &[&str]) -> Box<CoreError> {
    let message = format!("the member `{}` is unknown", shown_line(name, 80));
    let mut error = refusal(CallCode::FieldUnknown, message);
    error.did_you_mean = similar_names(name, known);
    error
}

/// The names of `known` that resemble `name`, the most similar first.
pub(in crate::surface) fn similar_names(name: &str, known: &[&str]) -> Vec<String> {
    let near = suggest::nearest(name, known.iter().copied(), known.len());
    near.into_iter().map(str::to_owned).collect()
}

pub(super) fn path_missing() -> Box<CoreError> {
    refusal(CallCode::PathInvalid, "`path` is missing")
}

pub(super) fn path_type() -> Box<CoreError> {
    refusal(CallCode::PathInvalid, "`path` must be a string")
}

pub(super) fn args_invalid_type() -> Box<CoreError> {
    field_invalid("`args` must be an object")
}

fn paths_type() -> Box<CoreError> {
    field_invalid(format!(
        "`paths` must be a list of at most {MAX_DESCRIBED} strings"
    ))
}

fn refusal(code: CallCode, message: impl Into<String>) -> Box<CoreError> {
    Box::new(CoreError::new(code, message))
}

fn field_invalid(message: impl Into<String>) -> Box<CoreError> {
    refusal(CallCode::FieldInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_body_is_parsed_or_refused() {
        let tree = |path: &str, depth| TreeBody {
            path: path.to_owned(),
            depth,
        };
        assert_eq!(TreeBody::parse("{}").unwrap(), tree("/", 1));
        assert_eq!(
            TreeBody::parse(r#"{"path":"/a","depth":16}"#).unwrap(),
            tree("/a", 16)
        );
        for (text, code) in [
            (r#"{"path":1}"#, CallCode::PathInvalid),
            (r#"{"path":null}"#, CallCode::PathInvalid),
            (r#"{"depth":0}"#, CallCode::FieldInvalid),
            (r#"{"depth":17}"#, CallCode::FieldInvalid),
            (r#"{"depth":-1}"#, CallCode::FieldInvalid),
            (r#"{"depth":1.5}"#, CallCode::FieldInvalid),
            (r#"{"depth":"1"}"#, CallCode::FieldInvalid),
            (r#"{"depth":null}"#, CallCode::FieldInvalid),
            (r#"{"deph":1}"#, CallCode::FieldUnknown),
            (r#"{"depth":1,"depth":1}"#, CallCode::JsonInvalid),
            ("[]", CallCode::JsonInvalid),
            ("", CallCode::JsonInvalid),
        ] {
            assert_eq!(TreeBody::parse(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn desc_body_is_parsed_or_refused() {
        assert_eq!(
            DescBody::parse(r#"{"path":"/a"}"#).unwrap(),
            DescBody::One("/a".to_owned())
        );
        assert_eq!(
            DescBody::parse(r#"{"paths":["/b","/a"]}"#).unwrap(),
            DescBody::Many(vec!["/b".to_owned(), "/a".to_owned()])
        );
        let many = |count: usize| json!({ "paths": vec!["/a"; count] }).to_string();
        assert!(DescBody::parse(&many(50)).is_ok());
        for (text, code) in [
            (many(51).as_str(), CallCode::FieldInvalid),
            ("{}", CallCode::FieldInvalid),
            (r#"{"path":"/a","paths":[]}"#, CallCode::FieldInvalid),
            (r#"{"path":[]}"#, CallCode::PathInvalid),
            (r#"{"paths":"/a"}"#, CallCode::FieldInvalid),
            (r#"{"paths":["/a",1]}"#, CallCode::FieldInvalid),
            (r#"{"pats":[]}"#, CallCode::FieldUnknown),
        ] {
            assert_eq!(DescBody::parse(text).unwrap_err().code, code, "{text}");
        }
    }

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
