//! The last stderr lines of a server: always drained, bounded, and redacted when read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use memchr::memchr2;
use tokio::time::Instant;

use crate::stderr_tap::StderrTap;

/// The maximum bytes of one line that are kept.
const MAX_LINE_BYTES: usize = 2 << 10;
/// The maximum bytes that are kept of one process.
const MAX_RING_BYTES: usize = 256 << 10;
/// The maximum number of lines in a failure.
const MAX_FAILURE_LINES: usize = 20;

/// A handle to the last stderr lines of a source. Cheap to clone; usable before a process exists.
#[derive(Clone)]
pub struct StderrTail(Arc<TailState>);

struct TailState {
    redactor: Redactor,
    /// The name of the server in the log, if its lines are logged.
    logged_as: Option<String>,
    bytes: AtomicU64,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    lines: VecDeque<Vec<u8>>,
    kept: usize,
    partial: Vec<u8>,
    last_activity: Option<Instant>,
    tap: Option<StderrTap>,
}

impl StderrTail {
    /// Makes an empty tail that masks the secrets of `redactor`.
    pub fn new(redactor: Redactor) -> Self {
        Self::make(redactor, None)
    }

    /// Makes an empty tail whose lines are also logged, at the level `debug`. The redactor must know all secrets of the
    /// process: a command that prints a token writes one that no redactor knows yet.
    pub fn logged(redactor: Redactor, source: &str) -> Self {
        Self::make(redactor, Some(source.to_owned()))
    }

    fn make(redactor: Redactor, logged_as: Option<String>) -> Self {
        Self(Arc::new(TailState {
            redactor,
            logged_as,
            bytes: AtomicU64::new(0),
            ring: Mutex::default(),
        }))
    }

    /// Returns the last lines, at most `max`, oldest first, redacted and printable.
    pub fn lines(&self, max: usize) -> Vec<String> {
        let ring = self.ring();
        let partial = Some(&ring.partial).filter(|line| !line.is_empty());
        let total = ring.lines.len() + usize::from(partial.is_some());
        let raw: Vec<Vec<u8>> = ring
            .lines
            .iter()
            .chain(partial)
            .skip(total.saturating_sub(max))
            .cloned()
            .collect();
        drop(ring);
        raw.iter().map(|line| self.shown(line)).collect()
    }

    /// Returns the last line.
    pub fn last_line(&self) -> Option<String> {
        self.lines(1).pop()
    }

    /// Returns the number of bytes that were read.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns the lines for a failure.
    pub fn for_failure(&self) -> Vec<String> {
        self.lines(MAX_FAILURE_LINES)
    }

    /// Returns the time of the last output.
    pub fn last_activity(&self) -> Option<Instant> {
        self.ring().last_activity
    }

    /// Forgets the lines of an earlier process.
    pub fn clear(&self) {
        *self.ring() = Ring::default();
    }

    /// Gives each further line of the process to the tap, until the lines are forgotten.
    pub fn tap(&self, tap: StderrTap) {
        self.ring().tap = Some(tap);
    }

    /// Returns the name of the server in the log, if its lines are logged.
    pub(crate) fn logged_as(&self) -> Option<&str> {
        self.0.logged_as.as_deref()
    }

    /// Returns all lines that are kept, oldest first, redacted and printable.
    pub fn kept(&self) -> Vec<String> {
        self.lines(usize::MAX)
    }

    /// Returns the first `max` of the newest `count` complete lines, redacted and printable.
    pub(crate) fn newest(&self, count: u64, max: u64) -> Vec<String> {
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let ring = self.ring();
        let before = ring.lines.len().saturating_sub(size(count));
        let lines = ring.lines.iter().skip(before).take(size(max));
        let lines: Vec<Vec<u8>> = lines.cloned().collect();
        drop(ring);
        lines.iter().map(|line| self.shown(line)).collect()
    }

    /// Returns the line without an end, if there is one.
    pub(crate) fn partial_line(&self) -> Option<String> {
        let partial = self.ring().partial.clone();
        (!partial.is_empty()).then(|| self.shown(&partial))
    }

    fn shown(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        shown_line(&self.0.redactor.redact(&text), MAX_LINE_BYTES)
    }

    /// Adds bytes that were read, and returns the number of lines that they end. A carriage return also ends a line:
    /// progress bars use it.
    pub fn push(&self, mut chunk: &[u8]) -> u64 {
        self.0
            .bytes
            .fetch_add(chunk.len() as u64, Ordering::Relaxed);
        let mut ring = self.ring();
        ring.last_activity = Some(Instant::now());
        if let Some(tap) = &mut ring.tap {
            tap.push(chunk);
        }
        let mut ended = 0;
        while let Some(at) = memchr2(b'\n', b'\r', chunk) {
            ring.extend(&chunk[..at]);
            ended += u64::from(ring.end_line());
            chunk = &chunk[at + 1..];
        }
        ring.extend(chunk);
        ended
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // After a panic at most one line is cut.
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn extend(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
        self.partial
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Ends the line, and returns whether it was one.
    fn end_line(&mut self) -> bool {
        if self.partial.is_empty() {
            return false;
        }
        let line = std::mem::take(&mut self.partial);
        self.kept += line.len();
        self.lines.push_back(line);
        while self.kept > MAX_RING_BYTES || self.lines.len() > MAX_RING_BYTES / 64 {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.kept -= oldest.len();
        }
        true
    }
}

impl fmt::Debug for StderrTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrTail")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::redact::Secret;

    #[test]
    fn stderr_tail_keeps_the_last_lines_redacted_and_printable() {
        let tail = StderrTail::new(Redactor::new([Secret::new("hunter2")]));
        tail.push(b"one\n\ntwo hunt");
        tail.push(b"er2\x1b[31m\r\n50%\r99%\rlast");
        assert_eq!(tail.lines(4), ["two ••••\\u{1b}[31m", "50%", "99%", "last"]);
        assert_eq!(tail.last_line().as_deref(), Some("last"));
    }

    #[test]
    fn stderr_tail_of_a_flood_stays_within_its_limits() {
        let tail = StderrTail::new(Redactor::default());
        for _ in 0..1000 {
            tail.push(&[b'x'; 5000]);
            tail.push(b"\n");
        }
        assert_eq!(tail.bytes(), 1000 * 5001);
        let ring = tail.ring();
        assert!(ring.kept <= MAX_RING_BYTES);
        assert!(ring.lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
    }
}
