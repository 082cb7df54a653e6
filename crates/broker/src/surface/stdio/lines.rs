//! Cuts standard input into lines of a bounded length, charged to the client while they are read. A line
//! that is too long, or for which there is no room in memory, is read past, so that its tail never counts
//! as a line of its own, and reported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use super::head::HeadScan;
use super::message::Id;
use crate::core::{Account, Charge, NoRoom, reserve};

/// A buffer that held a longer line than this is not kept for the lines after it.
const KEPT_BYTES: usize = 1 << 20;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// One line without its end, blanks and byte order mark; not empty. It is charged until its last
    /// share is dropped.
    Text(Bytes),
    /// A line over the limit, thrown away.
    TooLong,
    /// A line for which there is no room in memory, thrown away.
    NoRoom {
        /// The id of the request, if it could be read.
        id: Option<Id>,
        /// Why there is no room.
        no_room: NoRoom,
        /// The bytes of the line for which there is none.
        needed: usize,
    },
}

/// Splits bytes into lines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// Bytes at the front of `buffer` that are known to hold no newline.
    scanned: usize,
    limit: Arc<AtomicUsize>,
    account: Account,
    /// The memory charged so far for the line at the front of `buffer`.
    charge: Charge,
    dropped: Option<Dropped>,
}

/// A line that is read past.
#[derive(Debug, Default)]
struct Dropped {
    scan: HeadScan,
    /// Why, and the bytes that were needed; nothing if the line was reported already.
    unreported: Option<(NoRoom, usize)>,
}

impl Dropped {
    fn report(&mut self) -> Option<Line> {
        let (no_room, needed) = self.unreported.take()?;
        let id = self.scan.id();
        Some(Line::NoRoom {
            id,
            no_room,
            needed,
        })
    }
}

