//! The body of `call_tool`: `{"name","arguments"?}`. The name is a flat name or a path; `path` and `args`, the names
//! of `meta_call`, are taken as well.

use std::ops::Range;

use broker_model::CallCode;
use broker_wire::{JsonMembers, valid_string};
use bytes::Bytes;

use super::MetaCaller;
use super::fields::{args_invalid_type, field_invalid, json_invalid, unknown_field, utf8};
use crate::core::{CoreError, Outcome, SMALL_BYTES};

const MEMBERS: [&str; 4] = ["name", "arguments", "path", "args"];

/// A checked body, whose arguments are not parsed yet.
#[derive(Debug, PartialEq, Eq)]
struct NamedCall {
    name: String,
    /// The range of the arguments in the body, if there are any.
    arguments: Option<Range<usize>>,
}

impl NamedCall {
    fn parse(text: &str) -> Result<Self, Box<CoreError>> {
        let members =
            JsonMembers::parse(text).map_err(|error| json_invalid(text, 0, text, &error.into()))?;
        if let Some(name) = members.first_duplicate() {
            return Err(field_invalid(format!("the body has `{name}` twice")));
        }
        if let Some((name, _)) = members.iter().find(|(name, _)| !MEMBERS.contains(name)) {
            return Err(unknown_field(name, &MEMBERS[..2]));
        }
        let either = |first: &str, second: &str| match (members.get(first), members.get(second)) {
            (Some(_), Some(_)) => Err(field_invalid(format!(
                "give `{first}` or `{second}`, not both"
            ))),
            (first, second) => Ok(first.or(second)),
        };
        let name = either("name", "path")?
            .ok_or_else(|| field_invalid("`name` is missing: the name or the path of a tool"))?;
        let name = valid_string(name).ok_or_else(|| field_invalid("`name` must be a string"))?;
        let arguments = either("arguments", "args")?.filter(|raw| *raw != "null");
        if let Some(other) = arguments.filter(|raw| !raw.starts_with('{')) {
            return Err(args_invalid_type(other));
        }
        let at = |arguments: &str| {
            let from = arguments.as_ptr() as usize - text.as_ptr() as usize;
            from..from + arguments.len()
        };
        Ok(Self {
            name: name.into_owned(),
            arguments: arguments.map(at),
        })
    }
}

impl MetaCaller<'_> {
    /// `call_tool`. Returns the path of the tool and the outcome.
    pub(in crate::surface) async fn call_named(
        &self,
        body: Bytes,
        called: impl Fn(&str),
    ) -> Result<Outcome, Box<CoreError>> {
        let read = if body.len() > SMALL_BYTES {
            let text = body.clone();
            let read = move || utf8(&text).and_then(NamedCall::parse);
            self.core.read_long(read).await??
        } else {
            utf8(&body).and_then(NamedCall::parse)?
        };
        let arguments = match read.arguments {
            Some(at) => body.slice(at),
            None => Bytes::from_static(b"{}"),
        };
        let path = match self.core.find_flat(self.identity, &read.name) {
            Some(tool) => tool.path,
            None if read.name.starts_with('/') => &read.name,
            None => return Err(unknown(&read.name)),
        };
        called(path);
        self.call_tool(path, arguments).await
    }
}

/// The same for a tool that does not exist and one that the caller may not see.
fn unknown(name: &str) -> Box<CoreError> {
    let shown = broker_model::text::shown_line(name, 160);
    let message = format!("no tool has the name `{shown}`");
    let error = CoreError::new(CallCode::PathNotFound, message);
    Box::new(error.hint("Search with `retrieve_tools`, and copy `name` or `path` of a hit."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, Option<&str>), CallCode> {
        match NamedCall::parse(text) {
            Ok(call) => Ok((call.name, call.arguments.map(|at| &text[at]))),
            Err(error) => Err(error.code),
        }
    }

    #[test]
    fn body_takes_both_names_of_each_member() {
        let name = |text: &str| text.to_owned();
        assert_eq!(parsed(r#"{"name":"a-b"}"#), Ok((name("a-b"), None)));
        assert_eq!(
            parsed(r#"{"path":"/a/b","args":{"x":1}}"#),
            Ok((name("/a/b"), Some(r#"{"x":1}"#)))
        );
        assert_eq!(
            parsed(r#"{"arguments":{},"name":"a"}"#),
            Ok((name("a"), Some("{}")))
        );
    }

    #[test]
    fn wrong_bodies_are_refused() {
        for (body, code) in [
            ("[]", CallCode::JsonInvalid),
            ("{}", CallCode::FieldInvalid),
            (r#"{"name":1}"#, CallCode::FieldInvalid),
            (r#"{"name":"a","path":"/a"}"#, CallCode::FieldInvalid),
            (r#"{"name":"a","name":"b"}"#, CallCode::FieldInvalid),
            (
                r#"{"name":"a","arguments":{},"args":{}}"#,
                CallCode::FieldInvalid,
            ),
            (r#"{"name":"a","arguments":[]}"#, CallCode::FieldInvalid),
            (r#"{"name":"a","tool":1}"#, CallCode::FieldUnknown),
        ] {
            assert_eq!(parsed(body), Err(code), "{body}");
        }
    }
}
