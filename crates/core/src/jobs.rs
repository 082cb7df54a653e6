//! Calls that outlive their caller, as surfaces see them: what a call asks for, and the desk of the layer that keeps jobs.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use broker_model::CallCode;
use broker_model::job_state::JobState;
use bytes::Bytes;
use serde_json::Value;

use crate::call::record::CallRecord;
use crate::errors::error::CoreError;
use crate::identity::Identity;

/// How long the caller of a call waits for its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallMode {
    /// Until the end of the call.
    #[default]
    Sync,
    /// Until the job of the call is kept.
    Async,
    /// For some time; a call that takes longer becomes a job.
    Auto,
}

impl CallMode {
    /// Every mode, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Sync, Self::Async, Self::Auto];

    /// Returns its name in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Auto => "auto",
        }
    }

    /// Reads the name of a mode.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// What a call asks of the layer that keeps jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// How long the caller waits.
    pub mode: CallMode,
    /// The time for which the finished job is kept; `None` for the time of the config.
    pub ttl: Option<Duration>,
    /// The idempotency key: a second call of the same caller and path with it gets the same job.
    pub key: Option<Box<str>>,
    /// The job whose run makes this call. Such a call asks for no other job, and surfaces leave this member empty.
    pub run: Option<JobRun>,
}

/// The job that makes a call, for the record of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The id of the job.
    pub id: Box<str>,
    /// The span of the call that made the job, as `traceparent` (W3C Trace Context); `None` if that call was not traced.
    pub made_in: Option<Box<str>>,
}

impl JobRequest {
    /// Returns the request of a call in this mode, without a key.
    pub const fn in_mode(mode: CallMode) -> Self {
        Self {
            mode,
            ttl: None,
            key: None,
            run: None,
        }
    }
}

/// The job of a call whose caller does not wait for the result.
#[derive(Clone, Debug)]
pub struct AcceptedJob {
    /// The job.
    pub job: JobView,
    /// Whether an earlier call with the same idempotency key made it.
    pub is_replayed: bool,
}

/// A job, without its arguments and its result.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Its id.
    pub id: Box<str>,
    /// The path of the item that it calls.
    pub path: Box<str>,
    /// Its state.
    pub state: JobState,
    /// Whether it survives a restart of the broker.
    pub is_durable: bool,
    /// When it was made.
    pub created: SystemTime,
    /// When it began to run.
    pub started: Option<SystemTime>,
    /// When it ended.
    pub ended: Option<SystemTime>,
    /// When its state or its events last changed.
    pub updated: SystemTime,
    /// When it is deleted; it moves while the job has not ended.
    pub expires: SystemTime,
    /// The last progress of its server: `progress`, and `total` and `message` if the server sent them.
    pub progress: Option<Value>,
    /// The number of its last event.
    pub last_event: u64,
    /// Whether the result says that the tool failed; `None` without a result.
    pub is_error: Option<bool>,
    /// The bytes of the result.
    pub result_bytes: Option<u64>,
    /// The error of a job that failed or was lost: the error object of the meta API.
    pub error: Option<Value>,
    /// Whether the server may have executed the call of a job without a result.
    pub maybe_executed: Option<bool>,
}

impl JobView {
    /// Returns the code of its error.
    pub fn error_code(&self) -> Option<CallCode> {
        let code = self.error.as_ref()?.get("code")?.as_str()?;
        let mut known = CallCode::ALL.iter();
        known.find(|known| known.as_str() == code).copied()
    }
}

/// The jobs that a list has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Only jobs in this state.
    pub state: Option<JobState>,
    /// The maximum number of jobs in the page, 1 to 100.
    pub limit: usize,
    /// Where the page begins: the cursor of the page before it.
    pub cursor: Option<String>,
    /// Whether an operator gets only the jobs that belong to it.
    pub is_own_only: bool,
}

/// A page of jobs, the newest first.
#[derive(Clone, Debug)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// One event of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// Its number; the events of a job are numbered from 1.
    pub number: u64,
    /// When it happened.
    pub at: SystemTime,
    /// Its kind.
    pub kind: JobEventKind,
    /// One JSON object.
    pub body: String,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobEventKind {
    /// The state has changed.
    Status,
    /// Progress of the server.
    Progress,
    /// A log message of the server.
    Stdout,
    /// A line of the server's standard error.
    Stderr,
    /// Events before this one were not kept.
    Gap,
}

