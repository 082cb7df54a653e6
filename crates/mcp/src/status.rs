//! The status of a supervised source: its state, the reason, and counters that only grow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use broker_http_client::CertificateExpiry;
use broker_model::SourceCause;
use broker_process::Ending;
use tokio::time::Instant;

use crate::failure::{CallFailure, SourceFailure};

/// The state of a supervised source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is being started; or it runs and an announced listing is missing, see
    /// [`Status::is_recheck_pending`].
    Starting,
    /// Listed, checked, and taking calls.
    Ready,
    /// Down; it will be started again at a known time, or when a call needs it.
    Backoff,
    /// Down for a cause that does not go away by itself; only a call starts it again.
    Failed,
    /// Up, but the source as a whole differs from the lock.
    Withdrawn,
    /// Being stopped, or stopped.
    Stopping,
}

/// The status of a supervised source at one moment. The counters are live.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its state.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// Why it is not ready; during a restart, why it last ended.
    pub failure: Option<SourceFailure>,
    /// Finished attempts to start it.
    pub attempts: u64,
    /// The number of listings that were checked.
    pub verdicts: u64,
    /// When it is started again by itself.
    pub next_attempt: Option<SystemTime>,
    /// Attempts after the first.
    pub restarts: u64,
    /// Counters since the source was created; shared, so they stay current.
    pub counters: Arc<Counters>,
}

/// Counts of one source over all its processes.
#[derive(Debug, Default)]
pub struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    hangs: AtomicU64,
    noise_lines: AtomicU64,
    unknown_ids: AtomicU64,
    late_answers: AtomicU64,
    oversize_lines: AtomicU64,
    invalid_utf8_lines: AtomicU64,
    server_requests: AtomicU64,
    unanswered_requests: AtomicU64,
    dropped_progress: AtomicU64,
    dropped_log_messages: AtomicU64,
    /// Calls in a row that the server did not answer.
    consecutive_failures: AtomicU64,
    last_answer: LastAnswer,
    first_noise: Mutex<Vec<String>>,
    waited_calls: AtomicU64,
    waited_micros: AtomicU64,
    certificate: Mutex<Option<CertificateExpiry>>,
    worst_ending: Mutex<Option<Ending>>,
}

impl Counters {
    /// Counts a call that had to wait for a place at the server.
    pub(crate) fn add_waited(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited_calls.fetch_add(1, Ordering::Relaxed);
        self.waited_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns the number of calls that had to wait for a place at the server, and the sum of their times.
    pub fn waited(&self) -> (u64, Duration) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = Duration::from_micros(load(&self.waited_micros));
        (load(&self.waited_calls), time)
    }

    /// Keeps the end of a process if it is worse than those before.
    pub(crate) fn note_ending(&self, ending: Option<Ending>) {
        let mut worst = self.endings();
        if ending.as_ref().map(|one| one.stage) > worst.as_ref().map(|one| one.stage) {
            *worst = ending;
        }
    }

    /// Returns how the processes of the source ended when they were stopped: the worst end.
    pub fn worst_ending(&self) -> Option<Ending> {
        self.endings().clone()
    }

    fn endings(&self) -> MutexGuard<'_, Option<Ending>> {
        self.worst_ending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the times at which the certificates of the server expire.
    pub(crate) fn watch_certificate(&self, expiry: CertificateExpiry) {
        *self
            .certificate
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(expiry);
    }

    /// Returns when the first of the certificates for the server expires, in Unix time; `None` without TLS.
    pub fn certificate_expiry(&self) -> Option<u64> {
        let certificate = self
            .certificate
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        certificate.as_ref()?.soonest()
    }
}

/// The time of the last answer, in whole seconds.
#[derive(Debug)]
struct LastAnswer {
    created: (Instant, SystemTime),
    /// The seconds from then to the answer, plus one; 0 before the first answer.
    seconds: AtomicU64,
}

impl Default for LastAnswer {
    fn default() -> Self {
        Self {
            created: (Instant::now(), SystemTime::now()),
            seconds: AtomicU64::new(0),
        }
    }
}

/// The maximum number of noise lines that are kept.
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
    /// Calls that were accepted.
    calls / add_call;
    /// Calls that ended in a [`crate::CallFailure`].
    failures / add_failure;
    /// Times that the server was started again because it hung.
    hangs / add_hang;
    /// Lines on stdout that were not JSON-RPC messages.
    noise_lines / add_noise_line;
    /// Answers to ids that were never used.
    unknown_ids / add_unknown_id;
    /// Answers to calls that had already ended, and second answers.
    late_answers / add_late_answer;
    /// Lines longer than the limit.
    oversize_lines / add_oversize_line;
    /// Lines with replaced invalid UTF-8.
    invalid_utf8_lines / add_invalid_utf8_line;
    /// Requests that the server sent to the broker.
    server_requests / add_server_request;
    /// Requests that were not answered, since their id is too long.
    unanswered_requests / add_unanswered_request;
    /// Notifications of progress that were over a limit.
    dropped_progress / add_dropped_progress;
    /// Log messages that certainly belong to no single call, cannot be read, or were over a limit.
    dropped_log_messages / add_dropped_log_message;
}

impl Counters {
    /// Returns the time of the last call that the server answered, if there is one.
    pub fn last_ok(&self) -> Option<SystemTime> {
        let last = &self.last_answer;
        let seconds = last.seconds.load(Ordering::Relaxed).checked_sub(1)?;
        Some(last.created.1 + Duration::from_secs(seconds))
    }

    /// Returns the number of calls in a row that the server did not answer.
    pub fn consecutive_failures(&self) -> u64 {
        self.consecutive_failures.load(Ordering::Relaxed)
    }

    /// Records the time of an answer.
    pub(crate) fn note_answer(&self, at: Instant) {
        let last = &self.last_answer;
        let seconds = at.duration_since(last.created.0).as_secs();
        last.seconds.store(seconds + 1, Ordering::Relaxed);
    }

    /// Counts the outcome of a call.
    pub(crate) fn note_outcome<T>(&self, outcome: &Result<T, CallFailure>) {
        match outcome {
            Ok(_) => self.end_failures(),
            Err(failure) => self.note_failure(failure),
        }
    }

    /// Counts a call that failed.
    pub(crate) fn note_failure(&self, failure: &CallFailure) {
        // The call goes on.
        if let CallFailure::Task(_) = failure {
            return;
        }
        self.add_failure();
        if failure.is_of_source() {
            self.consecutive_failures.fetch_add(1, Ordering::Relaxed);
        } else if let CallFailure::Rpc { .. } = failure {
            self.end_failures();
        }
    }

    /// Ends the row of failures. Nearly always there is none, and nothing is written.
    #[inline]
    fn end_failures(&self) {
        if self.consecutive_failures() > 0 {
            self.consecutive_failures.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the first lines on stdout that were not JSON-RPC messages, redacted and printable.
    pub fn first_noise(&self) -> Vec<String> {
        self.kept_noise().clone()
    }

    /// Keeps the text of a noise line if there is room. `line` returns it redacted and printable.
    pub(crate) fn keep_noise(&self, line: impl FnOnce() -> String) {
        // When the list is full, the lock is not taken.
        if self.noise_lines() > MAX_NOISE as u64 {
            return;
        }
        let mut kept = self.kept_noise();
        if kept.len() < MAX_NOISE {
            kept.push(line());
        }
    }

    fn kept_noise(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        // After a panic at most a line is missing.
        self.first_noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Status {
    /// Whether an announced listing is missing: the process finishes its calls and takes no new ones.
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
    /// Returns the name on the wire.
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
