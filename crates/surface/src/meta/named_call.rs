//! The body of `call_tool`: `{"name","arguments"?}`. The name is a flat name or a path; `path` and `args`, the names
//! of `meta_call`, are taken as well.

use broker_model::CallCode;
use broker_wire::{JsonMembers, valid_string};
use bytes::Bytes;

use super::MetaCaller;
use super::arguments::ArgsJson;
use super::call_body::LongArgs;
use super::members::{field_invalid, json_invalid, unknown_field, utf8};
use broker_core::{Account, Broker, CoreError, Name, Outcome, SMALL_BYTES};

const MEMBERS: [&str; 4] = ["name", "arguments", "path", "args"];

/// A checked body, whose arguments are not parsed yet.
#[derive(Debug)]
struct NamedCall {
    name: String,
    /// The arguments, if there are any.
    arguments: Option<LongArgs>,
}

impl NamedCall {
    fn parse(text: &str, account: &Account) -> Result<Self, Box<CoreError>> {
        let members =
            JsonMembers::parse(text).map_err(|error| json_invalid(text, 0, text, &error.into()))?;
        if let Some(name) = members.first_duplicate() {
            return Err(field_invalid(format!("the body has `{name}` twice")));
        }
        if let Some((name, _)) = members.iter().find(|(name, _)| !MEMBERS.contains(name)) {
            return Err(unknown_field(name, &MEMBERS[..2]));
        }
        // A strict client sends every member, so one of the two names is null.
        let either = |first: &'static str, second: &'static str| {
            let given = |name| members.given(name).map(|json| (name, json));
            match (given(first), given(second)) {
                (Some(_), Some(_)) => Err(field_invalid(format!(
                    "give `{first}` or `{second}`, not both"
                ))),
                (first, second) => Ok(first.or(second)),
            }
        };
        let (_, name) = either("name", "path")?
            .ok_or_else(|| field_invalid("`name` is missing: the name or the path of a tool"))?;
        let name = valid_string(name).ok_or_else(|| field_invalid("`name` must be a string"))?;
        let arguments = match either("arguments", "args")? {
            None => None,
            Some((name, json)) => ArgsJson::parse(name, json)?
                .map(|json| LongArgs::read(name, json, text, account))
                .transpose()?,
        };
        Ok(Self {
            name: name.into_owned(),
            arguments,
        })
    }
}

impl<B: Broker> MetaCaller<'_, B> {
    /// `call_tool`. Returns the path of the tool and the outcome.
    pub async fn call_named(
        &self,
        body: Bytes,
        called: impl Fn(&str),
    ) -> Result<Outcome, Box<CoreError>> {
        let read = if body.len() > SMALL_BYTES {
            let (text, account) = (body.clone(), self.account.clone());
            let read = move || NamedCall::parse(utf8(&text)?, &account);
            self.broker
                .services()
                .read_long(self.account, read)
                .await??
        } else {
            NamedCall::parse(utf8(&body)?, self.account)?
        };
        let arguments = match read.arguments {
            Some(LongArgs::Within(at)) => body.slice(at),
            Some(LongArgs::Unquoted(arguments)) => arguments,
            None => Bytes::from_static(b"{}"),
        };
        let path = match self
            .broker
            .look_up(self.identity, Name::Flat(&read.name, None))
        {
            Ok(found) => found.item.path.into(),
            Err(_) if read.name.starts_with('/') => self.path(&read.name),
            Err(_) => return Err(self.unknown(&read.name).await),
        };
        called(&path);
        self.call_tool(path, arguments).await
    }

    /// The refusal of a name, the same for a tool that does not exist and one that the caller may not see.
    async fn unknown(&self, name: &str) -> Box<CoreError> {
        let shown = broker_model::text::shown_line(name, 160);
        let message = format!("no tool has the name `{shown}`");
        let mut error = CoreError::new(CallCode::PathNotFound, message);
        error.did_you_mean = self.similar_paths(name).await;
        let hint = match error.did_you_mean.first() {
            Some(path) => {
                format!("Send `\"name\": \"{path}\"` if that is the tool: a name may be a path.")
            }
            None => "Search with `retrieve_tools`, and copy `name` or `path` of a hit.".to_owned(),
        };
        Box::new(error.hint(hint))
    }

    /// Returns the paths that may have been meant by a name.
    async fn similar_paths(&self, name: &str) -> Vec<String> {
        let path = format!("/{}", name.trim_start_matches('/'));
        let paths = [path.as_str()];
        let described = self.broker.describe(self.identity, &paths, self.account);
        match described.await.map(|mut described| described.pop()) {
            Ok(Some(Ok(found))) => vec![found.path().to_owned()],
            Ok(Some(Err(error))) | Err(error) => error.did_you_mean,
            Ok(None) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, Option<String>), CallCode> {
        let account = broker_core::MemoryBudget::new(1 << 20).account();
        let arguments = |arguments| match arguments {
            LongArgs::Within(at) => text[at].to_owned(),
            LongArgs::Unquoted(text) => String::from_utf8(text.to_vec()).unwrap(),
        };
        match NamedCall::parse(text, &account) {
            Ok(call) => Ok((call.name, call.arguments.map(arguments))),
            Err(error) => Err(error.code),
        }
    }

    #[test]
    fn body_takes_both_names_of_each_member() {
        let name = |text: &str| text.to_owned();
        assert_eq!(parsed(r#"{"name":"a-b"}"#), Ok((name("a-b"), None)));
        assert_eq!(
            parsed(r#"{"path":"/a/b","args":{"x":1}}"#),
            Ok((name("/a/b"), Some(name(r#"{"x":1}"#))))
        );
        assert_eq!(
            parsed(r#"{"arguments":{},"name":"a"}"#),
            Ok((name("a"), Some(name("{}"))))
        );
        assert_eq!(
            parsed(r#"{"name":"a","path":null,"arguments":null,"args":" {\"x\":1}"}"#),
            Ok((name("a"), Some(name(" {\"x\":1}"))))
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
