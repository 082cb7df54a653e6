//! Gives the lines that a process writes to stderr to a receiver, within bounds.

use std::fmt;
use std::time::Duration;

use memchr::memchr2;
use tokio::time::Instant;

/// The maximum bytes of one line; the rest of a longer one is left out.
const MAX_LINE_BYTES: usize = 4 << 10;
/// The maximum number of lines in a second; further ones are dropped.
const MAX_LINES_PER_SECOND: u32 = 50;
/// The time whose lines are counted.
const COUNTED_TIME: Duration = Duration::from_secs(1);

/// A line that a process wrote to stderr, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TappedLine {
    /// The line, at most 4 KiB, without its end.
    pub line: Vec<u8>,
    /// The number of lines before it that were dropped.
    pub dropped: u64,
}

/// Takes lines of stderr.
pub struct StderrTap {
    send: Box<dyn Fn(TappedLine) + Send>,
    partial: Vec<u8>,
    /// The begin of the second that is counted, and the lines in it.
    second: Instant,
    lines: u32,
    dropped: u64,
}

impl StderrTap {
    /// Makes a tap that gives lines to `send`. It must not block.
    pub fn new(send: impl Fn(TappedLine) + Send + 'static) -> Self {
        Self {
            send: Box::new(send),
            partial: Vec::new(),
            second: Instant::now(),
            lines: 0,
            dropped: 0,
        }
    }

    /// Takes bytes that were read.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        while let Some(at) = memchr2(b'\n', b'\r', chunk) {
            self.extend(&chunk[..at]);
            self.end_line();
            chunk = &chunk[at + 1..];
        }
        self.extend(chunk);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
        self.partial
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        if self.partial.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.partial);
        let now = Instant::now();
        if now.duration_since(self.second) >= COUNTED_TIME {
            (self.second, self.lines) = (now, 0);
        }
        if self.lines >= MAX_LINES_PER_SECOND {
            self.dropped += 1;
            return;
        }
        self.lines += 1;
        let dropped = std::mem::take(&mut self.dropped);
        (self.send)(TappedLine { line, dropped });
    }
}

impl fmt::Debug for StderrTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrTap").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tap_gives_lines_within_bounds_and_counts_the_others() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&taken);
        let mut tap = StderrTap::new(move |line| sink.lock().unwrap().push(line));
        tap.push(b"one\r\ntw");
        tap.push(b"o\n\n");
        tap.push(&[b'x'; 3 * MAX_LINE_BYTES]);
        tap.push(b"\n");
        for _ in 0..100 {
            tap.push(b"more\n");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        tap.push(b"late\n");
        let taken = taken.lock().unwrap();
        let text = |at: usize| String::from_utf8(taken[at].line.clone()).unwrap();
        assert_eq!((text(0), text(1)), ("one".to_owned(), "two".to_owned()));
        assert_eq!(text(2).len(), MAX_LINE_BYTES);
        assert_eq!(taken.len(), 51);
        assert_eq!((text(50), taken[50].dropped), ("late".to_owned(), 53));
    }
}
