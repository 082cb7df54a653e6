//! The body of `meta_call`: read once, strictly; the arguments stay as they were sent.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use broker_model::json;
use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::{ArgsJson, quoted_invalid, unquote, unquote_long};
use super::asked_job::AskedJob;
use super::caller_meta;
use super::members::{
    argument_outside, json_invalid, meta_invalid, path_missing, path_type, unknown_field,
};
use broker_core::{Account, CoreError};

const ARGS: &str = "args";

/// A checked body.
#[derive(Debug)]
pub(super) struct CallBody<'a> {
    pub(super) path: Cow<'a, str>,
    /// The arguments, if there are any.
    pub(super) args: Option<ShortArgs<'a>>,
    /// The `_meta` for the server, if the body has `meta`; it replaces the request's `_meta`.
    pub(super) meta: Option<Option<String>>,
    /// How long the caller waits, if the body says so.
    pub(super) job: AskedJob,
}

/// Arguments that were parsed strictly: the validated text is the forwarded text.
#[derive(Debug)]
pub(super) struct ShortArgs<'a> {
    /// One JSON object: a part of the body, or the content of a string in it.
    pub(super) text: Cow<'a, str>,
    pub(super) value: Value,
}

/// A body whose arguments are not parsed yet, since that takes long.
#[derive(Debug)]
pub(super) struct LongCallBody {
    pub(super) path: String,
    /// The arguments, if there are any.
    pub(super) args: Option<LongArgs>,
    /// The `_meta` for the server, if the body has `meta`; it replaces the request's `_meta`.
    pub(super) meta: Option<Option<String>>,
    /// How long the caller waits, if the body says so.
    pub(super) job: AskedJob,
}

/// Long arguments that are not parsed yet.
#[derive(Debug)]
pub(super) enum LongArgs {
    /// Their range in the body.
    Within(Range<usize>),
    /// The text of a string in the body.
    Unquoted(Bytes),
}

impl LongArgs {
    /// Reads the arguments of a member of `body`.
    pub(super) fn read(
        name: &str,
        json: ArgsJson<'_>,
        body: &str,
        account: &Account,
    ) -> Result<Self, Box<CoreError>> {
        match json {
            ArgsJson::Object(object) => {
                let from = object.as_ptr() as usize - body.as_ptr() as usize;
                Ok(Self::Within(from..from + object.len()))
            }
            ArgsJson::Quoted(quoted) => unquote_long(name, quoted, account).map(Self::Unquoted),
        }
    }
}

impl LongCallBody {
    /// Reads `text`; the arguments are only checked to begin as an object. The copy of a string is charged to `account`.
    pub(super) fn parse(text: &str, account: &Account) -> Result<Self, Box<CoreError>> {
        let envelope = Envelope::parse(text)?;
        let path = envelope.path()?.into_owned();
        let json = envelope.args()?;
        let args = json.map(|json| LongArgs::read(ARGS, json, text, account));
        Ok(Self {
            path,
            args: args.transpose()?,
            meta: envelope.meta()?,
            job: envelope.job()?,
        })
    }
}

impl<'a> CallBody<'a> {
    /// Reads `text`. All of it must be JSON before any member is checked.
    pub(super) fn parse(text: &'a str) -> Result<Self, Box<CoreError>> {
        let envelope = Envelope::parse(text)?;
        let json = envelope.args();
        let object = match json {
            Ok(Some(ArgsJson::Object(raw))) => {
                let offset = raw.as_ptr() as usize - text.as_ptr() as usize;
                Some(json::parse(raw).map_err(|error| json_invalid(text, offset, raw, &error))?)
            }
            _ => None,
        };
        let path = envelope.path()?;
        let args = match (json?, object) {
            (Some(ArgsJson::Object(raw)), Some(value)) => {
                let text = Cow::Borrowed(raw);
                Some(ShortArgs { text, value })
            }
            (Some(ArgsJson::Quoted(quoted)), _) => {
                let text = unquote(ARGS, quoted)?;
                let value = json::parse(&text).map_err(|error| quoted_invalid(ARGS, &error))?;
                Some(ShortArgs { text, value })
            }
            (None | Some(ArgsJson::Object(_)), _) => None,
        };
        Ok(Self {
            path,
            args,
            meta: envelope.meta()?,
            job: envelope.job()?,
        })
    }
}

/// The members, unchecked.
#[derive(Default)]
struct Envelope<'a> {
    path: Option<StringOrOther<'a>>,
    args: Option<&'a RawValue>,
    meta: Option<&'a RawValue>,
    mode: Option<&'a RawValue>,
    ttl: Option<&'a RawValue>,
    /// The first unknown name.
    unknown: Option<String>,
}

impl<'a> Envelope<'a> {
    fn parse(text: &'a str) -> Result<Self, Box<CoreError>> {
        serde_json::from_str(text).map_err(|error| json_invalid(text, 0, text, &error.into()))
    }

