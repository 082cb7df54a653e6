//! What a supervised source shows of itself: its state, why, and counters that only grow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use broker_model::SourceCause;

use crate::failure::SourceFailure;

/// The state of a supervised source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// An attempt to start it is under way; or it runs, and a listing that an announcement made due is
    /// awaited, which [`Status::is_recheck_pending`] tells apart.
    Starting,
    /// Listed, judged, and taking calls.
    Ready,
    /// Down; it will be tried again at a known time, or when a call needs it.
    Backoff,
    /// Down for a cause that does not heal by itself; only a call makes it try again.
    Failed,
    /// Up, but the source itself no longer matches what was reviewed.
    Withdrawn,
    /// Being stopped, or stopped.
    Stopping,
}

/// A supervised source at one moment. The counters are live.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it does.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// Why it is not ready, or why it last was not while it is starting again.
    pub failure: Option<SourceFailure>,
    /// Finished attempts to start it.
    pub attempts: u64,
    /// How often a listing was judged.
    pub verdicts: u64,
    /// When it is tried again by itself.
    pub next_attempt: Option<SystemTime>,
    /// Attempts after the first.
    pub restarts: u64,
    /// What happened since the source was made; shared, so it stays current.
    pub counters: Arc<Counters>,
}

/// Counts of one source over all its processes.
#[derive(Debug, Default)]
pub struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    noise_lines: AtomicU64,
    unknown_ids: AtomicU64,
    late_answers: AtomicU64,
    oversize_lines: AtomicU64,
    invalid_utf8_lines: AtomicU64,
    server_requests: AtomicU64,
    unanswered_requests: AtomicU64,
    first_noise: Mutex<Vec<String>>,
}

/// Lines of noise that are kept to be shown.
const MAX_NOISE: usize = 5;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident / $add:ident;)*) => {
        impl Counters {
            $($(#[$doc])*
            pub fn $name(&self) -> u64 {
                self.$name.load(Ordering::Relaxed)
            }

            pub(crate) fn $add(&self) {
                self.$name.fetch_add(1, Ordering::Relaxed);
            }
            )*
        }
    };
}

counters! {
    /// Calls that were taken.
    calls / add_call;
    /// Calls that ended in a [`crate::CallFailure`].
    failures / add_failure;
    /// Lines on stdout that were no JSON-RPC message.
    noise_lines / add_noise_line;
    /// Answers to ids that were never given out.
    unknown_ids / add_unknown_id;
    /// Answers to calls that had already ended, and second answers.
    late_answers / add_late_answer;
    /// Lines longer than the limit.
    oversize_lines / add_oversize_line;
    /// Lines whose text had to be repaired.
    invalid_utf8_lines / add_invalid_utf8_line;
    /// Requests that the server sent to us.
    server_requests / add_server_request;
    /// Those of them that got no answer, since their id is too long.
    unanswered_requests / add_unanswered_request;
}

impl Counters {
    /// The first lines on stdout that were no JSON-RPC message, redacted and printable.
    pub fn first_noise(&self) -> Vec<String> {
        self.kept_noise().clone()
    }

    /// Keeps the text of a line of noise where there is still room. `line` makes it fit to be shown.
    pub(crate) fn keep_noise(&self, line: impl FnOnce() -> String) {
        // A flood of noise gets no further than here.
        if self.noise_lines() > MAX_NOISE as u64 {
            return;
        }
        let mut kept = self.kept_noise();
        if kept.len() < MAX_NOISE {
            kept.push(line());
        }
    }

    fn kept_noise(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        // A panic elsewhere leaves at worst a line out.
        self.first_noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Status {
    /// Whether a listing that an announcement made due is awaited: the process is up and finishes its
    /// calls, and takes no new ones.
    pub fn is_recheck_pending(&self) -> bool {
        let pending = SourceCause::RecheckPending;
        self.state == State::Starting
            && self
                .failure
                .as_ref()
                .is_some_and(|failure| failure.cause == pending)
    }
}

impl State {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
            Self::Withdrawn => "withdrawn",
            Self::Stopping => "stopping",
        }
    }
}
