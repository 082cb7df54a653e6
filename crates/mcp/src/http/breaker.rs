//! Decides whether a server whose connections fail counts as down, and sends one call alone after it was. The time is a
//! parameter, except for the wait of other calls.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout};

/// The number of transport failures within [`FAILURE_WINDOW`] that marks the source as down.
const MAX_FAILURES: usize = 5;
/// The period of counted failures.
const FAILURE_WINDOW: Duration = Duration::from_secs(30);
/// Maximum time that calls wait for the trial call: it may be slow.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a source was down because its transport failed, and no call was answered since. All links of a source share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HalfOpen(Arc<AtomicBool>);

impl HalfOpen {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, is_half_open: bool) {
        self.0.store(is_half_open, Ordering::Relaxed);
    }
}

/// The recent transport failures of one link. Answers of the server never count, whatever they say.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: Mutex<VecDeque<Instant>>,
    half_open: HalfOpen,
    trial: tokio::sync::Mutex<()>,
}

impl Breaker {
    pub(super) fn new(half_open: HalfOpen) -> Self {
        Self {
            half_open,
            ..Self::default()
        }
    }

    /// Records that the transport failed; true if that makes too many failures. One is too many while no call was answered
    /// since the source was down.
    pub(super) fn failed(&self, now: Instant) -> bool {
        // Whole values are written, so a panic elsewhere leaves a usable state.
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        while failures
            .front()
            .is_some_and(|at| now.duration_since(*at) > FAILURE_WINDOW)
        {
            failures.pop_front();
        }
        failures.push_back(now);
        let is_down = failures.len() >= MAX_FAILURES || self.half_open.is_set();
        if is_down {
            self.half_open.set(true);
        }
        is_down
    }

    /// Waits until the call may be sent. After the source was down, one call is sent alone until it is answered; it holds
    /// the returned guard.
    pub(super) async fn trial(&self) -> Option<MutexGuard<'_, ()>> {
        if !self.half_open.is_set() {
            return None;
        }
        let trial = timeout(TRIAL_TIMEOUT, self.trial.lock()).await.ok();
        trial.filter(|_| self.half_open.is_set())
    }

    /// Records that a call was answered.
    pub(super) fn answered(&self) {
        if self.half_open.is_set() {
            self.half_open.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaker_counts_failures_of_the_last_thirty_seconds() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!((0..4).all(|second| !breaker.failed(at(second))));
        assert!(!breaker.failed(at(31)), "the first has expired");
        assert!(
            !breaker.failed(at(33)),
            "the second and the third have expired"
        );
        assert!(!breaker.failed(at(34)));
        assert!(!breaker.failed(at(34)));
        assert!(breaker.failed(at(34)));
    }

    #[test]
    fn breaker_opens_again_at_the_first_failure_until_a_call_is_answered() {
        let (half_open, now) = (HalfOpen::default(), Instant::now());
        let breaker = Breaker::new(half_open.clone());
        assert_eq!((0..5).filter(|_| breaker.failed(now)).count(), 1);
        let next = Breaker::new(half_open.clone());
        assert!(next.failed(now), "the first one of the next link");
        let next = Breaker::new(half_open);
        next.answered();
        assert!(!next.failed(now));
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_is_sent_alone_after_the_source_was_down() {
        let breaker = Breaker::new(HalfOpen(Arc::new(AtomicBool::new(true))));
        let trial = breaker.trial().await;
        assert!(trial.is_some(), "the trial call");
        let other = async {
            let began = Instant::now();
            (breaker.trial().await.is_some(), began.elapsed())
        };
        let answer = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            breaker.answered();
            drop(trial);
        };
        let ((is_trial, waited), ()) = tokio::join!(other, answer);
        assert_eq!((is_trial, waited), (false, Duration::from_secs(1)));
        assert!(breaker.trial().await.is_none());
    }
}
