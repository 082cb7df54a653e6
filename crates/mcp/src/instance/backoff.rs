//! The restart policy of a source. Pure: the time and the random number are parameters.

use std::time::Duration;

use broker_model::SourceCause;
use tokio::time::Instant;

use crate::failure::SourceFailure;
use crate::spec::Timing;

/// The minimum uptime of a healthy source.
const HEALTHY_UPTIME: Duration = Duration::from_secs(30);
/// The minimum time between two such attempts after a cause that does not go away by itself.
const FAILED_WAKE_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum relative deviation of a delay, in either direction.
const JITTER: f64 = 0.2;

/// When a source is started again after it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RetryPlan {
    /// The delay; `None` to wait for a call.
    pub(super) delay: Option<Duration>,
    /// Calls do not cause an attempt within this time.
    pub(super) wake_interval: Duration,
}

/// Counts failures in a row.
#[derive(Debug)]
pub(super) struct Backoff {
    timing: Timing,
    failures: u32,
    up_since: Option<Instant>,
}

impl Backoff {
    pub(super) fn new(timing: Timing) -> Self {
        Self {
            timing,
            failures: 0,
            up_since: None,
        }
    }

    /// Whether the source has not failed since it was last healthy.
    pub(super) fn is_fresh(&self) -> bool {
        self.failures == 0
    }

