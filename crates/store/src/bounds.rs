//! The bounds of a store, and the bytes that it counts.

use crate::job::{Job, JobState, Usage};

/// The bytes that are counted for the row of a job, besides its texts: the row, its places in indexes, its events of states.
const ROW_BYTES: u64 = 2 << 10;
/// The bytes that are reserved for the end of a job: the mark `sent`, the end, its error, its last progress and
/// its task.
const END_BYTES: u64 = 12 << 10;
/// The bytes that are counted for an event, besides its body.
pub(crate) const EVENT_BYTES: u64 = 64;
/// The maximum bytes of the error of a job. A longer one is left out, so that the end always fits.
pub const MAX_ERROR_BYTES: usize = 4 << 10;
/// The maximum bytes of the task of a server that executes a job.
pub const MAX_UPSTREAM_BYTES: usize = 1 << 10;
/// The maximum bytes of an event of progress that a job shows as its last one.
pub(crate) const MAX_PROGRESS_BYTES: usize = 4 << 10;

/// The maximum bytes of the result of a job.
const MAX_RESULT_BYTES: u64 = 16 << 20;
/// The maximum number of events of a job.
const MAX_EVENTS: u64 = 10_000;
/// The maximum bytes of the events of a job.
const MAX_EVENT_BYTES: u64 = 8 << 20;
/// The maximum bytes of everything in a store, unless the config has another number.
const DEFAULT_STORE_BYTES: u64 = 1 << 30;
/// The part of a store that one owner may use: a quarter.
const OWNER_PART: u64 = 4;
/// The maximum number of queued jobs of an owner.
const MAX_QUEUED: u64 = 100;
/// The maximum number of jobs that have not ended.
const MAX_UNFINISHED: u64 = 1_000;

/// The bounds of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum bytes of the result of a job.
    pub result_bytes: u64,
    /// The maximum number of events of a job.
    pub events: u64,
    /// The maximum bytes of the events of a job.
    pub event_bytes: u64,
    /// The maximum bytes of everything in the store.
    pub store_bytes: u64,
    /// The maximum number of queued jobs of an owner.
    pub queued_per_owner: u64,
    /// The maximum number of jobs that have not ended.
    pub unfinished: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            result_bytes: MAX_RESULT_BYTES,
            events: MAX_EVENTS,
            event_bytes: MAX_EVENT_BYTES,
            store_bytes: DEFAULT_STORE_BYTES,
            queued_per_owner: MAX_QUEUED,
            unfinished: MAX_UNFINISHED,
        }
    }
}

impl Bounds {
    /// Returns the maximum bytes of one owner: a quarter of the store.
    pub const fn owner_bytes(&self) -> u64 {
        self.store_bytes / OWNER_PART
    }
}

/// Returns the numbers that a job adds to the usage of its owner. A job that has not ended is counted with the bytes that
/// its end may need, so that an end always fits.
pub(crate) fn usage_of(job: &Job) -> Usage {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = job.path.len()
        + job.tool_digest.len()
        + job.catalog_digest.len()
        + job.caller.len()
        + text(&job.owner)
        + text(&job.meta)
        + text(&job.key)
        + text(&job.trace);
    let is_finished = job.state.is_finished();
    let end = if is_finished {
        let progress = job.progress.as_ref().map_or(0, bytes::Bytes::len);
        (text(&job.error) + text(&job.upstream) + progress) as u64
    } else {
        END_BYTES
    };
    let events = job.event_bytes + job.events * EVENT_BYTES;
    let stored = events + job.result_bytes.unwrap_or(0);
    Usage {
        queued: u64::from(job.state == JobState::Queued),
        running: u64::from(job.state.is_claimed()),
        finished: u64::from(is_finished),
        bytes: ROW_BYTES + texts as u64 + end + job.args_bytes + stored,
        evictable: if is_finished { stored } else { 0 },
    }
}
