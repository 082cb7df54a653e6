//! A line of the log: its members in their order, its text, and its reader.

mod build;
mod ocsf;
mod room;
mod time;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) use build::{
    Stamp, call_begin, call_end, event_line, identify_failed, limited, lock_member, plain, read,
};
pub(crate) use room::{begin_room, end_room};
pub(crate) use time::{day_of, rfc3339};

use crate::facts::{Actor, ArgsFacts, ResultFacts, Target};
use crate::settings::Format;

/// The maximum bytes of a line that is read.
pub(crate) const MAX_LINE_BYTES: usize = 256 << 10;
/// The version of the form of lines.
pub(crate) const VERSION: u8 = 1;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A broker, or a new file, begins.
    Start,
    /// A broker ends.
    Stop,
    /// The head of the chain, signed if there is a key.
    Checkpoint,
    /// Credentials that were refused.
    IdentifyFailed,
    /// A call that may change something is about to be sent.
    CallBegin,
    /// A call has ended.
    CallEnd,
    /// A listing, a description or a search, if the config asks for such lines.
    Read,
    /// Lines of a caller that were not written, counted.
    Limited,
    /// A job begins to run.
    JobClaimed,
    /// A job has ended.
    JobEnded,
    /// An item is withdrawn.
    Withdrawn,
    /// An item is back.
    Restored,
    /// A source was lost while it was in use.
    SourceDown,
    /// A source is up again.
    SourceUp,
    /// A source differs from its lock.
    Drift,
    /// The config or the lock was read again.
    Reload,
    /// API keys or issuers changed.
    KeysChanged,
    /// An older file was removed.
    Deleted,
    /// Lines are missing, and the log knows it.
    Gap,
}

/// A value that a line has also as `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nullable<T>(pub Option<T>);

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

/// Reads a member that is there, also as `null`.
fn present<'de, T, D>(deserializer: D) -> Result<Option<Nullable<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Nullable::deserialize(deserializer).map(Some)
}

/// A file that `deleted` names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletedFile {
    /// The name, without folders.
    pub file: String,
    /// The number of its first line.
    pub first: u64,
    /// The number of its last line.
    pub last: u64,
    /// The hash of its last line.
    pub hash: String,
}

/// The bytes at the end of a file that are not a line: a write that broke off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Torn {
    /// The number of bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub hash: String,
}

/// The job that a line belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent<'a> {
    /// The id of the job.
    #[serde(borrow)]
    pub job: Cow<'a, str>,
}

/// Names that were added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// The new ones.
    pub added: Vec<String>,
    /// The ones that are gone.
    pub removed: Vec<String>,
}

/// A line. Its members are written in this order; members that its kind does not have are left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line<'a> {
    /// The version of the form.
    pub v: u8,
    /// The number of the line in its stream, from 1.
    pub seq: u64,
    /// The SHA-256 of the line before, 64 hexadecimal digits; zeros in the first line of a stream.
    #[serde(borrow)]
    pub prev: Cow<'a, str>,
    /// The time.
    #[serde(borrow)]
    pub at: Cow<'a, str>,
    /// The id of the stream.
    #[serde(borrow)]
    pub stream: Cow<'a, str>,
    /// The kind.
    pub kind: Kind,
    /// The number of the `call_begin` that a `call_end` belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// The meta-tool or the method of MCP of a listing, a description or a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Cow<'a, str>>,
    /// How a call, a listing or a reload ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Cow<'a, str>>,
    /// The code of an error, or the reason of an event.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub code: Option<Nullable<Cow<'a, str>>>,
    /// The caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Cow<'a, Actor>>,
    /// The surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Cow<'a, str>>,
    /// The address of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Cow<'a, str>>,
    /// The id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
    /// The id of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Cow<'a, str>>,
    /// The job that a call became or is part of.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent<'a>>,
    /// The item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Cow<'a, Target>>,
    /// The paths that a listing or a description names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Cow<'a, [String]>>,
    /// The number of the access rule that decided.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub rule: Option<Nullable<u32>>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Cow<'a, ArgsFacts>>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultFacts>,
    /// The milliseconds of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Whether a byte was sent to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<bool>,
    /// Whether the server may have executed the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe_executed: Option<bool>,
    /// The class of a drift finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'a, str>>,
    /// The rule of a drift finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Cow<'a, str>>,
    /// The digest that a server sends now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Cow<'a, str>>,
    /// Names of keys and issuers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// A number of events: failures of a peer, lines of a caller, calls without a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The torn end of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn: Option<Torn>,
    /// The file that was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<DeletedFile>,
    /// The version of the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<Cow<'a, str>>,
    /// The root digest of the lock of the catalog, of `start` and `reload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Cow<'a, str>>,
    /// The digest of the catalog.
    #[serde(borrow)]
    pub catalog: Cow<'a, str>,
    /// The digest of the access rules.
    #[serde(borrow)]
    pub policy: Cow<'a, str>,
    /// The id of the key of a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<Cow<'a, str>>,
    /// The signature of a checkpoint, over the bytes before this member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sig: Option<Cow<'a, str>>,
}

/// The reason why bytes are not a line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Too long.
    #[error("it has more than {MAX_LINE_BYTES} bytes")]
    Length,
    /// Not JSON, or not the members of a line.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// Another version.
    #[error("it has the version {0}; this program reads the version {VERSION}")]
    Version(u8),
}

/// Reads a line of either form, without the line feed. In the second form the members that the first form has are in
/// `unmapped`.
///
/// # Errors
///
/// Every [`LineError`].
pub fn parse(bytes: &[u8]) -> Result<Line<'_>, LineError> {
    if bytes.len() > MAX_LINE_BYTES {
        return Err(LineError::Length);
    }
    let line = match serde_json::from_slice::<Line<'_>>(bytes) {
        Ok(line) => line,
        Err(error) => ocsf::parse(bytes).ok_or(error)?,
    };
    if line.v != VERSION {
        return Err(LineError::Version(line.v));
    }
    Ok(line)
}

/// Appends the text of a line in a form, without a line feed.
pub(crate) fn write(line: &Line<'_>, format: Format, out: &mut Vec<u8>) {
    let written = match format {
        Format::Native => serde_json::to_writer(&mut *out, line),
        Format::Ocsf(version) => ocsf::write(line, version, out),
    };
    // A line has no map with other keys than texts and no number that is not finite.
    debug_assert!(written.is_ok(), "{written:?}");
}
