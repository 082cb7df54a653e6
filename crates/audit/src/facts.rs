//! The facts that callers of this package give for lines: about calls, their ends, and other events. None of them has a
//! place for the value of an argument or a result, except for scalars that the config names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use broker_model::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lane::Lane;

/// The maximum characters of a value in `shown`.
pub(crate) const MAX_SHOWN_CHARS: usize = 200;
/// The maximum number of values in `shown`.
pub(crate) const MAX_SHOWN: usize = 16;
/// The maximum characters of a name in a line: a subject, a path, a request id.
pub(crate) const MAX_NAME_CHARS: usize = 512;
/// The maximum number of names in a list of a line: groups, keys, actors.
pub(crate) const MAX_NAMES: usize = 64;

/// The digests of the catalog and of the access rules that a line was made under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The digest of the catalog.
    pub catalog: String,
    /// The digest of the access rules. Empty if there are none.
    pub policy: String,
    /// The root digest of the lock that the catalog was made of. Empty if it is not known.
    pub lock: String,
}

/// A caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    /// The subject, such as `https://idp.example|u42`.
    pub subject: String,
    /// The kind of the credential: `anonymous`, `local`, `secret`, `key`, `jwt`.
    pub kind: Cow<'static, str>,
    /// The groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// The name of the API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The actors that act for the subject (RFC 8693), from the nearest to the farthest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub act: Vec<String>,
    /// The lane of its lines in the queue.
    #[serde(skip)]
    pub lane: Lane,
}

/// The item that a call means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The path, as the caller named it.
    pub path: Cow<'static, str>,
    /// The path of its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'static, str>>,
    /// The name at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Cow<'static, str>>,
    /// The kind of the item: `tool`, `resource`, `prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'static, str>>,
    /// The locked digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Cow<'static, str>>,
}

/// The arguments of a call, without their values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgsFacts {
    /// The size as JSON.
    pub bytes: u64,
    /// The keyed hash of the JSON text, from [`crate::AuditLog::hmac`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hmac: Option<String>,
    /// The scalars that the config shows, by JSON Pointer. The caller has redacted them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shown: BTreeMap<String, Value>,
}

/// The result of a call, without its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultFacts {
    /// The size.
    pub bytes: u64,
    /// Whether the tool reported an error.
    pub is_error: bool,
}

/// The facts that are known before a call is sent.
#[derive(Clone, Debug, Default)]
pub struct CallFacts {
    /// The caller.
    pub actor: Arc<Actor>,
    /// The surface: `http`, `stdio`, `websocket`, `embedded`.
    pub via: Cow<'static, str>,
    /// The address of the caller, without the port.
    pub peer: Option<IpAddr>,
    /// The id of the request, as in the ordinary log.
    pub request_id: RequestId,
    /// The id of the trace.
    pub trace_id: Option<String>,
    /// The item.
    pub target: Target,
    /// The number of the access rule that decided; `None` if no rule did.
    pub rule: Option<u32>,
    /// The arguments.
    pub args: ArgsFacts,
    /// The catalog and the access rules of the call.
    pub versions: Arc<Versions>,
    /// The id of the job whose call it is.
    pub job: Option<Box<str>>,
}

impl CallFacts {
    /// Cuts texts and lists to their bounds, and leaves out what `shown` may not have: a line has a bound. In place, since
    /// a move of the facts is a copy.
    pub(crate) fn bound(&mut self) {
        self.target.bound();
        if let Some(trace_id) = &mut self.trace_id {
            cut(trace_id, MAX_NAME_CHARS);
        }
        if !self.actor.is_bounded() {
            Arc::make_mut(&mut self.actor).bound();
        }
        let shown = &mut self.args.shown;
        shown.retain(|pointer, value| {
            let is_scalar = !(value.is_object() || value.is_array());
            is_scalar && pointer.len() <= MAX_SHOWN_CHARS
        });
        while shown.len() > MAX_SHOWN {
            shown.pop_last();
        }
        for value in shown.values_mut() {
            if let Value::String(text) = value {
                cut(text, MAX_SHOWN_CHARS);
            }
        }
    }
}

impl Actor {
    fn is_bounded(&self) -> bool {
        let lists = self.groups.iter().chain(&self.act);
        let mut names = lists.chain(&self.key).chain([&self.subject]);
        self.groups.len() <= MAX_NAMES
            && self.act.len() <= MAX_NAMES
            && names.all(|name| name.len() <= MAX_NAME_CHARS)
    }

    fn bound(&mut self) {
        self.groups.truncate(MAX_NAMES);
        self.act.truncate(MAX_NAMES);
        let lists = self.groups.iter_mut().chain(&mut self.act);
        for name in lists.chain(&mut self.key).chain([&mut self.subject]) {
            cut(name, MAX_NAME_CHARS);
        }
    }
}

impl Target {
    fn bound(&mut self) {
        let options = [&mut self.source, &mut self.tool, &mut self.digest];
        for name in options.into_iter().flatten().chain([&mut self.path]) {
            if name.len() > MAX_NAME_CHARS {
                cut(name.to_mut(), MAX_NAME_CHARS);
            }
        }
    }
}

