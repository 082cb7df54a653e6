//! One instance of a source: a process under a supervisor that starts, checks and restarts it.

mod backoff;
mod handle;
mod hang;
mod listing_pace;
mod locked_revision;
mod recheck;
mod supervisor;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use broker_model::{Snapshot, SourceCause};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::RawResult;
use crate::failure::{CallFailure, SourceFailure};
use crate::server_call::ServerCall;
use crate::session::Session;
use crate::spec::SourceSpec;
use crate::status::{Counters, State, Status};
use broker_process::StderrTail;
pub use handle::SessionHandle;
use supervisor::Supervisor;

/// Compares a listing with the lock. Called on a blocking thread; may take milliseconds.
pub trait DriftCheck: Send + Sync + 'static {
    /// Returns the verdict on the source with this listing.
    fn check(&self, snapshot: &Snapshot) -> Verdict;

    /// Learns that a running server was lost, and why. Must not block.
    fn lost(&self, _failure: &SourceFailure) {}

    /// Learns that the server is up again after it was lost. Must not block.
    fn restored(&self) {}
}

/// The verdict on a source after a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes calls; the drift check withdraws single tools itself.
    Serve,
    /// Its tools must not be called.
    WithdrawSource {
        /// Why.
        message: String,
    },
}

/// Maximum time that a call waits for an instance that must not be started yet.
const WAKE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The retry delay of a call that was refused because an announced listing is missing.
const PENDING_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The retry delay of a call that waited for a start until its timeout.
const STARTING_RETRY_DELAY: Duration = Duration::from_secs(5);

/// A supervised instance of a source. Cheap to clone.
#[derive(Clone)]
pub struct Instance(Arc<InstanceState>);

/// The state that callers and the supervisor share. Only the supervisor writes it, except for requests
/// to wake it.
struct InstanceState {
    name: String,
    status: watch::Sender<Status>,
    /// The session that takes calls; present only in state [`State::Ready`].
    live: RwLock<Option<Arc<Session>>>,
    /// Before this time, a call does not wake the instance.
    wake_from: Mutex<Instant>,
    wake: Notify,
    stopping: CancellationToken,
    /// The deadline of a stop, if there is one.
    stop_deadline: watch::Sender<Option<Instant>>,
    stopped: CancellationToken,
    tail: StderrTail,
    counters: Arc<Counters>,
    settings: watch::Sender<SourceSettings>,
}

/// The settings that may change while an instance runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    /// The maximum time of its next start, until it has listed its tools.
    pub startup_timeout: Duration,
    /// The interval of listings without an announcement; `None` for never.
    pub relist_interval: Option<Duration>,
}

impl From<&SourceSpec> for SourceSettings {
    fn from(spec: &SourceSpec) -> Self {
        Self {
            startup_timeout: spec.startup_timeout,
            relist_interval: spec.relist_interval,
        }
    }
}

impl Instance {
    /// Starts supervising; the era of the revision that was locked is tried first. Must be called within a runtime.
    pub fn start(
        spec: SourceSpec,
        locked: Option<&'static str>,
        drift_check: Arc<dyn DriftCheck>,
        tasks: &TaskTracker,
    ) -> Self {
        Self::start_counting(spec, locked, drift_check, tasks, Arc::default(), 0)
    }

    /// Starts another instance next to this one, with the same counters. If it will replace this one, it counts as a
    /// restart.
    pub fn start_beside(
        &self,
        spec: SourceSpec,
        locked: Option<&'static str>,
        drift_check: Arc<dyn DriftCheck>,
        tasks: &TaskTracker,
        takes_over: bool,
    ) -> Self {
        let restarts = match takes_over {
            true => self.0.status.borrow().restarts + 1,
            false => 0,
        };
        let counters = self.0.counters.clone();
        Self::start_counting(spec, locked, drift_check, tasks, counters, restarts)
    }

