//! Cuts a stream of bytes into lines, without copying them and without trusting their length. A line that is too long,
//! or over the memory budget, is skipped to its end and reported once. Of JSON it knows only strings and brackets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use broker_memory::{Account, Charge, ChargeError, reserve};
use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::Id;
use crate::scan::{HeadScan, Peer};

#[cfg(test)]
mod tests;

/// The buffer size of a read.
const READ_BYTES: usize = 64 << 10;
/// A buffer that is larger than this is not reused for the next lines.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// A line of a server that is this many times longer than allowed ends the connection.
const ENDLESS_FACTOR: usize = 4;
/// The minimum length of such a line.
const MIN_ENDLESS_BYTES: usize = 64 << 20;

/// The maximum length of a line. All clones share one limit.
#[derive(Clone, Debug)]
pub struct LineLimit(Arc<AtomicUsize>);

impl LineLimit {
    /// Makes a limit of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Sets the limit for lines that are read later.
    pub fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Returns the limit in bytes.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A frame of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// One line without its line end, blanks and byte order mark; not empty. It is charged until its
    /// last share is dropped.
    Line(Bytes),
    /// A discarded line over the limit.
    Oversize {
        /// The id of the request that it answers, if it can be read; `None` for a line of a client.
        id: Option<Id>,
    },
    /// A discarded line over the memory budget.
    OutOfMemory {
        /// The id of the request that the line is, or answers, if it can be read.
        id: Option<Id>,
        /// Why the memory was refused.
        charge_error: ChargeError,
        /// The length of the line.
        needed: usize,
    },
    /// A line of a server that exceeds every limit.
    Endless,
}

/// Splits bytes into lines. Bytes go in by [`Framer::buffer`] or [`Framer::push`], frames come out of
/// [`Framer::next_frame`]. The caller repeats it until it returns `None` before the next bytes.
#[derive(Debug)]
pub struct Framer {
    peer: Peer,
    buffer: BytesMut,
    /// The number of bytes at the front of `buffer` that contain no newline.
    scanned: usize,
    limit: LineLimit,
    account: Account,
    /// The memory charged so far for the line at the front of `buffer`.
    charge: Charge,
    skipped: Option<SkippedLine>,
}

/// The line that is being skipped.
#[derive(Debug)]
struct SkippedLine {
    scan: HeadScan,
    drained: usize,
    reason: Reason,
    reported: bool,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    Oversize,
    OutOfMemory {
        charge_error: ChargeError,
        needed: usize,
    },
}

impl Reason {
    fn frame(self, id: Option<Id>) -> Frame {
        match self {
            Self::Oversize => Frame::Oversize { id },
            Self::OutOfMemory {
                charge_error,
                needed,
            } => Frame::OutOfMemory {
                id,
                charge_error,
                needed,
            },
        }
    }
}

impl Framer {
    /// Makes a framer for lines of `peer` of at most `limit` bytes, charged to `account` while they are read and until
    /// the last share of them is dropped.
    pub fn new(peer: Peer, limit: LineLimit, account: Account) -> Self {
        Self {
            peer,
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            account,
            charge: Charge::default(),
            skipped: None,
        }
    }

