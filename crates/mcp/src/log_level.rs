//! The level of log messages that callers of a broker asked for. Legacy servers get it.

use std::sync::Arc;

use broker_wire::LogLevel;
use tokio::sync::watch;

/// The lowest level that any caller asked for so far. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct AskedLogLevel(Arc<watch::Sender<Option<LogLevel>>>);

impl AskedLogLevel {
    /// Makes the state before the first request of a caller.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Lowers the level; never raises it.
    pub fn ask(&self, level: LogLevel) {
        self.0.send_if_modified(|asked| {
            let lower = asked.is_none_or(|asked| level < asked);
            if lower {
                *asked = Some(level);
            }
            lower
        });
    }

    /// Returns the level now; `None` before the first call of [`AskedLogLevel::ask`].
    pub(crate) fn lowest(&self) -> Option<LogLevel> {
        *self.0.borrow()
    }

    /// Returns the level, now and whenever it is lowered.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<LogLevel>> {
        self.0.subscribe()
    }
}

impl Default for AskedLogLevel {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_log_level_is_lowered_and_never_raised() {
        let asked = AskedLogLevel::new();
        let mut seen = asked.subscribe();
        assert_eq!(*seen.borrow_and_update(), None);
        asked.ask(LogLevel::Error);
        asked.clone().ask(LogLevel::Info);
        assert_eq!(*seen.borrow_and_update(), Some(LogLevel::Info));
        asked.ask(LogLevel::Emergency);
        assert!(!seen.has_changed().unwrap());
    }
}