    fn start_counting(
        spec: SourceSpec,
        locked: Option<&'static str>,
        drift_check: Arc<dyn DriftCheck>,
        tasks: &TaskTracker,
        counters: Arc<Counters>,
        restarts: u64,
    ) -> Self {
        let shared = Arc::new(InstanceState {
            name: spec.source.as_str().to_owned(),
            status: watch::Sender::new(Status {
                state: State::Starting,
                since: SystemTime::now(),
                failure: None,
                attempts: 0,
                verdicts: 0,
                next_attempt: None,
                restarts,
                counters: counters.clone(),
            }),
            live: RwLock::new(None),
            wake_from: Mutex::new(Instant::now()),
            wake: Notify::new(),
            stopping: CancellationToken::new(),
            stop_deadline: watch::Sender::new(None),
            stopped: CancellationToken::new(),
            tail: StderrTail::logged(spec.redactor.clone(), spec.source.as_str()),
            counters,
            settings: watch::Sender::new(SourceSettings::from(&spec)),
        });
        let supervisor = Supervisor::new(shared.clone(), spec, locked, drift_check);
        tasks.spawn(supervisor.run());
        Self(shared)
    }

    /// Returns its status, now and whenever it changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.0.status.subscribe()
    }

    /// Returns the last lines that its process wrote to stderr, redacted and printable.
    pub fn last_lines(&self) -> Vec<String> {
        self.0.tail.kept()
    }

    /// Records that its server answered a call at this time.
    #[inline]
    pub fn note_answer(&self, at: Instant) {
        self.0.counters.note_answer(at);
    }

    /// Whether it takes calls now, and its server asks for no pause.
    pub fn is_usable(&self) -> bool {
        let status = self.0.status.borrow();
        status.state == State::Ready && status.next_attempt.is_none()
    }

    /// Replaces the settings of the running instance.
    pub fn set(&self, settings: SourceSettings) {
        self.0.settings.send_replace(settings);
    }

    /// Returns the session that takes calls now, if there is one.
    pub fn ready(&self) -> Option<SessionHandle> {
        self.0.live().map(|session| self.handle(session))
    }

    /// Returns the number of calls that wait for others to end.
    pub fn waiting(&self) -> usize {
        self.0.live().map_or(0, |session| session.waiting())
    }

    /// Returns the session that takes calls. Waits at most `time` for a start in progress; all callers share the start.
    /// Wakes an instance that is down, unless its last start ended too recently.
    ///
    /// Its verdict was applied before this returns: a caller that then reads the decision of the drift
    /// check and calls this session calls the process that was checked.
    pub async fn session(&self, time: Duration) -> Result<SessionHandle, CallFailure> {
        let session = timeout(time, self.up()).await.unwrap_or_else(|_| {
            let now = self.0.status.borrow().clone();
            // An instance that is down, or that never came up, reports its failure instead of the timeout
            // of the call.
            Err(match now.state {
                State::Backoff | State::Failed => unavailable(now),
                State::Starting => self.still_starting(now),
                _ => CallFailure::Timeout {
                    after: time,
                    extended: false,
                    maybe_executed: false,
                },
            })
        });
        match session {
            Ok(session) => Ok(self.handle(session)),
            Err(failure) => {
                self.0.counters.add_call();
                self.0.counters.note_failure(&failure);
                Err(failure)
            }
        }
    }

    /// Returns the reason why an instance that is starting is not ready: the reason of its last end, or else that it
    /// has not answered since it was started.
    fn still_starting(&self, status: Status) -> CallFailure {
        let failure = status.failure.unwrap_or_else(|| {
            let since = status.since.elapsed().unwrap_or_default().as_secs();
            let message =
                format!("the server was started {since} s ago and has not listed its tools");
            SourceFailure {
                stderr: self.0.tail.for_failure(),
                ..SourceFailure::new(SourceCause::StartupTimeout, message)
            }
        });
        CallFailure::Unavailable {
            failure,
            retry_after: Some(STARTING_RETRY_DELAY),
        }
    }

    /// Calls a tool as soon as there is a session; `timeout` covers both.
    pub async fn call(
        &self,
        call: ServerCall<'_>,
        timeout: Duration,
    ) -> Result<RawResult, CallFailure> {
        let deadline = Instant::now() + timeout;
        let session = match self.ready() {
            Some(session) => session,
            None => self.session(timeout).await?,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        session.call(call, left).await
    }

    fn handle(&self, session: Arc<Session>) -> SessionHandle {
        SessionHandle::new(session, self.0.counters.clone())
    }

    /// Returns the session, once it is up; joins a start in progress, or asks for one.
    async fn up(&self) -> Result<Arc<Session>, CallFailure> {
        let mut status = self.0.status.subscribe();
        let attempts = status.borrow().attempts;
        let mut woken = false;
        loop {
            let now = status.borrow_and_update().clone();
            match now.state {
                State::Ready => {
                    if let Some(session) = self.0.live() {
                        return Ok(session);
                    }
                }
                State::Starting if now.is_recheck_pending() => return Err(unavailable(now)),
                State::Starting => {}
                State::Stopping => return Err(CallFailure::Stopping),
                State::Withdrawn => return Err(unavailable(now)),
                State::Backoff | State::Failed => {
                    let wait = self.0.wake_wait();
                    if now.attempts > attempts || (!woken && wait > WAKE_TIMEOUT) {
                        return Err(unavailable(now));
                    }
                    if !woken && !wait.is_zero() {
                        // It may come up by itself meanwhile.
                        if let Ok(Err(_)) = timeout(wait, status.changed()).await {
                            return Err(CallFailure::Stopping);
                        }
                        continue;
                    }
                    if !std::mem::replace(&mut woken, true) {
                        self.0.wake.notify_one();
                    }
                }
            }
            if status.changed().await.is_err() {
                return Err(CallFailure::Stopping);
            }
        }
    }

    /// Stops the instance: refuses new calls, fails calls in flight, and stops the process as
    /// [`Session::stop`] does. Idempotent; returns when it is done.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.stopped.cancelled().await;
    }

    /// Stops the instance with graces that fit into `time`; only the kernel may need longer. Shortens a
    /// stop in progress.
    pub async fn stop_within(&self, time: Duration) {
        let by = Instant::now() + time;
        self.0.stop_deadline.send_if_modified(|known| {
            let sooner = known.is_none_or(|known| by < known);
            if sooner {
                *known = Some(by);
            }
            sooner
        });
        self.stop().await;
    }
}

