//! The time of day.

use std::fmt;
use std::time::SystemTime;

/// A source of the time of day. It dates withdrawals and ends the streams of a credential that expires. Timeouts of
/// calls do not depend on it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the present time.
    fn now(&self) -> SystemTime;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
