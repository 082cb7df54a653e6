//! Cuts a server's stdout into lines, without copying them and without trusting their length.
//! Knows nothing of JSON but strings and brackets.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::buffer::reserve;
use crate::memory::{Account, Charge};
use crate::scan::HeadScan;

/// The least room that a read is given.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// A buffer that held a longer line than this is not kept for the lines after it.
const KEPT_BYTES: usize = 1 << 20;
/// A line this many times longer than allowed is no line: the connection cannot go on.
const ENDLESS_FACTOR: usize = 4;
/// But not below this.
const ENDLESS_LEAST: usize = 64 << 20;

/// What came out of stdout.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// One line without its end, not empty.
    Line(Bytes),
    /// A line over the limit, thrown away; the id is what it answered, where that could be read.
    Oversize {
        /// The id of the line, if it has an id.
        id: Option<u64>,
    },
    /// A line for which there is no room in memory, thrown away; the id as above.
    NoRoom {
        /// The id of the line, if it has an id.
        id: Option<u64>,
    },
    /// A line that does not end.
    Endless,
}

/// Splits bytes into lines. Bytes go in by [`Framer::buffer`], frames come out of [`Framer::next`].
#[derive(Debug)]
pub(crate) struct Framer {
    buffer: BytesMut,
    /// Bytes at the front of `buffer` that are known to hold no newline.
    scanned: usize,
    limit: usize,
    oversize: Option<Oversize>,
    account: Account,
    /// The memory charged so far for the line at the front of `buffer`.
    charge: Charge,
}

/// A line over the limit, or without room, while it is read past.
#[derive(Debug)]
struct Oversize {
    scan: HeadScan,
    drained: usize,
    reported: bool,
    no_room: bool,
}

impl Framer {
    /// Lines of at most `limit` bytes, charged to `account` while they are read and until the last
    /// share of them is dropped.
    pub(crate) fn new(limit: usize, account: Account) -> Self {
        Self {
            buffer: BytesMut::with_capacity(READ_BYTES),
            scanned: 0,
            limit,
            oversize: None,
            account,
            charge: Charge::default(),
        }
    }

    /// The account to which lines are charged.
    pub(crate) const fn account(&self) -> &Account {
        &self.account
    }

    /// Where the next bytes go; has room for a read.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 4 {
            reserve(&mut self.buffer, READ_BYTES);
        }
        &mut self.buffer
    }

    /// The next frame, `None` where more bytes are needed.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.drain_oversize() {
                return Some(frame);
            }
            if self.oversize.is_some() {
                return None;
            }
            match memchr(b'\n', &self.buffer[self.scanned..]) {
                Some(at) => {
                    let length = self.scanned + at;
                    let too_long = length > self.limit + 1;
                    if too_long || self.charge.cover(&self.account, length).is_err() {
                        self.begin_oversize(!too_long);
                        continue;
                    }
                    let charge = std::mem::take(&mut self.charge);
                    let mut line = self.buffer.split_to(length + 1);
                    line.truncate(length);
                    self.scanned = 0;
                    if length > KEPT_BYTES {
                        // What is left would hold on to the memory of the line until more is read,
                        // which of a server that is done may be never.
                        self.buffer = BytesMut::from(&self.buffer[..]);
                    }
                    if let Some(line) = self.trim(charge.hold(line)) {
                        return Some(line);
                    }
                }
                None => {
                    self.scanned = self.buffer.len();
                    // One more than the limit may be the carriage return of a line that ends now.
                    let too_long = self.scanned > self.limit + 1;
                    if !too_long && self.charge.cover(&self.account, self.scanned).is_ok() {
                        return None;
                    }
                    self.begin_oversize(!too_long);
                }
            }
        }
    }

    /// The last line, where it was not ended before the end of the stream.
    pub(crate) fn finish(&mut self) -> Option<Frame> {
        if let Some(oversize) = self.oversize.take() {
            let id = oversize.scan.answered();
            return (!oversize.reported).then(|| oversize.frame(id));
        }
        self.scanned = 0;
        let line = std::mem::take(&mut self.charge).hold(self.buffer.split());
        self.trim(line)
    }

    /// Strips a carriage return, a byte order mark at the start of a line, and blanks; `None` where
    /// nothing is left.
    fn trim(&mut self, mut line: Bytes) -> Option<Frame> {
        if line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        let length = line.trim_ascii_end().len();
        line.truncate(length);
        let blanks = line.len() - line.trim_ascii_start().len();
        line.advance(blanks);
        if line.len() > self.limit {
            let mut scan = HeadScan::default();
            scan.feed(&line);
            return Some(Frame::Oversize {
                id: scan.answered(),
            });
        }
        (!line.is_empty()).then_some(Frame::Line(line))
    }

    fn begin_oversize(&mut self, no_room: bool) {
        self.scanned = 0;
        self.charge = Charge::default();
        self.oversize = Some(Oversize {
            scan: HeadScan::default(),
            drained: 0,
            reported: false,
            no_room,
        });
    }

    /// Reads past an overlong line up to its newline, so that its tail never counts as a line of its
    /// own, and reports it once: as soon as its id is known, else at its end.
    fn drain_oversize(&mut self) -> Option<Frame> {
        let oversize = self.oversize.as_mut()?;
        let end = memchr(b'\n', &self.buffer);
        let length = end.unwrap_or(self.buffer.len());
        if !oversize.reported {
            oversize.scan.feed(&self.buffer[..length]);
        }
        oversize.drained += length;
        self.buffer.advance(length + usize::from(end.is_some()));
        let (id, reported) = (oversize.scan.answered(), oversize.reported);
        let frame = oversize.frame(id);
        let endless =
            oversize.drained > ENDLESS_LEAST.max(self.limit.saturating_mul(ENDLESS_FACTOR));
        oversize.reported |= id.is_some() || end.is_some();
        if end.is_some() {
            self.oversize = None;
        }
        if end.is_none() && endless {
            return Some(Frame::Endless);
        }
        if end.is_some() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        (!reported && (id.is_some() || end.is_some())).then_some(frame)
    }
}

