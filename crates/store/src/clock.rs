//! The clock of the store. Tests give another one.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time that jobs show. It may jump.
    pub wall: SystemTime,
    /// The time since a fixed moment: the start of the machine, if the clock has its id. It never goes back.
    pub since: Duration,
}

/// Returns the time.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Now + Send + Sync>,
    boot: Option<Arc<str>>,
}

impl Clock {
    /// Returns the clock of the system. On Linux it goes on over restarts of the broker, and counts the sleep of the machine.
    pub fn system() -> Self {
        let since = since_boot();
        let read = move || Now {
            wall: SystemTime::now(),
            since: since(),
        };
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        match boot {
            Some(boot) if IS_SINCE_BOOT => Self::with_boot(boot.trim(), read),
            _ => Self::new(read),
        }
    }

    /// Makes a clock of a function.
    pub fn new(read: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        let read = Arc::new(read);
        Self { read, boot: None }
    }

    /// Makes a clock of a function that counts from the start of the machine with this id.
    pub fn with_boot(boot: &str, read: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        Self {
            read: Arc::new(read),
            boot: Some(boot.into()),
        }
    }

    /// Returns the id of the start of the machine from which the clock counts, if it does.
    pub fn boot(&self) -> Option<&str> {
        self.boot.as_deref()
    }

    /// Reads the clock.
    pub fn now(&self) -> Now {
        (self.read)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Whether the clock of the system counts from the start of the machine.
const IS_SINCE_BOOT: bool = cfg!(target_os = "linux");

/// Returns the clock that counts from the start of the machine.
#[cfg(target_os = "linux")]
fn since_boot() -> impl Fn() -> Duration + Send + Sync + 'static {
    use rustix::time::{ClockId, clock_gettime};

    || Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// Returns a clock that counts from now.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::disallowed_methods,
    reason = "the writer is a thread of the system, where paused time does not pass"
)]
fn since_boot() -> impl Fn() -> Duration + Send + Sync + 'static {
    let begun = std::time::Instant::now();
    move || begun.elapsed()
}

/// Returns a time without the part that the store does not keep.
pub(crate) fn whole_millis_since(since: Duration) -> Duration {
    Duration::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
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
