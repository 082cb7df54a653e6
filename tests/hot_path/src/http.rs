//! An HTTP caller without a socket: the stream of a connection that sends the next request once the whole
//! reply has arrived.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Path;

/// The stream of a connection; ends after its calls.
#[derive(Debug)]
pub struct HttpCaller {
    path: Path,
    request: Vec<u8>,
    /// Bytes of the request that were sent.
    sent: usize,
    /// Bytes of the reply that are missing; `None` before its head.
    missing: Option<usize>,
    calls: usize,
    /// Counts replies.
    replies: Arc<AtomicUsize>,
    reader: Option<Waker>,
}

impl HttpCaller {
    /// A caller that sends `secret` and the request of `path`, `calls` times.
    pub fn new(path: Path, secret: &str, calls: usize) -> Self {
        let (tool, body) = (path.meta_tool(), path.body());
        let request = format!(
            "POST /{tool} HTTP/1.1\r\nhost: localhost:8100\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\naccept: */*\r\nuser-agent: hot-path\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self {
            path,
            request: request.into_bytes(),
            sent: 0,
            missing: None,
            calls,
            replies: Arc::default(),
            reader: None,
        }
    }

    /// The counter of its replies.
    pub fn replies(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.replies)
    }

    /// Takes a part of a reply. The broker writes its head in one part.
    fn take(&mut self, part: &[u8]) {
        let (rest, missing) = match self.missing {
            Some(missing) => (part, missing),
            None => self.take_head(part),
        };
        let missing = missing
            .checked_sub(rest.len())
            .expect("a reply ends where its head says");
        self.missing = Some(missing);
        if missing == 0 {
            self.missing = None;
            self.replies.fetch_add(1, Ordering::Relaxed);
            self.sent = 0;
            self.calls -= 1;
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
    }

    /// The bytes of the body that came with the head, and the length of the whole body.
    fn take_head<'a>(&self, part: &'a [u8]) -> (&'a [u8], usize) {
        const LENGTH: &[u8] = b"content-length: ";
        let end = memmem::find(part, b"\r\n\r\n").expect("the head is in one part");
        let (head, rest) = (&part[..end], &part[end + 4..]);
        let from = memmem::find(head, LENGTH).expect("it has a length") + LENGTH.len();
        let digits = head[from..].iter().take_while(|byte| byte.is_ascii_digit());
        let length = digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
        let is_right = head.starts_with(b"HTTP/1.1 200 ") && length >= self.path.min_reply_bytes();
        assert!(is_right, "{}", String::from_utf8_lossy(part));
        (rest, length)
    }
}

impl AsyncRead for HttpCaller {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.calls == 0 {
            return Poll::Ready(Ok(()));
        }
        let rest = &self.request[self.sent..];
        if rest.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let read = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..read]);
        self.sent += read;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HttpCaller {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let parts = parts.iter().filter(|part| !part.is_empty());
        Poll::Ready(Ok(parts.fold(0, |taken, part| {
            self.take(part);
            taken + part.len()
        })))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
