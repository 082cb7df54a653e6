//! The clock of the store. Tests give another one.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time that jobs show. It may jump.
    pub wall: SystemTime,
    /// The time since the clock was made. It never goes back.
    pub since: Duration,
}

/// Returns the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Now + Send + Sync>);

impl Clock {
    /// Returns the clock of the system.
    #[expect(
        clippy::disallowed_methods,
        reason = "the writer is a thread of the system, where paused time does not pass"
    )]
    pub fn system() -> Self {
        let begun = Instant::now();
        Self::new(move || Now {
            wall: SystemTime::now(),
            since: begun.elapsed(),
        })
    }

    /// Makes a clock of a function.
    pub fn new(read: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Reads the clock.
    pub fn now(&self) -> Now {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Returns a time as the store keeps it: whole milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of stored milliseconds.
pub(crate) fn from_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(millis))
        .unwrap_or(UNIX_EPOCH)
}

/// Returns a time without the part that the store does not keep.
pub(crate) fn whole_millis(time: SystemTime) -> SystemTime {
    from_millis(millis(time))
}