    fn args(&self) -> Result<Option<ArgsJson<'a>>, Box<CoreError>> {
        let args = self.args.map(|args| ArgsJson::parse(ARGS, args.get()));
        Ok(args.transpose()?.flatten())
    }

    /// The `_meta` for the server.
    fn meta(&self) -> Result<Option<Option<String>>, Box<CoreError>> {
        let meta = self.meta.map(RawValue::get);
        let meta = meta.filter(|meta| !is_absent(meta));
        let meta = meta.map(caller_meta::text_to_forward);
        meta.transpose().map_err(|problem| meta_invalid(&problem))
    }

    /// What the body asks of jobs.
    fn job(&self) -> Result<AskedJob, Box<CoreError>> {
        let present = |member: Option<&'a RawValue>| {
            let text = member.map(RawValue::get);
            text.filter(|text| !is_absent(text))
        };
        AskedJob::read(present(self.mode), present(self.ttl))
    }

    /// Returns the error for an unknown member. Next to a path without `args` it is most likely an argument of the
    /// tool.
    fn unknown(&self, name: &str) -> Box<CoreError> {
        let is_absent = |member: &&str| match *member {
            "path" => self.path.is_none(),
            "args" => self.args.is_none(),
            _ => self.meta.is_none(),
        };
        let absent: Vec<&str> = ["path", "args", "meta"]
            .into_iter()
            .filter(is_absent)
            .collect();
        let error = unknown_field(name, &absent);
        match &self.path {
            Some(StringOrOther::Text(path))
                if self.args.is_none() && error.did_you_mean.is_empty() =>
            {
                argument_outside(name, path)
            }
            _ if error.did_you_mean.is_empty() => unknown_field(name, &["path", "args", "meta"]),
            _ => error,
        }
    }

    /// The path, unless there is an unknown member.
    fn path(&self) -> Result<Cow<'a, str>, Box<CoreError>> {
        if let Some(name) = &self.unknown {
            return Err(self.unknown(name));
        }
        match &self.path {
            None => Err(path_missing()),
            Some(StringOrOther::Other) => Err(path_type()),
            Some(StringOrOther::Text(path)) => Ok(path.clone()),
        }
    }
}

/// Whether the JSON of an optional member means absence.
fn is_absent(json: &str) -> bool {
    let is_empty = |open, close| {
        let inner = json
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|inner| inner.trim().is_empty())
    };
    json == "null" || json == "\"\"" || is_empty('[', ']')
}

/// A string, or another value. Another value is refused later with a separate code.
enum StringOrOther<'a> {
    Text(Cow<'a, str>),
    Other,
}

enum Name {
    Path,
    Args,
    Meta,
    Mode,
    Ttl,
    Unknown(String),
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(name) = members.next_key()? {
            match name {
                Name::Path if envelope.path.is_some() => {
                    return Err(A::Error::custom("duplicate key `path`"));
                }
                Name::Args if envelope.args.is_some() => {
                    return Err(A::Error::custom("duplicate key `args`"));
                }
                Name::Meta if envelope.meta.is_some() => {
                    return Err(A::Error::custom("duplicate key `meta`"));
                }
                Name::Mode if envelope.mode.is_some() => {
                    return Err(A::Error::custom("duplicate key `mode`"));
                }
                Name::Ttl if envelope.ttl.is_some() => {
                    return Err(A::Error::custom("duplicate key `ttl_s`"));
                }
                Name::Mode => envelope.mode = Some(members.next_value()?),
                Name::Ttl => envelope.ttl = Some(members.next_value()?),
                Name::Meta => envelope.meta = Some(members.next_value()?),
                Name::Path => envelope.path = Some(members.next_value()?),
                Name::Args => envelope.args = Some(members.next_value()?),
                Name::Unknown(name) => {
                    members.next_value::<IgnoredAny>()?;
                    envelope.unknown.get_or_insert(name);
                }
            }
        }
        Ok(envelope)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "path" => Name::Path,
                    "args" => Name::Args,
                    "meta" => Name::Meta,
                    "mode" => Name::Mode,
                    "ttl_s" => Name::Ttl,
                    other => Name::Unknown(other.to_owned()),
                })
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de> Deserialize<'de> for StringOrOther<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StringOrOtherVisitor)
    }
}

struct StringOrOtherVisitor;

