//! Lines of a server's stderr in the log of the broker, at the level `debug`. A server that writes without a pause costs a
//! bounded number of log lines.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{Level, enabled};

use crate::StderrTail;

/// The maximum number of lines that are logged at once.
const MAX_BURST: u64 = 100;
/// The time after which another line may be logged.
const LINE_INTERVAL: Duration = Duration::from_millis(100);

/// Logs the stderr lines of one process.
#[derive(Debug)]
pub(crate) struct StderrLog {
    source: String,
    /// The lines that may be logged now.
    room: u64,
    /// The time up to which the room was counted.
    counted: Instant,
    skipped: u64,
}

impl StderrLog {
    /// Makes the log of a process of this source.
    pub(crate) fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            room: MAX_BURST,
            counted: Instant::now(),
            skipped: 0,
        }
    }

    /// Logs the newest complete lines of `tail`, if the level is logged.
    pub(crate) fn log(&mut self, tail: &StderrTail, lines: u64) {
        if lines == 0 || !enabled!(Level::DEBUG) {
            return;
        }
        let allowed = self.take(lines, Instant::now());
        if allowed > 0 {
            self.report_skipped();
            for line in tail.newest(lines, allowed) {
                tracing::debug!(source = %self.source, line, "stderr");
            }
        }
        self.skipped += lines - allowed;
    }

    /// Logs the rest at the end of the process: a line without an end, and the number of lines that were not logged.
    pub(crate) fn finish(&mut self, tail: &StderrTail) {
        if !enabled!(Level::DEBUG) {
            return;
        }
        self.report_skipped();
        if let Some(line) = tail.partial_line() {
            tracing::debug!(source = %self.source, line, "stderr");
        }
    }

    /// Returns how many of these lines may be logged at this time.
    fn take(&mut self, lines: u64, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.counted).as_millis();
        let more = u64::try_from(passed / LINE_INTERVAL.as_millis()).unwrap_or(MAX_BURST);
        if more > 0 {
            self.counted = now;
            self.room = self.room.saturating_add(more).min(MAX_BURST);
        }
        let allowed = lines.min(self.room);
        self.room -= allowed;
        allowed
    }

    fn report_skipped(&mut self) {
        let lines = std::mem::take(&mut self.skipped);
        if lines > 0 {
            tracing::debug!(source = %self.source, lines, "stderr lines were not logged");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_log_of_a_flood_has_a_burst_and_then_lines_by_time() {
        let mut log = StderrLog::new("/a");
        let begin = log.counted;
        assert_eq!(log.take(3, begin), 3);
        assert_eq!(log.take(1_000_000, begin), MAX_BURST - 3);
        assert_eq!(log.take(5, begin), 0);
        assert_eq!(log.take(5, begin + 2 * LINE_INTERVAL), 2);
        assert_eq!(
            log.take(1_000, begin + Duration::from_secs(3600)),
            MAX_BURST
        );
    }
}
