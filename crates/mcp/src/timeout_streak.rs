//! Timeouts of calls in a row without a byte of the server, after which a server is asked whether it hangs. Pure: the time
//! is a parameter.

use std::time::Duration;

use broker_memory::Owner;
use tokio::time::Instant;

/// The number of timeouts in a row after which a server may hang.
const MIN_TIMEOUTS: u32 = 3;
/// The time after the first timeout from which timeouts of one caller alone count: its calls may be slow.
const ONE_CALLER_TIME: Duration = Duration::from_secs(300);

/// The timeouts in a row of one session.
#[derive(Debug, Default)]
pub(crate) struct TimeoutStreak(Option<Streak>);

#[derive(Clone, Copy, Debug)]
struct Streak {
    /// The reads of the session at the first timeout.
    reads: u64,
    first: Instant,
    count: u32,
    owner: Owner,
    /// Whether a call of another caller timed out as well.
    has_other: bool,
}

/// The first of the timeouts after which a server may hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspicion {
    /// Its time.
    pub(crate) first: Instant,
    /// When they suffice to ask the server.
    pub(crate) due: Instant,
    /// The reads of the session at that time. The server is silent as long as the number is the same.
    pub(crate) reads: u64,
}

impl TimeoutStreak {
    /// Records that a call of `owner` timed out. `reads` is the number of reads until now; a read begins a new row.
    pub(crate) fn timed_out(&mut self, reads: u64, owner: Owner, now: Instant) {
        let streak = self.0.filter(|streak| streak.reads == reads);
        let streak = streak.unwrap_or(Streak {
            reads,
            first: now,
            count: 0,
            owner,
            has_other: false,
        });
        self.0 = Some(Streak {
            count: streak.count.saturating_add(1),
            has_other: streak.has_other || !streak.owner.is_like(owner),
            ..streak
        });
    }

    /// Returns the suspicion that the server hangs, if there were enough timeouts since the last read.
    pub(crate) fn suspicion(&self, reads: u64) -> Option<Suspicion> {
        let streak = self.0.filter(|streak| streak.reads == reads)?;
        let wait = match streak.has_other {
            true => Duration::ZERO,
            false => ONE_CALLER_TIME,
        };
        (streak.count >= MIN_TIMEOUTS).then(|| Suspicion {
            first: streak.first,
            due: streak.first + wait,
            reads,
        })
    }

    /// Forgets the timeouts of a suspicion: the server is alive.
    pub(crate) fn forget(&mut self, suspicion: &Suspicion) {
        self.0 = self.0.filter(|streak| streak.reads != suspicion.reads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_memory::MemoryBudget;

    /// Returns the owners of two callers.
    fn owners() -> (Owner, Owner) {
        let budget = MemoryBudget::new(1 << 20);
        (budget.account().owner(), budget.account().owner())
    }

    #[test]
    fn three_timeouts_of_two_callers_suffice_at_once() {
        let ((one, other), now) = (owners(), Instant::now());
        let mut streak = TimeoutStreak::default();
        streak.timed_out(7, one, now);
        streak.timed_out(7, other, now);
        assert_eq!(streak.suspicion(7), None, "two are few");
        let later = now + Duration::from_secs(9);
        streak.timed_out(7, one, later);
        let suspicion = streak.suspicion(7).expect("three, of two callers");
        assert_eq!((suspicion.first, suspicion.due), (now, now));
    }

    #[test]
    fn timeouts_of_one_caller_suffice_after_five_minutes() {
        let ((one, _), now) = (owners(), Instant::now());
        let mut streak = TimeoutStreak::default();
        for _ in 0..1000 {
            streak.timed_out(7, one, now);
        }
        let suspicion = streak.suspicion(7).expect("it is known");
        assert_eq!(suspicion.due, now + Duration::from_secs(300));
    }

    #[test]
    fn byte_of_the_server_begins_a_new_row() {
        let ((one, other), now) = (owners(), Instant::now());
        let mut streak = TimeoutStreak::default();
        for owner in [one, other, one] {
            streak.timed_out(7, owner, now);
        }
        assert_eq!(streak.suspicion(8), None, "a byte came since");
        streak.timed_out(8, one, now);
        assert_eq!(streak.suspicion(8), None, "the first of a new row");
        streak.timed_out(8, other, now);
        streak.timed_out(8, one, now);
        let suspicion = streak.suspicion(8).expect("a new row");
        streak.forget(&suspicion);
        assert_eq!(streak.suspicion(8), None);
    }
}
