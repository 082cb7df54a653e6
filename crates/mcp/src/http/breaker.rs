//! Decides whether a server whose connections fail counts as down. Pure: the time is a parameter.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The number of transport failures within [`FAILURE_WINDOW`] that marks the source as down.
const MAX_FAILURES: usize = 5;
/// The period of counted failures.
const FAILURE_WINDOW: Duration = Duration::from_secs(30);

/// The recent transport failures of one link. Answers of the server never count, whatever they say.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<VecDeque<Instant>>);

impl Breaker {
    /// Records that the transport failed; true if that makes too many failures.
    pub(super) fn failed(&self, now: Instant) -> bool {
        // Whole values are written, so a panic elsewhere leaves a usable state.
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while failures
            .front()
            .is_some_and(|at| now.duration_since(*at) > FAILURE_WINDOW)
        {
            failures.pop_front();
        }
        failures.push_back(now);
        failures.len() >= MAX_FAILURES
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
}
