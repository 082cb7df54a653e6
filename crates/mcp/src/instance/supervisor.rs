//! The supervisor task of an instance: starts it, checks its listing, watches it, and restarts it. Only
//! this task sets the state.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_model::text::shown_line;
use broker_model::{Snapshot, SourceCause};
use broker_process::{StopDeadline, random_u64};
use broker_wire::Era;
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::backoff::{Backoff, RetryPlan};
use super::{DriftCheck, InstanceState, Verdict};
use crate::era_hint::EraHint;
use crate::failure::SourceFailure;
use crate::http::{Pause, ReopenPace, another_token};
use crate::opening::Opening;
use crate::session::{Session, stopped};
use crate::spec::{Endpoint, SourceSpec};
use crate::startup;
use crate::status::State;

/// Maximum time for the tasks of a stopped instance to end; their bounds are below this.
const TASKS_TIMEOUT: Duration = Duration::from_secs(15);

/// Lines of stderr that are logged when an instance goes down, and characters of each.
const MAX_LOGGED_LINES: usize = 3;
const MAX_LOGGED_CHARS: usize = 200;

/// Why a session is no longer watched.
enum WatchEnd {
    /// It was lost.
    Lost(SourceFailure),
    /// This session takes over.
    Replaced(Arc<Session>),
}

pub(super) struct Supervisor {
    pub(super) shared: Arc<InstanceState>,
    pub(super) spec: SourceSpec,
    /// The known era. It is tried first: the one that was passed, then the one that was last negotiated.
    known: Option<Era>,
    /// The revision of the lock. A start asks for its era first, also after the server had another one.
    pub(super) locked: Option<&'static str>,
    /// The era to try first without a known era.
    first: Era,
    drift_check: Arc<dyn DriftCheck>,
    /// Locked while a listing is checked, so that verdicts come in the order of the listings.
    check_order: Arc<Mutex<()>>,
    backoff: Backoff,
    /// Whether a session was lost and there is no other one yet.
    is_lost: bool,
    /// The tasks of its processes.
    pub(super) tasks: TaskTracker,
    /// The deadline for the end of its processes.
    stop_deadline: StopDeadline,
}

impl Supervisor {
    pub(super) fn new(
        shared: Arc<InstanceState>,
        spec: SourceSpec,
        locked: Option<&'static str>,
        drift_check: Arc<dyn DriftCheck>,
    ) -> Self {
        Self {
            backoff: Backoff::new(spec.timing),
            stop_deadline: StopDeadline::new(shared.stop_deadline.subscribe()),
            is_lost: false,
            shared,
            spec,
            known: locked.and_then(Era::from_revision),
            locked,
            first: Era::Modern,
            drift_check,
            check_order: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) async fn run(mut self) {
        // A stop of the instance waits for this guard, however this task ends.
        let _stopped = self.shared.stopped.clone().drop_guard();
        let stopping = self.shared.stopping.clone();
        let mut is_down = false;
        loop {
            // Dropping a start ends its process.
            let Some(started) = stopping.run_until_cancelled(self.start()).await else {
                break;
            };
            let failure = match started {
                Ok(mut session) => {
                    if std::mem::take(&mut is_down) {
                        tracing::info!(source = %self.shared.name, "source is up again");
                    }
                    let lost = loop {
                        match stopping.run_until_cancelled(self.watch(&session)).await {
                            Some(WatchEnd::Replaced(next)) => {
                                tracing::info!(source = %self.shared.name, revision = next.revision(), "the server has the locked protocol revision again");
                                self.known = Some(next.era());
                                self.retire(std::mem::replace(&mut session, next));
                            }
                            Some(WatchEnd::Lost(failure)) => break Some(failure),
                            None => break None,
                        }
                    };
                    self.shared.set_live(None);
                    let next = lost.map(|failure| {
                        self.is_lost = true;
                        self.drift_check.lost(&failure);
                        (self.down(&failure, false), failure)
                    });
                    if next.is_none() {
                        self.stopping();
                    }
                    // Pending calls fail with the same reason.
                    let reason = next.as_ref().map(|(_, failure)| failure.clone());
                    session.shut_down(reason.unwrap_or_else(stopped)).await;
                    next
                }
                Err(failure) => Some((self.down(&failure, true), failure)),
            };
            let Some((next, failure)) = failure else {
                break;
            };
            let retry_in = next
                .delay
                .map(|delay| format!("{:.1}s", delay.as_secs_f64()));
            let stderr = last_stderr(&failure);
            tracing::warn!(source = %self.shared.name, cause = failure.cause.as_str(), %failure, stderr, retry_in, "source is down");
            is_down = true;
            if stopping
                .run_until_cancelled(self.wait_for_retry(next, failure.cause))
                .await
                .is_none()
            {
                break;
            }
        }
        self.stopping();
        self.tasks.close();
        if timeout(TASKS_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!(source = %self.shared.name, "tasks of the source are still running");
        }
    }

    /// Makes one attempt: process, handshake, listing, verdict.
    async fn start(&mut self) -> Result<Arc<Session>, SourceFailure> {
        let again = self.shared.status.borrow().attempts > 0;
        let _permit = self.turn(again).await;
        self.shared.update(|status| {
            status.state = State::Starting;
            status.next_attempt = None;
            status.restarts += u64::from(again);
        });
        self.spec.startup_timeout = self.shared.settings.borrow().startup_timeout;
        let opening = self.opening();
        let hint = match (self.known, self.locked.and_then(Era::from_revision)) {
            (Some(known), Some(locked)) => EraHint::changed(locked, known),
            (Some(known), None) => EraHint::known(known),
            (None, _) => EraHint::likely(self.first),
        };
        let opened = Session::open_supervised(&self.spec, hint, &opening).await;
        if let Err(failure) = &opened
            && failure.cause == SourceCause::ExitBeforeReady
            && !opening.second_try
        {
            // The process of this attempt is the only one, so the next attempt begins with the other era if the era is
            // unknown.
            self.first = self.first.other();
        }
        let session = Arc::new(opened?);
        match self.check(&session, true).await {
            Ok(()) => {
                self.known = Some(session.era());
                self.backoff.started(Instant::now());
                if std::mem::take(&mut self.is_lost) {
                    self.drift_check.restored();
                }
                Ok(session)
            }
            Err(failure) => {
                session.shut_down(failure.clone()).await;
                let noise = self.shared.counters.first_noise();
                Err(startup::explain(
                    failure,
                    &self.spec,
                    &self.shared.tail,
                    noise,
                ))
            }
        }
    }

    pub(super) fn opening(&self) -> Opening<'_> {
        Opening {
            tail: &self.shared.tail,
            counters: &self.shared.counters,
            tasks: &self.tasks,
            stop_deadline: &self.stop_deadline,
            second_try: self.backoff.is_fresh(),
        }
    }