impl Oversize {
    fn frame(&self, id: Option<u64>) -> Frame {
        if self.no_room {
            Frame::NoRoom { id }
        } else {
            Frame::Oversize { id }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryBudget, Size};
    use bytes::BufMut;
    use proptest::prelude::*;

    fn new(limit: usize) -> Framer {
        Framer::new(limit, MemoryBudget::new(usize::MAX).whole_account())
    }

    /// Everything that comes out when the bytes arrive in pieces of these sizes.
    fn frames(bytes: &[u8], limit: usize, pieces: &[usize]) -> Vec<Frame> {
        let mut framer = new(limit);
        let mut out = Vec::new();
        let mut rest = bytes;
        let mut sizes = pieces.iter().copied().cycle();
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(usize::MAX).clamp(1, rest.len());
            framer.buffer().put_slice(&rest[..size]);
            rest = &rest[size..];
            out.extend(std::iter::from_fn(|| framer.next()));
        }
        out.extend(framer.finish());
        out
    }

    fn lines(bytes: &[u8], limit: usize) -> Vec<String> {
        frames(bytes, limit, &[usize::MAX])
            .into_iter()
            .map(|frame| match frame {
                Frame::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                Frame::Oversize { id } => format!("oversize {id:?}"),
                Frame::NoRoom { id } => format!("no room {id:?}"),
                Frame::Endless => "endless".to_owned(),
            })
            .collect()
    }

    #[test]
    fn f_16_f_20_line_ends_marks_and_a_last_line_without_end() {
        assert_eq!(
            lines(
                b"\xef\xbb\xbf{\"a\":1}\r\n\n \r\n\xef\xbb\xbfb\n c \nlast",
                100
            ),
            ["{\"a\":1}", "b", "c", "last"]
        );
        assert_eq!(lines(b"", 100), [""; 0]);
    }