    /// Returns the number of its failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Records that the source is up.
    pub(super) fn started(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// Records a failed start, or the loss of a source that was up. `random_fraction` is between 0 and 1.
    pub(super) fn ended(
        &mut self,
        failure: &SourceFailure,
        now: Instant,
        random_fraction: f64,
    ) -> RetryPlan {
        let cause = failure.cause;
        let up = self.up_since.take().map(|since| now - since);
        if up.is_some_and(|up| up >= HEALTHY_UPTIME) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        if !heals(cause) {
            return RetryPlan {
                delay: None,
                wake_interval: FAILED_WAKE_INTERVAL.max(self.timing.wake_interval),
            };
        }
        let doublings = (self.failures - 1).min(16);
        let nominal = self.timing.backoff.saturating_mul(1 << doublings);
        let own = nominal
            .min(self.timing.backoff_cap)
            .mul_f64(1.0 - JITTER + 2.0 * JITTER * random_fraction);
        // A server that ended a session of use is ready for the next one.
        let is_next_session = cause == SourceCause::SessionEnded && self.failures == 1;
        let own = if is_next_session { Duration::ZERO } else { own };
        let delay = own.max(failure.retry_after.unwrap_or_default());
        // Calls may start the source at once if it was up for longer than the delay.
        let wake_interval = if failure.retry_after.is_some() {
            delay
        } else if up.is_some_and(|up| up >= delay) {
            Duration::ZERO
        } else {
            delay.min(self.timing.wake_interval)
        };
        RetryPlan {
            delay: Some(delay),
            wake_interval,
        }
    }
}

/// Whether another attempt can succeed without a change by the operator.
fn heals(cause: SourceCause) -> bool {
    match cause {
        SourceCause::SpawnNotFound
        | SourceCause::SpawnDenied
        | SourceCause::SpawnFormat
        | SourceCause::NeedsAuth
        | SourceCause::ProxyInvalid
        | SourceCause::EnvMissing
        | SourceCause::LockStale => false,
        SourceCause::SpawnFailed
        | SourceCause::ExitBeforeReady
        | SourceCause::StartupTimeout
        | SourceCause::HandshakeFailed
        | SourceCause::ListFailed
        | SourceCause::ListInvalid
        | SourceCause::Unreachable
        | SourceCause::TlsFailed
        | SourceCause::SessionEnded
        | SourceCause::Exited
        | SourceCause::Protocol
        | SourceCause::StdinStalled
        | SourceCause::Hung
        | SourceCause::RecheckPending
        | SourceCause::DriftSource
        | SourceCause::Stopped => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CRASH: SourceCause = SourceCause::ExitBeforeReady;

    fn failed(cause: SourceCause) -> SourceFailure {
        SourceFailure::new(cause, "it ended")
    }

    /// Returns every cause that delays the next start of a source.
    fn causes() -> Vec<SourceCause> {
        let all = SourceCause::ALL.iter().copied();
        all.filter(|cause| *cause != SourceCause::SessionEnded)
            .collect()
    }

    #[test]
    fn backoff_after_the_end_of_a_session_opens_the_next_one_at_once() {
        let mut backoff = Backoff::new(Timing::for_http());
        let (now, ended) = (Instant::now(), failed(SourceCause::SessionEnded));
        backoff.started(now);
        let next = backoff.ended(&ended, now, 0.5);
        assert_eq!(
            (next.delay, next.wake_interval),
            (Some(Duration::ZERO), Duration::ZERO)
        );
        backoff.started(now);
        let next = backoff.ended(&ended, now, 0.5);
        assert_eq!(
            seconds(next),
            2,
            "a server that ends every session is not asked at once"
        );
        backoff.started(now);
        let next = backoff.ended(&ended, now + HEALTHY_UPTIME, 0.5);
        assert_eq!(next.delay, Some(Duration::ZERO));
    }

    #[test]
    fn backoff_waits_at_least_as_long_as_a_server_asked_for() {
        let mut backoff = Backoff::new(Timing::for_http());
        let busy = SourceFailure {
            retry_after: Some(Duration::from_secs(90)),
            ..failed(SourceCause::Unreachable)
        };
        let next = backoff.ended(&busy, Instant::now(), 0.5);
        assert_eq!((seconds(next), next.wake_interval.as_secs()), (90, 90));
    }

    #[test]
    fn backoff_of_a_server_over_http_allows_at_most_sixty_attempts_an_hour() {
        let mut backoff = Backoff::new(Timing::for_http());
        let (now, down) = (Instant::now(), failed(SourceCause::Unreachable));
        let (mut at, mut starts) = (Duration::ZERO, 0);
        while at <= Duration::from_secs(3600) {
            starts += 1;
            // A call comes as soon as one may cause an attempt.
            at += backoff.ended(&down, now, 0.0).wake_interval;
        }
        assert!(starts <= 66, "{starts}");
    }

    fn seconds(next: RetryPlan) -> u64 {
        next.delay.unwrap().as_secs()
    }

    #[test]
    fn backoff_delay_doubles_up_to_its_maximum() {
        let mut backoff = Backoff::new(Timing::default());
        let now = Instant::now();
        let delays: Vec<_> = (0..9)
            .map(|_| seconds(backoff.ended(&failed(CRASH), now, 0.5)))
            .collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn backoff_allows_at_most_twelve_starts_in_five_minutes() {
        let mut backoff = Backoff::new(Timing::default());
        let now = Instant::now();
        let mut at = Duration::ZERO;
        let mut starts = 0;
        while at <= Duration::from_secs(300) {
            starts += 1;
            at += backoff.ended(&failed(CRASH), now, 0.0).delay.unwrap();
        }
        assert!(starts <= 12, "{starts}");
    }

    #[test]
    fn backoff_of_a_healthy_source_starts_again_at_the_first_delay() {
        let mut backoff = Backoff::new(Timing::default());
        let now = Instant::now();
        for _ in 0..5 {
            backoff.ended(&failed(CRASH), now, 0.5);
        }
        assert!(!backoff.is_fresh());
        backoff.started(now);
        let next = backoff.ended(&failed(SourceCause::Exited), now + HEALTHY_UPTIME, 0.5);
        assert_eq!((seconds(next), next.wake_interval), (1, Duration::ZERO));
    }

    #[test]
    fn backoff_of_a_source_that_dies_at_once_keeps_growing() {
        let mut backoff = Backoff::new(Timing::default());
        let now = Instant::now();
        backoff.started(now);
        assert_eq!(
            seconds(backoff.ended(&failed(SourceCause::Exited), now, 0.5)),
            1
        );
        backoff.started(now);
        let next = backoff.ended(&failed(SourceCause::Exited), now, 0.5);
        assert_eq!((seconds(next), next.wake_interval.as_secs()), (2, 2));
    }

    #[test]
    fn backoff_after_a_permanent_failure_waits_for_a_call() {
        for cause in causes() {
            let next = Backoff::new(Timing::default()).ended(&failed(cause), Instant::now(), 0.5);
            assert_eq!(next.delay.is_none(), !heals(cause), "{cause}");
            assert!(next.wake_interval > Duration::ZERO);
        }
    }

    proptest! {
        #[test]
        fn backoff_keeps_its_limits_in_any_history(
            history in prop::collection::vec(
                (prop::option::of(0u64..120), prop::sample::select(causes()), 0.0f64..=1.0, 0u64..200),
                1..80,
            )
        ) {
            let mut backoff = Backoff::new(Timing::default());
            let (mut now, mut failures) = (Instant::now(), 0u32);
            for (up, cause, random_fraction, rest) in history {
                // Some end before they are up.
                if let Some(up) = up {
                    backoff.started(now);
                    now += Duration::from_secs(up);
                }
                let up = up.map(Duration::from_secs);
                if up >= Some(HEALTHY_UPTIME) {
                    failures = 0;
                }
                failures += 1;
                let next = backoff.ended(&failed(cause), now, random_fraction);
                prop_assert!(!backoff.is_fresh());
                prop_assert_eq!(next.delay.is_some(), heals(cause));
                if let Some(delay) = next.delay {
                    let nominal = (1 << (failures - 1).min(6)).min(60) as f64;
                    let strayed = delay.as_secs_f64() / nominal;
                    prop_assert!((0.799..=1.201).contains(&strayed), "{delay:?} for {nominal}");
                    let came_up = up.is_some_and(|up| up >= delay);
                    let gap = if came_up { Duration::ZERO } else { delay.min(Timing::default().wake_interval) };
                    prop_assert_eq!(next.wake_interval, gap);
                } else {
                    prop_assert_eq!(next.wake_interval, FAILED_WAKE_INTERVAL);
                }
                now += Duration::from_secs(rest);
            }
        }

        #[test]
        fn backoff_delay_stays_within_its_bounds(
            ups in prop::collection::vec((0u64..120, 0.0f64..=1.0), 1..80)
        ) {
            let mut backoff = Backoff::new(Timing::default());
            let mut now = Instant::now();
            for (up, random_fraction) in ups {
                backoff.started(now);
                now += Duration::from_secs(up);
                let next = backoff.ended(&failed(SourceCause::Exited), now, random_fraction);
                let delay = next.delay.unwrap();
                prop_assert!(delay >= Duration::from_millis(800));
                prop_assert!(delay <= Duration::from_secs(72));
                prop_assert!(next.wake_interval <= delay);
            }
        }
    }
}