impl Event {
    /// Cuts texts and lists to their bounds.
    #[must_use]
    pub(crate) fn bounded(mut self) -> Self {
        match &mut self {
            Self::Withdrawn { target, .. }
            | Self::Restored { target }
            | Self::SourceDown { target, .. }
            | Self::SourceUp { target } => target.bound(),
            Self::Drift(drift) => {
                drift.target.bound();
                if let Some(found) = &mut drift.found {
                    cut(found, MAX_NAME_CHARS);
                }
            }
            Self::KeysChanged { added, removed } => {
                for name in added.iter_mut().chain(removed) {
                    cut(name, MAX_NAME_CHARS);
                }
            }
            Self::JobClaimed(job) | Self::JobEnded { job, .. } => {
                job.target.bound();
                if !job.actor.is_bounded() {
                    Arc::make_mut(&mut job.actor).bound();
                }
            }
            Self::Reload { .. } => {}
        }
        self
    }
}

/// Cuts a text to a number of characters.
pub(crate) fn cut(text: &mut String, max: usize) {
    if text.len() > max
        && let Some((at, _)) = text.char_indices().nth(max)
    {
        text.truncate(at);
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// A result.
    Ok,
    /// A result in which the tool reports an error.
    ToolError,
    /// It goes on as a job, and its caller has the id of the job.
    Accepted,
    /// An error of the broker or of the server.
    Failed,
    /// The access rules refused it.
    Denied,
    /// It was refused for another reason, and not sent.
    Refused,
    /// The caller left or cancelled it.
    Cancelled,
    /// The broker dropped it without an end.
    Abandoned,
}

impl CallOutcome {
    /// Returns the word in a line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Accepted => "accepted",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The end of a call.
#[derive(Clone, Debug)]
pub struct CallEndFacts {
    /// How it ended.
    pub outcome: CallOutcome,
    /// The code of an error.
    pub code: Option<&'static str>,
    /// The result.
    pub result: Option<ResultFacts>,
    /// The time from its begin.
    pub elapsed: Duration,
    /// Whether a byte of it was sent to the server.
    pub sent: bool,
    /// Whether the server may have executed it although no result came.
    pub maybe_executed: bool,
    /// The id of the job that the call became.
    pub job: Option<Box<str>>,
}

/// A step of a job.
#[derive(Clone, Debug, Default)]
pub struct JobFacts {
    /// The id.
    pub id: Box<str>,
    /// Its owner.
    pub actor: Arc<Actor>,
    /// The tool, with the digest under which it was reviewed when the job was made.
    pub target: Target,
}

/// A listing, a description or a search.
#[derive(Clone, Debug, Default)]
pub struct ReadFacts {
    /// The caller.
    pub actor: Arc<Actor>,
    /// The surface, as in [`CallFacts::via`].
    pub via: Cow<'static, str>,
    /// The address of the caller, without the port.
    pub peer: Option<IpAddr>,
    /// The meta-tool, or the method of MCP.
    pub method: &'static str,
    /// The paths that the caller named. The words of a search are not kept.
    pub paths: Vec<String>,
    /// The code of an error.
    pub code: Option<&'static str>,
    /// The time that it took.
    pub elapsed: Duration,
    /// The catalog and the access rules.
    pub versions: Arc<Versions>,
}

impl ReadFacts {
    /// Cuts texts and lists to their bounds.
    #[must_use]
    pub(crate) fn bounded(mut self) -> Self {
        self.paths.truncate(MAX_NAMES);
        for path in &mut self.paths {
            cut(path, MAX_NAME_CHARS);
        }
        if !self.actor.is_bounded() {
            Arc::make_mut(&mut self.actor).bound();
        }
        self
    }
}

/// A difference between the lock and a source.
#[derive(Clone, Debug, Default)]
pub struct DriftFacts {
    /// The item, with its locked digest. A finding about the source itself has the path of the source.
    pub target: Target,
    /// The class of the finding.
    pub class: Cow<'static, str>,
    /// The rule that found it.
    pub finding: Cow<'static, str>,
    /// The digest that the server sends now.
    pub found: Option<String>,
}

/// The outcome of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The new config or lock is in force.
    Done,
    /// The old one is still in force.
    Refused,
}

/// An event that is not a call. Its line is never dropped while the disk has room.
#[derive(Clone, Debug)]
pub enum Event {
    /// An item is withdrawn.
    Withdrawn {
        /// The item.
        target: Target,
        /// The reason.
        code: Cow<'static, str>,
    },
    /// A withdrawn item is back.
    Restored {
        /// The item.
        target: Target,
    },
    /// A source was lost while it was in use.
    SourceDown {
        /// The source.
        target: Target,
        /// The cause.
        code: Cow<'static, str>,
    },
    /// A source is up again.
    SourceUp {
        /// The source.
        target: Target,
    },
    /// A source differs from its lock.
    Drift(DriftFacts),
    /// The config or the lock was read again. The versions of later lines are these.
    Reload {
        /// The outcome.
        outcome: ReloadOutcome,
        /// The code of a refusal.
        code: Option<Cow<'static, str>>,
        /// The versions that are in force now.
        versions: Arc<Versions>,
    },
    /// A job begins to run.
    JobClaimed(JobFacts),
    /// A job has ended.
    JobEnded {
        /// The job.
        job: JobFacts,
        /// The state in which it ended.
        outcome: &'static str,
        /// The code of its error.
        code: Option<Cow<'static, str>>,
        /// Whether the server may have executed its call although the job has no result.
        maybe_executed: bool,
    },
    /// API keys or issuers were added or removed.
    KeysChanged {
        /// The names that are new.
        added: Vec<String>,
        /// The names that are gone.
        removed: Vec<String>,
    },
}
