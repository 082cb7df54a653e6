//! The phases of a shutdown in one handle: core, the surfaces and the app ask it for the current phase.
//! One word holds the phase and the number of calls in flight, so that no call begins between the last
//! check of the number and the change of the phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use broker_model::RequestId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const DRAINING: usize = 1;
const CLOSING: usize = 2;
const ONE_CALL: usize = 4;

/// The maximum number of calls that [`CutCalls`] names.
const MAX_NAMED: usize = 20;

/// The phases of a shutdown; each phase includes the earlier ones:
///
/// 1. serving;
/// 2. draining: new calls are refused, calls in flight go on;
/// 3. closing: sources stop, and calls that are still in flight fail;
/// 4. finished: surfaces send their last replies and end.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<DrainState>);

#[derive(Debug, Default)]
struct DrainState {
    word: AtomicUsize,
    empty: Notify,
    draining: CancellationToken,
    finished: CancellationToken,
    /// The time of calls in flight once the broker ends, in milliseconds.
    time: AtomicU64,
    cut: Mutex<CutCalls>,
}

/// The calls that failed because the broker ended.
#[derive(Clone, Debug, Default)]
pub struct CutCalls {
    /// Path and request id of the first ones.
    pub named: Vec<(&'static str, RequestId)>,
    /// The number of all.
    pub count: usize,
}

/// A call in flight; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket<'a>(&'a DrainState);

impl Drain {
    /// Counts a call as in flight; `None` if new calls are refused.
    pub(super) fn enter(&self) -> Option<Ticket<'_>> {
        let before = self.0.word.fetch_add(ONE_CALL, Ordering::AcqRel);
        let ticket = Ticket(&self.0);
        (before & DRAINING == 0).then_some(ticket)
    }

    /// Refuses further calls.
    pub fn begin_draining(&self) {
        self.0.advance(DRAINING);
        self.0.draining.cancel();
    }

    /// Fails calls that are still in flight.
    pub(super) fn begin_closing(&self) {
        self.0.advance(DRAINING | CLOSING);
        self.0.draining.cancel();
    }

    /// Ends the surfaces after their last replies.
    pub fn finish(&self) {
        self.begin_closing();
        self.0.finished.cancel();
    }

    /// Whether new calls are refused.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.0.word.load(Ordering::Acquire) & DRAINING != 0
    }

    /// Whether calls in flight fail.
    pub fn is_closing(&self) -> bool {
        self.0.word.load(Ordering::Acquire) & CLOSING != 0
    }

    /// Returns the time that calls in flight get once the broker ends: that of the config in force.
    pub fn time(&self) -> Duration {
        Duration::from_millis(self.0.time.load(Ordering::Relaxed))
    }

    pub(super) fn set_time(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.0.time.store(time, Ordering::Relaxed);
    }

    /// Notes a call that fails because the broker ends.
    pub(super) fn note_cut(&self, path: &'static str, request_id: RequestId) {
        let mut cut = self.0.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.count += 1;
        if cut.named.len() < MAX_NAMED {
            cut.named.push((path, request_id));
        }
    }

    /// Returns the calls that failed because the broker ended, so far.
    pub fn cut_calls(&self) -> CutCalls {
        let cut = self.0.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.clone()
    }

    /// Returns a token that is cancelled once new calls are refused. To cancel it has no effect on the drain.
    pub fn draining(&self) -> CancellationToken {
        self.0.draining.child_token()
    }

    /// Returns a token that is cancelled once surfaces have to end. To cancel it has no effect on the drain.
    pub fn finished(&self) -> CancellationToken {
        self.0.finished.child_token()
    }

    /// Waits until new calls are refused and no call is in flight.
    pub async fn drained(&self) {
        loop {
            let mut wake = std::pin::pin!(self.0.empty.notified());
            // Registered before the check, so that a notification in between is not lost.
            wake.as_mut().enable();
            let word = self.0.word.load(Ordering::Acquire);
            if word < ONE_CALL && word & DRAINING != 0 {
                return;
            }
            wake.await;
        }
    }
}

impl DrainState {
    fn advance(&self, phase: usize) {
        if self.word.fetch_or(phase, Ordering::AcqRel) < ONE_CALL {
            self.empty.notify_waiters();
        }
    }
}

impl Drop for Ticket<'_> {
    #[inline]
    fn drop(&mut self) {
        let before = self.0.word.fetch_sub(ONE_CALL, Ordering::AcqRel);
        if before & DRAINING != 0 && before < 2 * ONE_CALL {
            self.0.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn drain_completes_with_the_last_call_and_admits_no_new_one() {
        let drain = Drain::default();
        let first = drain.enter().unwrap();
        let second = drain.enter().unwrap();
        drain.begin_draining();
        assert!(drain.is_draining() && !drain.is_closing());
        assert!(drain.enter().is_none());
        let waiter = tokio::spawn({
            let drain = drain.clone();
            async move { drain.drained().await }
        });
        drop(first);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drain.begin_closing();
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(second);
        tokio::time::timeout(std::time::Duration::from_secs(10), waiter)
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn drain_phase_includes_earlier_phases_and_cancels_their_tokens() {
        let drain = Drain::default();
        let (draining, finished) = (drain.draining(), drain.finished());
        drain.finished().cancel();
        assert!(!drain.is_draining() && !finished.is_cancelled());
        drain.begin_closing();
        assert!(drain.is_draining() && drain.is_closing());
        assert!(draining.is_cancelled() && !finished.is_cancelled());
        drain.finish();
        assert!(finished.is_cancelled() && drain.finished().is_cancelled());
    }
}
