//! What the callers of the log and its writer share.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::clock::Clock;
use crate::facts::Actor;
use crate::queue::{Orders, Queue};
use crate::settings::Format;

/// The seconds until the disk is full below which operators are informed.
const MIN_SPACE_LEFT_S: u64 = 600;

/// The state of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditStatus {
    /// The number of the last written line.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
    /// The lines that wait.
    pub lag_lines: usize,
    /// The milliseconds that the oldest of them has waited.
    pub oldest_ms: u64,
    /// Whether calls are taken.
    pub is_available: bool,
    /// The seconds until the disk is full at the rate of the last minutes; `None` while nothing is written.
    pub space_left_s: Option<u64>,
    /// Calls and events without a line since the last `gap`.
    pub missed: u64,
}

impl AuditStatus {
    /// Whether the disk is full soon, at the rate of the last minutes.
    pub fn is_filling(&self) -> bool {
        self.space_left_s.is_some_and(is_short)
    }
}

/// Whether the disk has space for less time than an operator should have.
pub(crate) const fn is_short(space_left_s: u64) -> bool {
    space_left_s < MIN_SPACE_LEFT_S
}

/// The queue, and the signal for the writer.
#[derive(Debug)]
pub(crate) struct Shared {
    queue: Mutex<State>,
    wake: Condvar,
    hasher: RandomState,
    pub(crate) clock: Clock,
    pub(crate) format: Format,
}

/// The queue, and whether the writer sleeps.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) queue: Queue,
    pub(crate) sleep: Sleep,
}

/// What wakes the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// It is awake.
    No,
    /// An order: to close or to open the file again.
    UntilOrder,
    /// A line that a caller waits for.
    UntilUrgent,
    /// Every line.
    UntilLine,
}

impl Shared {
    pub(crate) fn new(queue: Queue, clock: Clock, format: Format) -> Self {
        let sleep = Sleep::No;
        Self {
            queue: Mutex::new(State { queue, sleep }),
            wake: Condvar::new(),
            hasher: RandomState::new(),
            clock,
            format,
        }
    }

    /// Locks the queue.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lane of a caller.
    pub(crate) fn lane(&self, actor: &Actor) -> u64 {
        let hash = || self.hasher.hash_one((&actor.kind, &actor.subject));
        actor.lane.number(hash)
    }

    /// Returns the time, on both clocks.
    pub(crate) fn now(&self) -> (SystemTime, Duration) {
        let now = self.clock.now();
        (now.wall, now.since)
    }

    /// Wakes the writer after a change of the queue, if it sleeps and the change matters to it.
    pub(crate) fn wake(&self, mut state: MutexGuard<'_, State>, is_urgent: bool) {
        let wakes = match state.sleep {
            Sleep::No => false,
            Sleep::UntilOrder => state.queue.orders != Orders::default(),
            Sleep::UntilUrgent => is_urgent || state.queue.is_urgent(),
            Sleep::UntilLine => true,
        };
        if wakes {
            state.sleep = Sleep::No;
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Lets the writer sleep until a change or the end of a time.
    pub(crate) fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        until: Sleep,
        time: Duration,
    ) -> MutexGuard<'a, State> {
        state.sleep = until;
        let (mut state, _) = self
            .wake
            .wait_timeout_while(state, time, |state| state.sleep != Sleep::No)
            .unwrap_or_else(PoisonError::into_inner);
        state.sleep = Sleep::No;
        state
    }
}