    /// Waits for a permit to restart; a first start does not need one.
    async fn turn(&self, again: bool) -> Option<OwnedSemaphorePermit> {
        match again {
            true => self.spec.concurrency.restart().await,
            false => None,
        }
    }

    /// Lists the tools and checks the listing; the verdict sets the state. Calls continue meanwhile.
    async fn check(&self, session: &Arc<Session>, is_start: bool) -> Result<(), SourceFailure> {
        let snapshot = session.snapshot().await?;
        self.check_listing(session, snapshot, is_start).await
    }

    /// Checks a listing; the verdict sets the state.
    pub(super) async fn check_listing(
        &self,
        session: &Arc<Session>,
        snapshot: Snapshot,
        is_start: bool,
    ) -> Result<(), SourceFailure> {
        // A listing must not set the state after its process ended.
        let order = self.check_order.clone().lock_owned().await;
        let drift_check = self.drift_check.clone();
        let tracked = self.tasks.token();
        let work = move || {
            let _held = (order, tracked);
            drift_check.check(&snapshot)
        };
        let checked = self.spec.concurrency.parse_aside(work).await;
        let verdict = checked.map_err(|error| {
            let message = format!("the tool list could not be checked: {error}");
            SourceFailure::new(SourceCause::DriftSource, message)
        })?;
        let (state, failure) = match verdict {
            Verdict::Serve => (State::Ready, None),
            Verdict::WithdrawSource { message } => {
                let failure = SourceFailure::new(SourceCause::DriftSource, message);
                (State::Withdrawn, Some(failure))
            }
        };
        // The session comes first: a reader of the state finds it there.
        self.shared
            .set_live((state == State::Ready).then(|| session.clone()));
        self.shared.update(|status| {
            status.state = state;
            status.failure = failure;
            status.next_attempt = None;
            status.attempts += u64::from(is_start);
            status.verdicts += 1;
        });
        Ok(())
    }

    /// Watches a session until it is lost or replaced. Announced changes are checked one at a time and not too
    /// often; one that comes during a check is checked after it.
    async fn watch(&self, session: &Arc<Session>) -> WatchEnd {
        let mut end = session.end();
        let reopened = Notify::new();
        let failure = tokio::select! {
            biased;
            ended = end.wait_for(Option::is_some) => match ended {
                Ok(failure) => failure.clone().unwrap_or_else(gone),
                Err(_) => gone(),
            },
            failure = self.follow_changes(session, &reopened) => failure,
            failure = self.watch_for_hang(session) => failure,
            next = self.watch_for_locked_revision(session) => return WatchEnd::Replaced(next),
            never = session.keep_subscribed(&reopened) => match never {},
            never = session.follow_log_level() => match never {},
            never = self.show_pauses(session) => match never {},
        };
        WatchEnd::Lost(SourceFailure {
            retry_after: failure
                .retry_after
                .or_else(|| session.pause().and_then(Pause::rest)),
            ..failure
        })
    }

