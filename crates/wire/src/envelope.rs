//! The members of a message, each as it was written. Does not check for required members.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The outermost object. If a member occurs twice, the last one counts.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'a> {
    pub(crate) jsonrpc: Option<&'a RawValue>,
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<Method<'a>>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<&'a RawValue>,
    /// The first member of a request that occurs twice.
    pub(crate) first_duplicate: Option<&'static str>,
}

/// The method of a request or notification.
#[derive(Debug)]
pub(crate) enum Method<'a> {
    Name(Cow<'a, str>),
    /// A value that is not a string.
    Other,
}

impl<'a> Envelope<'a> {
    /// Reads `text`. It must be one JSON object.
    pub(crate) fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns the method, if it is a string.
    pub(crate) fn method_name(&mut self) -> Option<String> {
        match self.method.take()? {
            Method::Name(name) => Some(name.into_owned()),
            Method::Other => None,
        }
    }

    /// Returns the params; `null` counts as absent.
    pub(crate) fn non_null_params(&self) -> Option<&'a RawValue> {
        self.params.filter(|params| params.get() != "null")
    }

    fn note<T>(&mut self, name: &'static str, before: Option<T>) {
        if before.is_some() && self.first_duplicate.is_none() {
            self.first_duplicate = Some(name);
        }
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Method<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        let plain = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|rest| !rest.contains('\\'));
        Ok(match plain {
            Some(plain) => Self::Name(Cow::Borrowed(plain)),
            None => match serde_json::from_str::<String>(text) {
                Ok(name) => Self::Name(Cow::Owned(name)),
                Err(_) => Self::Other,
            },
        })
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Envelope<'de>, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(member) = members.next_key()? {
            match member {
                Member::Jsonrpc => {
                    let before = envelope.jsonrpc.replace(members.next_value()?);
                    envelope.note("jsonrpc", before);
                }
                Member::Id => {
                    let before = envelope.id.replace(members.next_value()?);
                    envelope.note("id", before);
                }
                Member::Method => {
                    let before = envelope.method.replace(members.next_value()?);
                    envelope.note("method", before.map(|_| ()));
                }
                Member::Params => {
                    let before = envelope.params.replace(members.next_value()?);
                    envelope.note("params", before);
                }
                Member::Result => envelope.result = Some(members.next_value()?),
                Member::Error => envelope.error = Some(members.next_value()?),
                Member::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(envelope)
    }
}
