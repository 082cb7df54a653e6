//! The clock: the time of day for the expiry of keys and tokens, and a time that never goes back for intervals.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A clock. Tests replace it.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time of day.
    fn now(&self) -> SystemTime;

    /// Returns the time since some fixed moment.
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
