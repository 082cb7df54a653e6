//! Bounds what a server may send before the head of its answer is complete.
//!
//! HTTP lets a server send interim responses (status 1xx) before the answer, without a limit on their number (RFC 9110,
//! 15.2). hyper reads them in a loop that returns to the runtime only when the socket is empty.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes of the head of an answer, with the interim responses before it. The last read may exceed it, since
/// it may contain the begin of the body.
pub(crate) const MAX_HEAD_BYTES: usize = 256 << 10;
/// Maximum number of interim responses before an answer.
pub(crate) const MAX_INTERIM_RESPONSES: usize = 16;

/// The bytes and responses that a connection may still read before the head of its answer. Only the task of the request
/// touches it, so no order with other memory is needed.
#[derive(Clone, Debug)]
pub(crate) struct HeadAllowance(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// Bytes; `usize::MAX` while they are not limited.
    bytes: AtomicUsize,
    interim_responses: AtomicUsize,
}

impl HeadAllowance {
    /// Makes an allowance without a limit, for a connection without a request.
    pub(crate) fn unlimited() -> Self {
        Self(Arc::new(Counts {
            bytes: AtomicUsize::new(usize::MAX),
            interim_responses: AtomicUsize::new(0),
        }))
    }

    /// Begins to count: a request is sent.
    pub(crate) fn begin(&self) {
        self.0.bytes.store(MAX_HEAD_BYTES, Ordering::Relaxed);
        self.0.interim_responses.store(0, Ordering::Relaxed);
    }

    /// Counts an interim response. After one too many the client stops reading.
    pub(crate) fn count_interim(&self) {
        self.0.interim_responses.fetch_add(1, Ordering::Relaxed);
        if self.has_too_many() {
            self.0.bytes.store(0, Ordering::Relaxed);
        }
    }

    /// Ends the count: the head has arrived. The reader of the body has its own limit.
    ///
    /// # Errors
    ///
    /// The problem if too many interim responses came with it.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.has_too_many() {
            return Err(self.problem());
        }
        self.0.bytes.store(usize::MAX, Ordering::Relaxed);
        Ok(())
    }

    fn has_too_many(&self) -> bool {
        self.0.interim_responses.load(Ordering::Relaxed) > MAX_INTERIM_RESPONSES
    }

    fn problem(&self) -> String {
        match self.has_too_many() {
            true => format!("the server sent over {MAX_INTERIM_RESPONSES} interim responses"),
            false => format!("the head of the answer is longer than {MAX_HEAD_BYTES} bytes"),
        }
    }
}

/// A stream that fails to read once the allowance is used up.
#[derive(Debug)]
pub(crate) struct HeadLimited<S> {
    stream: S,
    allowance: HeadAllowance,
}

impl<S> HeadLimited<S> {
    pub(crate) const fn new(stream: S, allowance: HeadAllowance) -> Self {
        Self { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadLimited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.allowance.0.bytes.load(Ordering::Relaxed);
        if left == 0 {
            let problem = self.allowance.problem();
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if left != usize::MAX {
            let read = buffer.filled().len() - before;
            let left = left.saturating_sub(read);
            self.allowance.0.bytes.store(left, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadLimited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
