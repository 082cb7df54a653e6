//! The error that core returns instead of a reply. A surface maps its code to its transport.

use std::fmt;
use std::time::Duration;

use broker_model::CallCode;
use broker_model::json::serialize_exactly;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A failure of the broker, of the caller or of a server, ready to be shown.
#[derive(Clone, Debug)]
pub struct CoreError {
    /// The stable code.
    pub code: CallCode,
    /// The problem: a lowercase fragment.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The path that it refers to.
    pub path: Option<String>,
    /// The nearest names, best first.
    pub did_you_mean: Vec<String>,
    /// Details for programs.
    pub details: Option<Value>,
    /// For arguments that do not match a long schema: its failing parts, shorter than in `details`. They are not
    /// part of the object; a surface may show them in place of the schema.
    pub schema_parts: Option<Value>,
    /// The server's own error, unchanged: `details.rpc` on the wire, instead of other details.
    pub rpc: Option<Box<RawValue>>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether the server may have executed the call; `None` if no call is involved.
    pub maybe_executed: Option<bool>,
    /// When to retry.
    pub retry_after: Option<Duration>,
    /// Whether the call has waited for its source to start, so that a surface does not wait again.
    pub has_waited: bool,
}

impl CoreError {
    /// Makes an error with its code, its message, and the code's hint.
    pub fn new(code: CallCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: Some(code.hint().to_owned()),
            path: None,
            did_you_mean: Vec::new(),
            details: None,
            schema_parts: None,
            rpc: None,
            retryable: false,
            maybe_executed: None,
            retry_after: None,
            has_waited: false,
        }
    }

    /// Marks the error of a call that has waited for its source to start.
    #[must_use]
    pub const fn waited(mut self) -> Self {
        self.has_waited = true;
        self
    }

    /// Replaces the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the path.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the details.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Marks the error as retryable after `wait`.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retryable = true;
        self.retry_after = Some(wait);
        self
    }

    /// Sets whether the server may have executed the call.
    #[must_use]
    pub fn maybe_executed(mut self, maybe: bool) -> Self {
        self.maybe_executed = Some(maybe);
        self
    }

    fn details_out(&self) -> Option<Details<'_>> {
        let rpc = self.rpc.as_deref().map(Content::Rpc);
        let content = rpc.or(self.details.as_ref().map(Content::Other))?;
        Some(Details {
            content,
            help: None,
        })
    }

    /// Returns its JSON object, members in the order of the documentation; `request_id` only if given.
    pub fn members<'a>(&'a self, request_id: Option<&'a str>) -> ErrorMembers<'a> {
        ErrorMembers {
            code: self.code.as_str(),
            message: &self.message,
            hint: self.hint.as_deref(),
            path: self.path.as_deref(),
            did_you_mean: &self.did_you_mean,
            details: self.details_out(),
            retryable: self.retryable,
            maybe_executed: self.maybe_executed,
            request_id,
        }
    }
}

/// The value of `details`.
#[derive(Debug)]
struct Details<'a> {
    content: Content<'a>,
    /// The page of errors, with the code whose place there is named.
    help: Option<(&'static str, CallCode)>,
}

#[derive(Debug)]
enum Content<'a> {
    Empty,
    Rpc(&'a RawValue),
    Other(&'a Value),
}

impl Serialize for Details<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = match &self.content {
            Content::Other(Value::Object(members)) => Some(members),
            // Details are objects; another value has no place for the help.
            Content::Other(other) => return serialize_exactly(other, serializer),
            Content::Empty | Content::Rpc(_) => None,
        };
        let mut out = serializer.serialize_map(None)?;
        for (name, value) in members.into_iter().flatten() {
            out.serialize_entry(name, &Exact(value))?;
        }
        if let Content::Rpc(rpc) = &self.content {
            out.serialize_entry("rpc", rpc)?;
        }
        if let Some((page, code)) = self.help {
            out.serialize_entry("help", &Help(page, code))?;
        }
        out.end()
    }
}

/// A value whose numbers are written as they were read.
#[derive(Serialize)]
struct Exact<'a>(#[serde(serialize_with = "serialize_exactly")] &'a Value);

/// The place of a code on the page of errors.
struct Help(&'static str, CallCode);

impl Serialize for Help {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}#{}", self.0, self.1))
    }
}

/// The value of `"error"` on the wire.
#[derive(Debug, Serialize)]
pub struct ErrorMembers<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    did_you_mean: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    maybe_executed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl ErrorMembers<'_> {
    /// Adds `details.help`, the place of the code on a page of errors. Surfaces for models leave it out, since each
    /// reader would pay for it.
    #[must_use]
    pub fn help(mut self, page: &'static str, code: CallCode) -> Self {
        let details = self.details.get_or_insert(Details {
            content: Content::Empty,
            help: None,
        });
        details.help = Some((page, code));
        self
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for CoreError {}