impl JobEventKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Status,
        Self::Progress,
        Self::Stdout,
        Self::Stderr,
        Self::Gap,
    ];

    /// Returns its name in streams.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Progress => "progress",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Gap => "gap",
        }
    }
}

/// Events of a job, in their order.
#[derive(Clone, Debug)]
pub struct JobEvents {
    /// The events.
    pub events: Vec<JobEvent>,
    /// Whether the job has ended, and these are its last events.
    pub is_end: bool,
}

/// The result of a job that succeeded.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// The result as the server sent it: one JSON object.
    pub result: Bytes,
    /// Whether it says that the tool failed.
    pub is_error: bool,
}

/// A step of a job, for those who keep a record.
#[derive(Clone, Copy, Debug)]
pub struct JobStep<'a> {
    /// The id of the job.
    pub id: &'a str,
    /// The caller who made the job; `None` if the store does not say who it is.
    pub caller: Option<&'a Identity>,
    /// The path of the tool.
    pub path: &'a str,
    /// The digest under which the tool was reviewed when the job was made; empty if it is not known.
    pub digest: &'a str,
}

/// The end of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobEnding<'a> {
    /// The state in which it ended.
    pub state: JobState,
    /// The code of its error.
    pub code: Option<CallCode>,
    /// Whether the server may have executed the call although the job has no result.
    pub maybe_executed: bool,
    /// The record of the call, if its caller was answered before its end.
    pub record: Option<&'a CallRecord>,
}

/// Takes the steps of jobs that are not calls of a broker. It must not block.
pub trait JobObserver: Send + Sync {
    /// Takes the begin of a job.
    fn claimed(&self, job: JobStep<'_>);

    /// Takes the end of a job.
    fn ended(&self, job: JobStep<'_>, ending: JobEnding<'_>);
}

/// What a desk answers later.
pub type DeskAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<CoreError>>> + Send + 'a>>;

/// The reason why no job can be made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobsTrouble {
    /// `store_in_use` if another process holds the store, else `store_unavailable`.
    pub state: &'static str,
    /// The reason and the remedy, for operators: it names the file.
    pub reason: String,
}

/// The jobs of a broker, for their owners. A job of another owner has the error of an unknown id, `job_not_found`. Every
/// operation fails with `store_unavailable` while the store of jobs cannot be used.
pub trait JobDesk: fmt::Debug + Send + Sync {
    /// Whether jobs survive a restart of the broker.
    fn is_durable(&self) -> bool;

    /// Returns the reason why no job can be made now, if there is one.
    fn trouble(&self) -> Option<JobsTrouble>;

    /// Returns the time after which a call in the mode [`CallMode::Auto`] becomes a job; `None` if calls do not become
    /// jobs.
    fn promote_after(&self) -> Option<Duration>;

    /// Returns the mode of a call of an MCP client that names none.
    fn mcp_mode(&self) -> CallMode;

    /// Returns a job.
    fn show<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView>;

    /// Returns a job of the caller. An operator is not the owner of the jobs of other callers.
    fn own<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView>;

    /// Waits for the end of a job of the caller, and returns it. `overloaded` if too many requests of the caller wait
    /// already.
    fn ended<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView>;

    /// Returns a page of the jobs of the caller. An operator gets the jobs of every caller.
    fn list<'a>(&'a self, caller: &'a Identity, query: JobQuery) -> DeskAnswer<'a, JobPage>;

    /// Cancels a job: at once if it waits, else its call is cancelled. `job_finished` for a job that has ended.
    fn cancel<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView>;

    /// Returns the result of a job. The right of the caller to the tool is decided again. `job_finished` with the job's own
    /// error for a job that ended without a result, `field_invalid` for one that has not ended.
    fn result<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobResult>;

    /// Keeps a result that its caller got in part, in memory and for some time. Returns the id under which
    /// [`Self::read`] returns it; `None` if it has no room.
    fn keep_result(&self, caller: &Identity, path: &str, result: &[u8]) -> Option<Box<str>>;

    /// Returns the result of a job, as [`Self::result`] does, or a kept result. The right of the caller to the tool is
    /// decided again.
    fn read<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobResult>;

    /// Checks that the caller may read the events of a job.
    fn events_may_be_read<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, ()>;

    /// Returns at most `limit` events of a job with a higher number than `after`. Waits until there is one, or until the
    /// job has ended.
    fn events<'a>(
        &'a self,
        caller: &'a Identity,
        id: &'a str,
        after: u64,
        limit: usize,
    ) -> DeskAnswer<'a, JobEvents>;
}
