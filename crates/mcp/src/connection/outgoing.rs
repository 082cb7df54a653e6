//! The lines that wait to be written to a server's stdin. Records for each whether its first byte was written: this
//! decides whether a call may have been executed.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

/// The maximum number of lines in one write.
const MAX_LINES_PER_WRITE: usize = 32;
/// The maximum bytes of replies and notifications that wait to be written to one server. Calls do not
/// count: their number is bounded, and their timeouts remove them.
const MAX_PENDING_BYTES: usize = 32 << 20;
/// Memory of a line in addition to its bytes.
const LINE_OVERHEAD_BYTES: usize = 128;

/// A queue of lines, written as far as the pipe accepts bytes, without blocking.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    lines: VecDeque<Line>,
    /// Whether the first byte of the front line was written.
    begun: bool,
    /// Memory of the waiting lines that are not requests.
    pending: usize,
}

#[derive(Debug)]
struct Line {
    id: Option<u64>,
    rest: Bytes,
    /// Memory that the line adds to `pending`; 0 for a request.
    cost: usize,
}

impl Outgoing {
    /// Puts the line of request `id` at the end.
    pub(super) fn push_request(&mut self, id: u64, line: Bytes) {
        self.lines.push_back(Line {
            id: Some(id),
            rest: line,
            cost: 0,
        });
    }

    /// Puts any other line at the end.
    pub(super) fn push(&mut self, line: Bytes) {
        let line = self.counted(line);
        self.lines.push_back(line);
    }

    /// Puts a line before all others, but never into the middle of one.
    pub(super) fn push_urgent(&mut self, line: Bytes) {
        let at = usize::from(self.begun).min(self.lines.len());
        let line = self.counted(line);
        self.lines.insert(at, line);
    }

    fn counted(&mut self, line: Bytes) -> Line {
        let cost = line.len() + LINE_OVERHEAD_BYTES;
        self.pending += cost;
        Line {
            id: None,
            rest: line,
            cost,
        }
    }

    /// Whether more bytes wait than a server that reads its input leaves waiting.
    pub(super) fn is_stalled(&self) -> bool {
        self.pending > MAX_PENDING_BYTES
    }

    /// Whether no byte of request `id` was written yet.
    pub(super) fn is_unsent(&self, id: u64) -> bool {
        let at = self.lines.iter().position(|line| line.id == Some(id));
        at.is_some_and(|at| at > 0 || !self.begun)
    }

    /// Removes the line of request `id`. False if a byte of it was written.
    pub(super) fn withdraw(&mut self, id: u64) -> bool {
        match self.lines.iter().position(|line| line.id == Some(id)) {
            Some(0) if self.begun => false,
            Some(at) => self.lines.remove(at).is_some(),
            None => false,
        }
    }

    /// Writes as much as the pipe accepts. Ready when every byte is written.
    pub(super) fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.lines.is_empty() {
            let count = self.lines.len().min(MAX_LINES_PER_WRITE);
            let slices: [IoSlice<'_>; MAX_LINES_PER_WRITE] = std::array::from_fn(|index| {
                IoSlice::new(self.lines.get(index).map_or(&[], |line| &line.rest))
            });
            let written = ready!(Pin::new(&mut *pipe).poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(line) = self.lines.front_mut() {
            if written < line.rest.len() {
                line.rest.advance(written);
                self.begun |= written > 0;
                return;
            }
            written -= line.rest.len();
            self.begun = false;
            self.pending -= line.cost;
            self.lines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &Outgoing) -> Vec<&[u8]> {
        out.lines.iter().map(|line| &line.rest[..]).collect()
    }

    #[test]
    fn outgoing_line_that_has_begun_is_not_withdrawn() {
        let mut out = Outgoing::default();
        out.push_request(1, Bytes::from_static(b"one\n"));
        out.push_request(2, Bytes::from_static(b"two\n"));
        out.push_request(3, Bytes::from_static(b"three\n"));
        out.advance(2);
        assert!(!out.withdraw(1), "a byte of it has left");
        assert!(out.withdraw(2));
        assert!(!out.withdraw(2));
        out.push_urgent(Bytes::from_static(b"now\n"));
        assert_eq!(text(&out), [&b"e\n"[..], b"now\n", b"three\n"]);
        out.advance(6);
        assert!(!out.withdraw(1), "it has left");
        out.push_urgent(Bytes::from_static(b"again\n"));
        assert_eq!(text(&out), [&b"again\n"[..], b"three\n"]);
        out.advance(12);
        assert_eq!((out.lines.len(), out.pending), (0, 0));
    }

    #[test]
    fn outgoing_answers_are_limited_in_bytes_and_requests_are_not() {
        let mut out = Outgoing::default();
        out.push_request(1, Bytes::from(vec![b'x'; MAX_PENDING_BYTES]));
        assert!(!out.is_stalled());
        let answer = Bytes::from(vec![b'y'; 1 << 20]);
        for _ in 0..31 {
            out.push(answer.clone());
        }
        assert!(!out.is_stalled());
        out.push_urgent(answer.clone());
        assert!(out.is_stalled());
        out.advance(answer.len());
        assert!(!out.is_stalled(), "one has left");
    }
}
