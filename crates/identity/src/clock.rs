//! The clock: the time of day, by which keys and tokens expire, and a time that never goes back, by which intervals
//! are measured.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A clock, which tests replace.
pub trait Clock: Send + Sync + 'static {
    /// The time of day.
    fn now(&self) -> SystemTime;

    /// The time since some fixed moment.
    fn elapsed(&self) -> Duration;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    begin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        let begin = Instant::now();
        Self { begin }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }
}