    /// Returns the account that is charged for lines.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the buffer for the next bytes; has room for a read.
    #[inline]
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 4 {
            reserve(&mut self.buffer, READ_BYTES);
        }
        &mut self.buffer
    }

    /// Adds bytes that were read elsewhere.
    pub fn push(&mut self, bytes: &[u8]) {
        reserve(&mut self.buffer, bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next frame, `None` if more bytes are needed.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.read_past() {
                return Some(frame);
            }
            if self.skipped.is_some() {
                return None;
            }
            let end = memchr(b'\n', &self.buffer[self.scanned..]);
            let length = end.map_or(self.buffer.len(), |at| self.scanned + at);
            if let Err(reason) = self.cover(length) {
                self.begin_skip(reason);
                continue;
            }
            if end.is_none() {
                self.scanned = length;
                return None;
            }
            self.scanned = 0;
            let charge = std::mem::take(&mut self.charge);
            let mut line = self.buffer.split_to(length + 1);
            line.truncate(length);
            if length > MAX_KEPT_BYTES {
                self.release();
            }
            if let Some(line) = self.trim(charge.hold(line)) {
                return Some(line);
            }
        }
    }

    /// Returns the last line, if the stream ended without a newline.
    pub fn finish(&mut self) -> Option<Frame> {
        if let Some(skipped) = self.skipped.take() {
            let frame = skipped.reason.frame(skipped.scan.id(self.peer));
            return (!skipped.reported).then_some(frame);
        }
        self.scanned = 0;
        let line = std::mem::take(&mut self.charge).hold(self.buffer.split());
        self.trim(line)
    }

    /// Charges the line at the front up to `length` bytes. A line of a client that exceeds the limit of
    /// one request is refused, even if memory is free.
    fn cover(&mut self, length: usize) -> Result<(), Reason> {
        // One more than the limit may be a carriage return.
        if length > self.limit.get().saturating_add(1) {
            return Err(Reason::Oversize);
        }
        let covered = if self.peer == Peer::Client && length > self.account.request_limit() {
            Err(ChargeError::Caller)
        } else {
            self.charge.cover(&self.account, length)
        };
        covered.map_err(|charge_error| Reason::OutOfMemory {
            charge_error,
            needed: length,
        })
    }

    /// Strips a byte order mark at the start of a line and blanks, a carriage return among them; `None` if the rest is
    /// empty.
    fn trim(&self, mut line: Bytes) -> Option<Frame> {
        if line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        line.truncate(line.trim_ascii_end().len());
        line.advance(line.len() - line.trim_ascii_start().len());
        if line.len() > self.limit.get() {
            let mut scan = HeadScan::default();
            if self.peer == Peer::Server {
                scan.feed(&line);
            }
            let id = scan.id(self.peer);
            return Some(Frame::Oversize { id });
        }
        (!line.is_empty()).then_some(Frame::Line(line))
    }

    fn begin_skip(&mut self, reason: Reason) {
        self.scanned = 0;
        self.charge = Charge::default();
        self.skipped = Some(SkippedLine {
            scan: HeadScan::default(),
            drained: 0,
            reason,
            reported: false,
        });
    }

    /// Skips a line up to its newline and reports it once: as soon as its id is known, else at its end.
    /// A line over the limit of a client is reported at once.
    fn read_past(&mut self) -> Option<Frame> {
        let peer = self.peer;
        let skipped = self.skipped.as_mut()?;
        let end = memchr(b'\n', &self.buffer);
        let length = end.unwrap_or(self.buffer.len());
        let needs_id = !matches!((peer, skipped.reason), (Peer::Client, Reason::Oversize));
        if needs_id && !skipped.reported {
            skipped.scan.feed(&self.buffer[..length]);
        }
        skipped.drained += length;
        let is_due = end.is_some() || !needs_id || skipped.scan.is_conclusive(peer);
        let report = is_due && !skipped.reported;
        skipped.reported |= is_due;
        let frame = report.then(|| skipped.reason.frame(skipped.scan.id(peer)));
        let most = MIN_ENDLESS_BYTES.max(self.limit.get().saturating_mul(ENDLESS_FACTOR));
        let is_endless = peer == Peer::Server && end.is_none() && skipped.drained > most;
        if end.is_some() {
            self.skipped = None;
        }
        self.buffer.advance(length + usize::from(end.is_some()));
        if length > MAX_KEPT_BYTES || (end.is_some() && self.buffer.capacity() > MAX_KEPT_BYTES) {
            self.release();
        }
        if is_endless {
            return Some(Frame::Endless);
        }
        frame
    }

    /// Releases the memory of a long line: the rest in the buffer would otherwise keep it until more is
    /// read.
    fn release(&mut self) {
        self.buffer = BytesMut::from(&self.buffer[..]);
    }
}