impl InstanceState {
    /// Returns the session that takes calls, unless its connection has ended.
    fn live(&self) -> Option<Arc<Session>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.as_ref().filter(|session| !session.is_over()).cloned()
    }

    fn set_live(&self, session: Option<Arc<Session>>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// Returns the time until a call may wake the instance.
    fn wake_wait(&self) -> Duration {
        let from = self
            .wake_from
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        from.saturating_duration_since(Instant::now())
    }

    fn set_wake_from(&self, from: Instant) {
        *self
            .wake_from
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = from;
    }

    /// Changes the status, and its time if the state changes.
    fn update(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(|status| {
            let before = status.state;
            change(status);
            if status.state != before {
                status.since = SystemTime::now();
            }
        });
    }
}

fn unavailable(status: Status) -> CallFailure {
    let pending = status.is_recheck_pending().then_some(PENDING_RETRY_DELAY);
    let failure = status
        .failure
        .unwrap_or_else(|| SourceFailure::new(SourceCause::Stopped, "the source is not ready"));
    let retry_after = status
        .next_attempt
        .map(|next| next.duration_since(SystemTime::now()).unwrap_or_default());
    CallFailure::Unavailable {
        failure,
        retry_after: retry_after.or(pending),
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("name", &self.0.name)
            .field("state", &self.0.status.borrow().state)
            .finish_non_exhaustive()
    }
}