    /// Shows the end of a pause that a server over HTTP asks for as the time of the next attempt.
    async fn show_pauses(&self, session: &Session) -> Infallible {
        let Some(pause) = session.pause() else {
            return std::future::pending().await;
        };
        let mut ends = pause.subscribe();
        loop {
            ends.mark_unchanged();
            if let Some(rest) = pause.rest() {
                let end = SystemTime::now() + rest;
                self.shared.update(|status| status.next_attempt = Some(end));
                tokio::select! {
                    () = pause.ended() => {}
                    _ = ends.changed() => continue,
                }
                self.shared.update(|status| status.next_attempt = None);
            }
            // The sender is in `pause`.
            if ends.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Records a failure and when the instance is started again.
    fn down(&mut self, failure: &SourceFailure, is_start: bool) -> RetryPlan {
        let now = Instant::now();
        let paced = self.paced(failure, now);
        let next = self.backoff.ended(&paced, now, random_fraction());
        if let (Some(pace), Some(delay)) = (self.pace_of(failure), next.delay) {
            pace.postpone(now + delay);
        }
        self.shared.set_wake_from(now + next.wake_interval);
        self.shared.update(|status| {
            status.state = match next.delay {
                Some(_) => State::Backoff,
                None => State::Failed,
            };
            status.failure = Some(failure.clone());
            status.next_attempt = next.delay.map(|delay| SystemTime::now() + delay);
            status.attempts += u64::from(is_start);
        });
        next
    }

    /// Returns the failure, with the wait for the next session if the server lost the last one: a server that loses
    /// every session must not get many of them.
    fn paced(&self, failure: &SourceFailure, now: Instant) -> SourceFailure {
        let wait = self.pace_of(failure).map(|pace| pace.reserve(now));
        let wait = wait.filter(|wait| !wait.is_zero());
        SourceFailure {
            retry_after: failure.retry_after.max(wait),
            ..failure.clone()
        }
    }

    /// Returns the pace of new sessions, if a server over HTTP lost the last one.
    fn pace_of(&self, failure: &SourceFailure) -> Option<&ReopenPace> {
        match &self.spec.endpoint {
            Endpoint::Http(http) if failure.cause == SourceCause::SessionEnded => {
                Some(&http.shared.reopen_pace)
            }
            Endpoint::Http(_) | Endpoint::Process(_) | Endpoint::Unavailable(_) => None,
        }
    }

    /// Waits for the time of the next attempt, for a call that may cause it, or for another token in place of a refused
    /// one.
    async fn wait_for_retry(&self, next: RetryPlan, cause: SourceCause) {
        let asked = async {
            loop {
                self.shared.wake.notified().await;
                // A request from before the failure does not count.
                if self.shared.wake_wait().is_zero() {
                    return;
                }
            }
        };
        match next.delay {
            Some(delay) => {
                if timeout(delay, asked).await.is_ok() {
                    tracing::debug!(source = %self.shared.name, "woken by a call");
                }
            }
            None => tokio::select! {
                () = asked => {}
                () = self.another_token(cause) => {
                    tracing::debug!(source = %self.shared.name, "woken by another token");
                }
            },
        }
    }

    /// Waits for another token if the last one was refused, or was missing.
    async fn another_token(&self, cause: SourceCause) {
        match &self.spec.endpoint {
            Endpoint::Http(http) if cause == SourceCause::NeedsAuth => {
                let failures = self.backoff.failures();
                another_token(http, &self.spec, &self.opening(), failures).await;
            }
            Endpoint::Http(_) | Endpoint::Process(_) | Endpoint::Unavailable(_) => {
                std::future::pending().await
            }
        }
    }

    fn stopping(&self) {
        self.shared.update(|status| {
            status.state = State::Stopping;
            status.next_attempt = None;
        });
    }
}

/// Returns the last lines that the server wrote to stderr. They go to the log only, never to callers.
fn last_stderr(failure: &SourceFailure) -> Option<String> {
    let lines = &failure.stderr[failure.stderr.len().saturating_sub(MAX_LOGGED_LINES)..];
    let lines: Vec<_> = lines
        .iter()
        .map(|line| shown_line(line, MAX_LOGGED_CHARS))
        .collect();
    (!lines.is_empty()).then(|| lines.join(" | "))
}

/// Returns a random number between 0 and 1.
pub(super) fn random_fraction() -> f64 {
    (random_u64() >> 11) as f64 / (1u64 << 53) as f64
}

pub(super) fn gone() -> SourceFailure {
    SourceFailure::new(SourceCause::Stopped, "the connection was dropped")
}
