//! Cuts standard input into lines of a bounded length. A longer line is read past, so that its tail
//! never counts as a line of its own, and reported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// One line without its end, blanks and byte order mark; not empty.
    Text(Bytes),
    /// A line over the limit, thrown away.
    TooLong,
}

/// Splits bytes into lines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// Bytes at the front of `buffer` that are known to hold no newline.
    scanned: usize,
    limit: Arc<AtomicUsize>,
    dropping: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes, whatever that is at the moment.
    pub(super) fn new(limit: Arc<AtomicUsize>) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            dropping: false,
        }
    }

    /// Takes in what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.dropping {
            self.buffer.extend_from_slice(bytes);
        } else if let Some(end) = memchr(b'\n', bytes) {
            self.dropping = false;
            self.buffer.extend_from_slice(&bytes[end + 1..]);
        }
    }

    /// The next line, `None` where more bytes are needed.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                // One more than the limit may be the carriage return of a line that ends now.
                if self.scanned <= self.limit() + 1 {
                    return None;
                }
                self.buffer = BytesMut::new();
                self.scanned = 0;
                self.dropping = true;
                return Some(Line::TooLong);
            };
            let line = self.buffer.split_to(self.scanned + at + 1).freeze();
            self.scanned = 0;
            if let Some(line) = self.checked(line) {
                return Some(line);
            }
        }
    }

    /// The last line, where the input ended without a newline.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.checked(rest)
    }

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    fn checked(&self, line: Bytes) -> Option<Line> {
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        let text = text.trim_ascii();
        if text.is_empty() {
            None
        } else if text.len() > self.limit() {
            Some(Line::TooLong)
        } else {
            Some(Line::Text(line.slice_ref(text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::new(Arc::new(AtomicUsize::new(limit)));
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(chunk);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found.extend(lines.finish());
        found
    }

    fn text(text: &'static str) -> Line {
        Line::Text(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let input = "\u{feff}{\"a\":1}\r\n\n  \n{\"b\":2}\nlast".as_bytes();
        let expected = vec![text("{\"a\":1}"), text("{\"b\":2}"), text("last")];
        assert_eq!(all(100, &[input]), expected);
        let single: Vec<_> = input.chunks(1).collect();
        assert_eq!(all(100, &single), expected);
    }

    #[test]
    fn rpc_19_a_long_line_is_read_past_and_reported_once() {
        let long = vec![b'x'; 50];
        for size in [1, 7, 1000] {
            let input = [&b"12345678\r\n"[..], &long, b"\n1\n123456789\n2"].concat();
            let chunks: Vec<_> = input.chunks(size).collect();
            let expected = vec![
                text("12345678"),
                Line::TooLong,
                text("1"),
                Line::TooLong,
                text("2"),
            ];
            assert_eq!(all(8, &chunks), expected, "in chunks of {size}");
        }
        assert_eq!(all(8, &[&long]), [Line::TooLong]);
    }
}
