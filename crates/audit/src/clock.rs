//! The clock of the log. Tests give another one.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// A moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time of lines.
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
