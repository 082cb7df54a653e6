//! A job: its states, its facts, and what a store is asked and answers.

use std::time::{Duration, SystemTime};

pub use broker_model::job_state::JobState;
use bytes::Bytes;

use crate::id::JobId;

/// The way in which a job begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStart {
    /// It waits for a claim.
    Queued,
    /// Its call is under way: it is running and sent at once, under fence 1. Its arguments are not stored.
    Sent,
}

/// A job to be created.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id.
    pub id: JobId,
    /// The identity that creates it. Without one the job is reached by its id alone.
    pub owner: Option<String>,
    /// The path of the tool.
    pub path: String,
    /// The digest of the tool as it was locked.
    pub tool_digest: String,
    /// The digest of the catalog.
    pub catalog_digest: String,
    /// The arguments of the call.
    pub args: Bytes,
    /// Their SHA-256, which stays after they are erased.
    pub args_sha256: [u8; 32],
    /// The `_meta` of the call that the layer keeps.
    pub meta: Option<String>,
    /// The idempotency key: unique for the owner and the path. Without an owner it is not compared.
    pub key: Option<String>,
    /// The caller, as text that the layer reads again.
    pub caller: String,
    /// The trace context of the creating call.
    pub trace: Option<String>,
    /// The time for which the ended job is kept.
    pub ttl: Duration,
    /// The way in which it begins.
    pub start: JobStart,
}

/// The answer to a creation.
#[derive(Clone, Debug)]
pub enum Created {
    /// The job is stored.
    New(Box<Job>),
    /// A job with the same key and the same arguments exists.
    Replayed(Box<Job>),
    /// A job with the same key and other arguments exists.
    OtherArguments(JobId),
}

/// The reason why a job has no stored result or error, although it had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It is larger than the bound of a job.
    TooLarge,
    /// The owner's part of the store, the store or the disk has no room.
    NoRoom,
    /// It made room for newer jobs of the same owner.
    Evicted,
}

impl Dropped {
    /// Returns the name of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::NoRoom => "no_room",
            Self::Evicted => "evicted",
        }
    }

    /// Reads the name of a reason.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::TooLarge, Self::NoRoom, Self::Evicted]
            .into_iter()
            .find(|reason| reason.as_str() == name)
    }
}

/// The facts of a job, without its arguments, its result and its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The identity that created it.
    pub owner: Option<String>,
    /// The path of the tool.
    pub path: String,
    /// The digest of the tool for which it was created.
    pub tool_digest: String,
    /// The digest of the catalog for which it was created.
    pub catalog_digest: String,
    /// The SHA-256 of its arguments.
    pub args_sha256: [u8; 32],
    /// The `_meta` of the call.
    pub meta: Option<String>,
    /// The idempotency key.
    pub key: Option<String>,
    /// The caller, as text that the layer reads again.
    pub caller: String,
    /// The trace context of the creating call.
    pub trace: Option<String>,
    /// The task of the server that executes it, as text that the layer reads again.
    pub upstream: Option<String>,
    /// Whether this task outlives the broker, so that another run of the broker can adopt it.
    pub upstream_survives: bool,
    /// Its state.
    pub state: JobState,
    /// Whether the server may have got the call.
    pub sent: bool,
    /// Whether its owner asked for its end.
    pub cancel_asked: bool,
    /// The number of its claim. Writes under another number are refused.
    pub fence: u64,
    /// The time of its creation.
    pub created: SystemTime,
    /// The time of its last claim.
    pub started: Option<SystemTime>,
    /// The time of its end.
    pub ended: Option<SystemTime>,
    /// The time of its end on the clock that never jumps, while that clock has not begun again.
    pub ended_since: Option<Duration>,
    /// The time of its last change: of its state, or by an event.
    pub updated: SystemTime,
    /// The time for which it is kept after its end.
    pub ttl: Duration,
    /// The end of this time, once it has ended.
    pub expires: Option<SystemTime>,
    /// The body of its last event of progress.
    pub progress: Option<Bytes>,
    /// The number of its last event.
    pub last_seq: u64,
    /// The number of its events of progress, output and state changes.
    pub events: u64,
    /// The bytes of these events.
    pub event_bytes: u64,
    /// The events that were dropped because one of the bounds was reached.
    pub dropped_events: u64,
    /// Whether its result is an error of the tool.
    pub is_error: bool,
    /// The error with which it ended, as JSON.
    pub error: Option<String>,
    /// The bytes of its stored result.
    pub result_bytes: Option<u64>,
    /// The reason why its result, its events or its error are not stored.
    pub dropped: Option<Dropped>,
    /// The bytes of its stored arguments.
    pub args_bytes: u64,
}