impl Lines {
    /// Lines of at most `limit` bytes, whatever that is at the moment, charged to `account`.
    pub(super) fn new(limit: Arc<AtomicUsize>, account: Account) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            account,
            charge: Charge::default(),
            dropped: None,
        }
    }

    /// Takes in what was read. [`Lines::next`] is called until it gives nothing before the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        reserve(&mut self.buffer, bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line, `None` where more bytes are needed.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.read_past() {
                return Some(line);
            }
            if self.dropped.is_some() {
                return None;
            }
            let end = memchr(b'\n', &self.buffer[self.scanned..]);
            let length = end.map_or(self.buffer.len(), |at| self.scanned + at);
            // One more than the limit may be the carriage return of a line that ends now.
            if end.is_none() && length > self.limit() + 1 {
                self.dropped = Some(Dropped::default());
                self.scanned = 0;
                return Some(Line::TooLong);
            }
            if let Err(no_room) = self.cover(length) {
                self.scanned = 0;
                self.dropped = Some(Dropped {
                    scan: HeadScan::default(),
                    unreported: Some((no_room, length)),
                });
                continue;
            }
            if end.is_none() {
                self.scanned = length;
                return None;
            }
            self.scanned = 0;
            let line = self.buffer.split_to(length + 1);
            let line = std::mem::take(&mut self.charge).hold(line);
            self.release(length);
            if let Some(line) = self.checked(line) {
                return Some(line);
            }
        }
    }

    /// The last line, where the input ended without a newline.
    pub(super) fn finish(&mut self) -> Option<Line> {
        if let Some(mut dropped) = self.dropped.take() {
            return dropped.report();
        }
        let rest = std::mem::take(&mut self.charge).hold(self.buffer.split());
        self.checked(rest)
    }

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Charges the line up to `length` bytes. A line that alone exceeds what a request may ask for is
    /// refused, whatever is free.
    fn cover(&mut self, length: usize) -> Result<(), NoRoom> {
        if length > self.account.request_limit() {
            return Err(NoRoom::Caller);
        }
        self.charge.cover(&self.account, length)
    }

    /// Reads past a line that is dropped, up to its end. Reports it as soon as its id is known, else at
    /// its end.
    fn read_past(&mut self) -> Option<Line> {
        let dropped = self.dropped.as_mut()?;
        let end = memchr(b'\n', &self.buffer);
        let length = end.unwrap_or(self.buffer.len());
        if dropped.unreported.is_some() {
            dropped.scan.feed(&self.buffer[..length]);
        }
        let report = if end.is_some() || dropped.scan.is_known() {
            dropped.report()
        } else {
            None
        };
        if end.is_some() {
            self.dropped = None;
        }
        self.buffer.advance(length + usize::from(end.is_some()));
        self.release(length);
        self.charge = Charge::default();
        report
    }

    /// Lets go of the buffer's memory after a line of `length` bytes: what is left in the buffer would
    /// hold on to the memory of the line until more is read, which may be never.
    fn release(&mut self, length: usize) {
        if length > KEPT_BYTES {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
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
    use crate::core::{MemoryBudget, Size};

    fn all(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        all_within(&MemoryBudget::new(usize::MAX), limit, chunks)
    }

    fn all_within(budget: &MemoryBudget, limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let limit = Arc::new(AtomicUsize::new(limit));
        let mut lines = Lines::new(limit, budget.whole_account());
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

    #[test]
    fn a_line_is_charged_while_it_is_read_and_until_its_last_share_is_dropped() {
        let budget = MemoryBudget::new(64 << 20);
        let limit = Arc::new(AtomicUsize::new(8 << 20));
        let mut lines = Lines::new(limit, budget.whole_account());
        let piece = vec![b'x'; 1 << 20];
        for pieces in 1..=4 {
            lines.push(&piece);
            assert_eq!(lines.next(), None);
            assert_eq!(budget.used(), pieces << 20);
        }
        lines.push(b"\nnext");
        let Some(Line::Text(line)) = lines.next() else {
            panic!("a line");
        };
        assert_eq!(lines.next(), None);
        assert!(lines.buffer.capacity() < KEPT_BYTES);
        let share = line.slice(..10);
        drop(line);
        assert_eq!(budget.used(), 4 << 20);
        drop(share);
        assert_eq!(budget.used(), 0);
        assert_eq!(lines.finish(), Some(text("next")));
    }

    #[test]
    fn a_line_without_room_is_read_past_and_its_id_is_named_once() {
        let budget = MemoryBudget::new(4 << 20);
        let _taken = budget.whole_account().charge(3 << 20, Size::Large).unwrap();
        let filler = "x".repeat(900 << 10);
        let early = format!(r#"{{"id":"a","method":"m","params":"{filler}"}}"#);
        let late = format!(r#"{{"params":"{filler}{filler}","id":2,"method":"m"}}"#);
        let input = format!("{early}\n1\n{late}\n[{late}]\n2\n{late}");
        for size in [999, 64 << 10, usize::MAX] {
            // What arrives in one piece is charged when the piece is there.
            let held = budget
                .whole_account()
                .charge(512 << 10, Size::Large)
                .unwrap();
            let chunks: Vec<_> = input.as_bytes().chunks(size.min(input.len())).collect();
            let found = all_within(&budget, 8 << 20, &chunks);
            let ids: Vec<_> = found
                .iter()
                .map(|line| match line {
                    Line::NoRoom { id, needed, .. } => {
                        assert!(*needed > 16 << 10, "{needed}");
                        id.as_ref().map_or("none".to_owned(), ToString::to_string)
                    }
                    Line::Text(text) => format!("text {}", text.len()),
                    Line::TooLong => "too long".to_owned(),
                })
                .collect();
            let expected = ["\"a\"", "text 1", "2", "none", "text 1", "2"];
            assert_eq!(ids, expected, "in pieces of {size}");
            drop((found, held));
            assert_eq!(budget.used(), 3 << 20);
        }
    }

    #[test]
    fn a_line_beyond_a_quarter_of_the_memory_is_refused_whatever_is_free() {
        let budget = MemoryBudget::new(4 << 20);
        let line = vec![b'x'; (1 << 20) + 1];
        let found = all_within(&budget, 8 << 20, &[&line, b"\n1\n"]);
        let refused = Line::NoRoom {
            id: None,
            no_room: NoRoom::Caller,
            needed: (1 << 20) + 1,
        };
        assert_eq!(found, [refused, text("1")]);
    }
}
