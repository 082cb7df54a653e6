//! Listings of a running process: after announcements, and periodically without one. Calls are refused when an
//! announced change is not listed in time; one failed periodic listing has no effect.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use broker_model::{Snapshot, SourceCause};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::listing_pace::ListingPace;
use super::supervisor::{Supervisor, gone, random_fraction};
use crate::failure::SourceFailure;
use crate::session::Session;
use crate::startup;
use crate::status::State;

/// The interval of checks whether the last call of a busy process has ended.
pub(super) const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum relative deviation of the time between two polls, in either direction.
const POLL_JITTER: f64 = 0.2;
/// An idle process is ended after this number of consecutive unanswered polls.
const MAX_MISSED_POLLS: u32 = 3;

/// The outcome of a poll.
enum Poll {
    Listed(Box<Snapshot>),
    /// No listing from an idle process.
    Missed,
    /// No listing arrived while calls were in flight. This does not count.
    Busy,
    /// A listing is due: a change was announced meanwhile, or the listing cannot be read.
    Due,
}

impl Supervisor {
    /// Lists the tools again whenever the server announces a change, and periodically in between.
    /// Returns when the process does not answer, since tools must be checked before they are served. What a list
    /// contains never ends the process.
    pub(super) async fn follow_changes(
        &self,
        session: &Arc<Session>,
        reopened: &Notify,
    ) -> SourceFailure {
        let mut changes = session.list_changes();
        let mut pace = ListingPace::new(self.spec.timing);
        let mut missed = 0;
        let mut asked = Instant::now();
        // Set while the latest list cannot be read.
        let mut again: Option<Instant> = None;
        loop {
            let is_due = tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return gone(),
                },
                () = reopened.notified() => true,
                () = due_again(again) => true,
                () = self.poll_time(session, asked) => false,
            };
            let poll = match is_due {
                true => Poll::Due,
                false => self.poll(session, &mut changes).await,
            };
            let failure = match poll {
                Poll::Listed(snapshot) => {
                    (missed, again) = (0, None);
                    self.check_listing(session, *snapshot, false).await.err()
                }
                Poll::Busy => None,
                Poll::Missed => {
                    missed += 1;
                    (missed >= MAX_MISSED_POLLS).then(unanswered)
                }
                Poll::Due => {
                    sleep_until(pace.announced(Instant::now())).await;
                    session.pause_ended().await;
                    changes.mark_unchanged();
                    let failure = self.recheck(session).await.err();
                    pace.listed(Instant::now());
                    (missed, again) = (0, None);
                    match failure {
                        Some(failure) if failure.cause == SourceCause::ListInvalid => {
                            again = Some(Instant::now() + self.spec.timing.storm_interval);
                            self.withhold(failure);
                            None
                        }
                        failure => failure,
                    }
                }
            };
            if let Some(failure) = failure {
                return failure;
            }
            asked = Instant::now();
        }
    }

    /// Requests the listing that an announcement made due. Calls are served for the time that a listing
    /// may take; after that, new calls are refused until the listing arrives. The process is ended if
    /// the listing does not arrive within the startup timeout while no call is in flight.
    async fn recheck(&self, session: &Arc<Session>) -> Result<(), SourceFailure> {
        let mut listed = pin!(self.list(session));
        let within = self.spec.timing.recheck_timeout;
        if let Ok(listed) = timeout(within, &mut listed).await {
            return self.check_listing(session, listed?, false).await;
        }
        self.hold_calls(within);
        let snapshot = tokio::select! {
            biased;
            listed = listed => listed?,
            failure = self.withheld(session) => return Err(failure),
        };
        tracing::info!(source = %self.shared.name, "the announced tool list has arrived");
        self.check_listing(session, snapshot, false).await
    }

    /// Lists the tools, and tries once more if that failed. If the server did not answer, the second
    /// try waits until it is idle, since a listing of several pages may fail because of calls between
    /// the pages.
    async fn list(&self, session: &Session) -> Result<Snapshot, SourceFailure> {
        let failure = match session.relist().await {
            Ok(snapshot) => return Ok(snapshot),
            Err(failure) => failure,
        };
        tracing::info!(source = %self.shared.name, %failure, "listing the tools failed; trying once more");
        sleep(self.spec.timing.second_list).await;
        session.pause_ended().await;
        if failure.cause == SourceCause::ListFailed {
            idle(session).await;
        }
        session.relist().await
    }

    /// Refuses new calls while the list cannot be read, since a comparison is impossible; calls in flight continue. The
    /// process keeps running: another one would send the same list.
    fn withhold(&self, failure: SourceFailure) {
        tracing::warn!(source = %self.shared.name, %failure, "new calls are refused: the tool list cannot be read");
        self.shared.set_live(None);
        self.shared.update(|status| {
            status.state = State::Withdrawn;
            status.failure = Some(failure);
        });
    }

    /// Refuses new calls; calls in flight continue. A withdrawn instance stays withdrawn.
    fn hold_calls(&self, after: Duration) {
        if self.shared.status.borrow().state != State::Ready {
            return;
        }
        let message = format!(
            "the server announced that its tools changed and has not listed them within {} s",
            after.as_secs_f64()
        );
        tracing::warn!(source = %self.shared.name, reason = message, "new calls are refused until the announced tool list has arrived");
        let failure = SourceFailure::new(SourceCause::RecheckPending, message);
        self.shared.set_live(None);
        self.shared.update(|status| {
            status.state = State::Starting;
            status.failure = Some(failure);
        });
    }

    /// Returns when a process without calls has not listed its tools within the startup timeout.
    async fn withheld(&self, session: &Session) -> SourceFailure {
        idle(session).await;
        let time = self.shared.settings.borrow().startup_timeout;
        let failure = startup::expired(Instant::now(), time, &self.shared.tail).await;
        SourceFailure {
            cause: SourceCause::ListFailed,
            message: "the server announced that its tools changed and did not list them".to_owned(),
            ..failure
        }
    }

    /// Returns when a poll is due. A poll is never due while calls are in flight: many servers do not answer while they
    /// work.
    async fn poll_time(&self, session: &Session, asked: Instant) {
        let mut settings = self.shared.settings.subscribe();
        loop {
            let interval = settings.borrow_and_update().relist_interval;
            let due = async {
                match interval {
                    Some(interval) => {
                        let strayed = 1.0 - POLL_JITTER + 2.0 * POLL_JITTER * random_fraction();
                        sleep_until(asked + interval.mul_f64(strayed)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => break,
                // The sender is dropped only with the instance.
                _ = settings.changed() => {}
            }
        }
        idle(session).await;
        session.pause_ended().await;
    }

    /// Lists without an announcement. Only a listing changes the state; any other outcome does not.
    async fn poll(&self, session: &Session, changes: &mut watch::Receiver<u64>) -> Poll {
        let begun = session.calls_begun();
        let listed = tokio::select! {
            biased;
            listed = timeout(self.spec.timing.recheck_timeout, session.relist()) => listed,
            _ = changes.changed() => return Poll::Due,
        };
        match listed {
            Ok(Ok(snapshot)) => Poll::Listed(Box::new(snapshot)),
            Ok(Err(failure)) if failure.cause == SourceCause::ListInvalid => Poll::Due,
            Ok(Err(_)) | Err(_) => {
                let was_idle = session.load() == 0 && session.calls_begun() == begun;
                match was_idle {
                    true => Poll::Missed,
                    false => Poll::Busy,
                }
            }
        }
    }
}

/// Returns at a time, if there is one.
async fn due_again(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Returns when the process has no call in flight.
async fn idle(session: &Session) {
    while session.load() > 0 {
        sleep(IDLE_CHECK_INTERVAL).await;
    }
}

fn unanswered() -> SourceFailure {
    let message =
        format!("the server was idle and did not list its tools {MAX_MISSED_POLLS} times in a row");
    SourceFailure::new(SourceCause::ListFailed, message)
}