impl<'de> Visitor<'de> for StringOrOtherVisitor {
    type Value = StringOrOther<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(StringOrOther::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(StringOrOther::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(StringOrOther::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(StringOrOther::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(StringOrOther::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(StringOrOther::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(StringOrOther::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(StringOrOther::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(StringOrOther::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::CallCode;

    fn code(text: &str) -> CallCode {
        CallBody::parse(text).unwrap_err().code
    }

    fn account() -> Account {
        broker_core::MemoryBudget::new(1 << 20).account()
    }

    #[test]
    fn arguments_may_be_a_string_with_the_json_of_an_object() {
        let text = r#"{"path":"/a","args":" {\"n\":1.0}"}"#;
        let body = CallBody::parse(text).unwrap();
        let args = body.args.unwrap();
        assert_eq!(args.text, " {\"n\":1.0}");
        assert_eq!(args.value, serde_json::json!({"n": 1.0}));
        let long = LongCallBody::parse(text, &account()).unwrap();
        assert!(matches!(long.args, Some(LongArgs::Unquoted(args)) if args == " {\"n\":1.0}"));
        let none = r#"{"path":"/a","args":null}"#;
        assert!(CallBody::parse(none).unwrap().args.is_none());
        assert!(
            LongCallBody::parse(none, &account())
                .unwrap()
                .args
                .is_none()
        );
        for broken in [r#""{\"a\":1,\"a\":2}""#, r#""{} {}""#, r#""{""#] {
            let text = format!(r#"{{"path":"/a","args":{broken}}}"#);
            let error = CallBody::parse(&text).unwrap_err();
            assert_eq!(error.code, CallCode::JsonInvalid, "{text}");
            assert!(
                error.message.contains("not strict JSON"),
                "{}",
                error.message
            );
        }
    }

    #[test]
    fn call_body_keeps_args_as_sent() {
        let text = " {\"args\" : {\"n\":1.0, \"s\":\"\\u00e9\" }, \"path\":\"/a\\u002fb\"} ";
        let body = CallBody::parse(text).unwrap();
        assert_eq!(body.path, "/a/b");
        let args = body.args.unwrap();
        assert!(matches!(
            args.text,
            Cow::Borrowed("{\"n\":1.0, \"s\":\"\\u00e9\" }")
        ));
        assert_eq!(args.value, serde_json::json!({"n": 1.0, "s": "é"}));
        let body = CallBody::parse(r#"{"path":"/a"}"#).unwrap();
        assert!(matches!(body.path, Cow::Borrowed("/a")));
        assert!(body.args.is_none());
    }

    #[test]
    fn call_body_that_is_not_strict_json_is_refused() {
        let deep = format!(
            "{{\"path\":\"/a\",\"args\":{{\"x\":{}1{}}}}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        for text in [
            "",
            "[]",
            "null",
            "nope",
            "{",
            "{}{}",
            "{\"path\":\"/a\",}",
            "{\"path\":NaN}",
            "\u{feff}{}",
            "{\"path\":\"/a\",\"path\":\"/b\"}",
            "{\"args\":{},\"args\":{}}",
            "{\"path\":\"\u{1}\"}",
            "{\"path\":\"/a\",\"args\":{\"x\":1,\"x\":2}}",
            "{\"path\":\"/a\",\"args\":{\"x\":NaN}}",
            "{\"path\":\"/a\",\"args\":{\"x\":-1E-10001}}",
            "{\"path\":\"/a\",\"args\":{\"x\":1e10001}}",
            &deep,
        ] {
            assert_eq!(code(text), CallCode::JsonInvalid, "{text}");
        }
    }

    #[test]
    fn call_body_with_meta_is_read_in_both_sizes() {
        let text = r#"{"meta":{"traceparent":"x","a.mcp/b":1},"path":"/a","args":{}}"#;
        let expected = Some(Some(r#"{"traceparent":"x"}"#.to_owned()));
        assert_eq!(CallBody::parse(text).unwrap().meta, expected);
        assert_eq!(
            LongCallBody::parse(text, &account()).unwrap().meta,
            expected
        );
        let without = CallBody::parse(r#"{"path":"/a"}"#).unwrap();
        assert_eq!(without.meta, None);
        let empty = CallBody::parse(r#"{"path":"/a","meta":{}}"#).unwrap();
        assert_eq!(empty.meta, Some(None));
        for meta in ["null", "[]", "[ ]", "\"\""] {
            let text = format!(r#"{{"path":"/a","meta":{meta}}}"#);
            assert_eq!(CallBody::parse(&text).unwrap().meta, None, "{text}");
        }
        for meta in ["1", "[1]", "\" \"", r#"{"a":1,"a":1}"#] {
            let text = format!(r#"{{"path":"/a","meta":{meta}}}"#);
            assert_eq!(code(&text), CallCode::FieldInvalid, "{text}");
            let long = LongCallBody::parse(&text, &account()).unwrap_err();
            assert_eq!(long.code, CallCode::FieldInvalid, "{text}");
        }
        assert_eq!(
            code(r#"{"path":"/a","meta":{},"meta":{}}"#),
            CallCode::JsonInvalid
        );
    }

    #[test]
    fn call_body_with_wrong_members_is_refused() {
        for text in [
            "{}",
            "{\"args\":{}}",
            "{\"path\":null}",
            "{\"path\":1}",
            "{\"path\":[[\"/a\"]]}",
            "{\"path\":{\"a\":{}}}",
        ] {
            assert_eq!(code(text), CallCode::PathInvalid, "{text}");
        }
        assert_eq!(
            code("{\"path\":\"/a\",\"argz\":{}}"),
            CallCode::FieldUnknown
        );
        for args in ["[]", "\"\"", "\"[]\"", "1"] {
            let text = format!("{{\"path\":\"/a\",\"args\":{args}}}");
            assert_eq!(code(&text), CallCode::FieldInvalid, "{text}");
        }
    }
}