/// A claimed job.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The job, running.
    pub job: Job,
    /// Its arguments; empty if they were erased because the call was sent.
    pub args: Bytes,
    /// The number under which the claimer writes.
    pub fence: u64,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Progress.
    Progress,
    /// Text of the tool's output.
    Stdout,
    /// Text of the tool's errors.
    Stderr,
    /// A state. The store adds these.
    Status,
    /// Events behind it were dropped. The store adds it.
    Gap,
}

impl EventKind {
    /// Returns the name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Status => "status",
            Self::Gap => "gap",
        }
    }

    /// Reads the name of a kind.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::Progress,
            Self::Stdout,
            Self::Stderr,
            Self::Status,
            Self::Gap,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

/// An event to be stored.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its kind.
    pub kind: EventKind,
    /// Its body.
    pub body: Bytes,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// Its number. Numbers of a job grow; some are left out.
    pub seq: u64,
    /// Its time.
    pub at: SystemTime,
    /// Its kind.
    pub kind: EventKind,
    /// Its body: `{"status":"running"}` of a status, `{"dropped":7}` of a gap.
    pub body: Bytes,
}

/// Events of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The events behind the number that was asked for, in order.
    pub events: Vec<JobEvent>,
    /// Whether events of the job were dropped: by a bound, or with an evicted result.
    pub gap: bool,
}

/// The end of a job.
#[derive(Clone, Debug)]
pub struct JobEnd {
    /// The last state.
    pub state: JobState,
    /// The result.
    pub result: Option<Bytes>,
    /// Whether the result is an error of the tool.
    pub is_error: bool,
    /// The error, as JSON of at most [`MAX_ERROR_BYTES`](crate::MAX_ERROR_BYTES).
    pub error: Option<String>,
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The job was queued, and is canceled.
    Canceled,
    /// The job runs; its broker is asked to end it.
    Asked,
    /// The job has ended.
    Finished(JobState),
    /// There is not a job of this id.
    Unknown,
}

/// The jobs that are listed.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Those of this owner.
    pub owner: Option<String>,
    /// Those of all owners. Without an owner and without this the list is empty.
    pub all: bool,
    /// Those in this state.
    pub state: Option<JobState>,
    /// The maximum number.
    pub limit: usize,
    /// The end of the page before.
    pub cursor: Option<String>,
}

/// A page of jobs, the newest first.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// The queued jobs of one owner. Jobs without an owner are one group.
#[derive(Clone, Debug)]
pub struct QueuedOwner {
    /// The owner.
    pub owner: Option<String>,
    /// The number of its jobs that are claimed and have not ended.
    pub running: u64,
    /// Its queued jobs, the oldest first.
    pub jobs: Vec<Job>,
}

/// The jobs of an owner, or of all, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Queued jobs.
    pub queued: u64,
    /// Claimed jobs that have not ended.
    pub running: u64,
    /// Ended jobs that are kept.
    pub finished: u64,
    /// The bytes that are counted for all of them, reserved ones included.
    pub bytes: u64,
    /// Those of them that are results and events of ended jobs, which make room for newer jobs.
    pub evictable: u64,
}

impl Usage {
    /// Returns the number of jobs that have not ended.
    pub const fn unfinished(&self) -> u64 {
        self.queued + self.running
    }

    /// Adds the numbers of one more job.
    pub(crate) const fn add(&mut self, job: &Self) {
        self.queued += job.queued;
        self.running += job.running;
        self.finished += job.finished;
        self.bytes += job.bytes;
        self.evictable += job.evictable;
    }

    /// Takes the numbers of a job away.
    pub(crate) const fn subtract(&mut self, job: &Self) {
        self.queued -= job.queued;
        self.running -= job.running;
        self.finished -= job.finished;
        self.bytes -= job.bytes;
        self.evictable -= job.evictable;
    }
}

/// What a store found at its opening: the jobs of a run that has ended without their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Jobs that were claimed and not sent: they are queued again.
    pub requeued: Vec<JobId>,
    /// Jobs that were sent: they are lost.
    pub lost: Vec<JobId>,
    /// Jobs whose cancel had been asked for before they were sent: they are canceled.
    pub canceled: Vec<JobId>,
    /// Jobs that a server executes as a task that survives: they are running, and wait for `adopt`.
    pub adoptable: Vec<JobId>,
    /// The number of jobs that are queued.
    pub queued: u64,
}