    #[test]
    fn f_14_a_line_over_the_limit_is_read_past_and_named() {
        let long = "x".repeat(50);
        let text = format!(
            "{{\"id\":7,\"result\":\"{long}\"}}\nok\n{{\"result\":\"{long}\",\"id\":\"8\"}}\n{long}\nend"
        );
        let expected = [
            "oversize Some(7)",
            "ok",
            "oversize Some(8)",
            "oversize None",
            "end",
        ];
        assert_eq!(lines(text.as_bytes(), 40), expected);
        let cut = format!("ok\n{{\"result\":\"{long}\",\"id\":9}}");
        assert_eq!(lines(cut.as_bytes(), 40), ["ok", "oversize Some(9)"]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes() {
        let text = format!("{}\r\n{}\n", "x".repeat(40), "y".repeat(41));
        assert_eq!(
            lines(text.as_bytes(), 40),
            ["x".repeat(40), "oversize None".to_owned()]
        );
        // Its carriage return may come before its newline does.
        assert_eq!(
            frames(text.as_bytes(), 40, &[1]),
            frames(text.as_bytes(), 40, &[usize::MAX])
        );
    }

    #[test]
    fn f_14_a_very_long_line_that_ends_after_all_is_no_endless_one() {
        let mut framer = new(1000);
        let chunk = vec![b'x'; ENDLESS_LEAST / 64];
        for _ in 0..64 {
            framer.buffer().put_slice(&chunk);
            assert_eq!(framer.next(), None);
        }
        framer.buffer().put_slice(b"xx\nok\n");
        assert_eq!(framer.next(), Some(Frame::Oversize { id: None }));
        assert_eq!(framer.next(), Some(Frame::Line(Bytes::from_static(b"ok"))));
    }

    #[test]
    fn f_15_the_memory_of_a_long_line_goes_with_the_line() {
        let mut framer = new(8 << 20);
        let long = vec![b'x'; 4 << 20];
        framer.buffer().put_slice(&long);
        framer.buffer().put_slice(b"\nnext");
        let Some(Frame::Line(line)) = framer.next() else {
            panic!("a line");
        };
        assert_eq!(line, long);
        // The framer has let go of its memory.
        assert!(framer.buffer.capacity() < KEPT_BYTES);
        framer.buffer().put_slice(b" line\n");
        assert_eq!(
            framer.next(),
            Some(Frame::Line(Bytes::from_static(b"next line")))
        );
    }

    #[test]
    fn f_14_an_overlong_line_is_named_before_it_ends_and_given_up_when_it_does_not() {
        let mut framer = new(1000);
        framer
            .buffer()
            .put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"");
        let chunk = vec![b'x'; 1 << 20];
        let mut seen = Vec::new();
        for _ in 0..66 {
            framer.buffer().put_slice(&chunk);
            seen.extend(framer.next());
            assert!(framer.buffer.is_empty(), "nothing is kept");
        }
        assert_eq!(seen[0], Frame::Oversize { id: Some(3) });
        assert!(seen.len() > 1 && seen[1..].iter().all(|frame| *frame == Frame::Endless));
    }

    #[test]
    fn a_line_is_charged_while_it_is_read_and_until_its_last_share_is_dropped() {
        let budget = MemoryBudget::new(16 << 20);
        let mut framer = Framer::new(8 << 20, budget.whole_account());
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..4 {
            framer.buffer().put_slice(&piece);
            assert_eq!(framer.next(), None);
        }
        assert_eq!(budget.used(), 4 << 20);
        framer.buffer().put_slice(b"\nok\n");
        let Some(Frame::Line(line)) = framer.next() else {
            panic!("a line");
        };
        let share = line.slice(..10);
        drop(line);
        assert_eq!(framer.next(), Some(Frame::Line(Bytes::from_static(b"ok"))));
        assert_eq!(budget.used(), 4 << 20);
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_line_without_room_is_read_past_and_named() {
        let budget = MemoryBudget::new(4 << 20);
        let taken = budget.account().charge(1 << 20, Size::Large);
        let mut framer = Framer::new(8 << 20, budget.whole_account());
        framer.buffer().put_slice(b"{\"id\":7,\"result\":\"");
        let piece = vec![b'x'; 1 << 20];
        let mut seen = Vec::new();
        for _ in 0..6 {
            framer.buffer().put_slice(&piece);
            seen.extend(framer.next());
            assert!(framer.buffer.len() <= 4 << 20);
        }
        framer.buffer().put_slice(b"\"}\nok\n");
        seen.extend(std::iter::from_fn(|| framer.next()));
        let ok = Frame::Line(Bytes::from_static(b"ok"));
        assert_eq!(seen, [Frame::NoRoom { id: Some(7) }, ok]);
        drop(taken);
        assert_eq!(budget.used(), 0);
        assert!(framer.buffer.capacity() < 1 << 20);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(
            parts in prop::collection::vec(
                prop_oneof![
                    "[a-z{}\":, \r]{0,60}",
                    Just("{\"id\":5,\"result\":{\"text\":\"01234567890123456789012345678901\"}}".to_owned()),
                    Just("{\"result\":\"0123456789\\\\\\\"}01234567890123456789\",\"id\":\"6\"}".to_owned()),
                ], 0..12),
            pieces in prop::collection::vec(1usize..40, 1..20),
            last in any::<bool>(),
        ) {
            let mut text = parts.join("\n");
            if last { text.push('\n'); }
            prop_assert_eq!(
                frames(text.as_bytes(), 30, &pieces),
                frames(text.as_bytes(), 30, &[usize::MAX])
            );
        }

        #[test]
        fn hostile_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            pieces in prop::collection::vec(1usize..40, 1..20),
        ) {
            frames(&bytes, 16, &pieces);
        }
    }
}
