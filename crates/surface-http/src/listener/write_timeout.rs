//! A time limit on writes: a caller that does not read its reply loses its connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The limits for a reply that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteBounds {
    /// The maximum time without an accepted byte.
    pub(crate) stall: Duration,
    /// The minimum rate in bytes per second, on average over `interval`.
    pub(crate) rate: usize,
    pub(crate) interval: Duration,
}

/// A connection whose writes fail if the peer accepts too little for too long. Calls `on_written` when
/// all of a reply was written.
pub(crate) struct WriteTimeout<T, F> {
    stream: T,
    bounds: WriteBounds,
    on_written: F,
    /// From the first blocked write of a reply until all of it was written.
    slow: Option<PendingWrite>,
}

/// A reply that cannot be written at once.
struct PendingWrite {
    timer: Pin<Box<Sleep>>,
    /// When the last byte was accepted.
    last: Instant,
    /// The start of the interval, and the bytes since then.
    from: Instant,
    bytes: usize,
}

impl<T: Unpin, F: FnMut() + Unpin> WriteTimeout<T, F> {
    /// Wraps a connection, whose client must read replies within `bounds`.
    pub(crate) fn new(stream: T, bounds: WriteBounds, on_written: F) -> Self {
        Self {
            stream,
            bounds,
            on_written,
            slow: None,
        }
    }

    fn bound(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                if let Some(slow) = &mut self.slow {
                    slow.last = Instant::now();
                    slow.bytes += bytes;
                }
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => self.wait(cx).map(Err),
        }
    }

    /// Ready with an error once a bound is passed.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let WriteBounds {
            stall,
            rate,
            interval,
        } = self.bounds;
        let slow = self.slow.get_or_insert_with(PendingWrite::new);
        loop {
            let now = Instant::now();
            if now >= slow.last + stall {
                return Poll::Ready(timed_out("the caller does not read its reply"));
            }
            if now >= slow.from + interval {
                if slow.bytes < rate.saturating_mul(interval.as_secs() as usize) {
                    return Poll::Ready(timed_out("the caller reads its reply too slowly"));
                }
                (slow.from, slow.bytes) = (now, 0);
            }
            let due = (slow.last + stall).min(slow.from + interval);
            if slow.timer.deadline() != due {
                slow.timer.as_mut().reset(due);
            }
            ready!(slow.timer.as_mut().poll(cx));
        }
    }
}

impl PendingWrite {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            timer: Box::pin(sleep_until(now)),
            last: now,
            from: now,
            bytes: 0,
        }
    }
}

fn timed_out(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, message)
}

impl<T: AsyncRead + Unpin, F: FnMut() + Unpin> AsyncRead for WriteTimeout<T, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin, F: FnMut() + Unpin> AsyncWrite for WriteTimeout<T, F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bound(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.bound(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Pending => self.wait(cx).map(Err),
            Poll::Ready(flushed) => {
                self.slow = None;
                (self.on_written)();
                Poll::Ready(flushed)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::sleep;

    const BOUNDS: WriteBounds = WriteBounds {
        stall: Duration::from_secs(1),
        rate: 16,
        interval: Duration::from_secs(2),
    };

    #[tokio::test]
    async fn write_timeout_closes_a_stopped_reader_and_not_a_slow_one() {
        let (near, mut far) = duplex(16);
        let mut written = 0;
        let mut near = WriteTimeout::new(near, BOUNDS, || written += 1);
        let slow = async {
            for _ in 0..16 {
                sleep(Duration::from_millis(200)).await;
                far.read_exact(&mut [0; 16]).await.unwrap();
            }
        };
        // Longer than each limit in total, but fast enough.
        let (reply, ()) = tokio::join!(near.write_all(&[0; 256]), slow);
        reply.unwrap();
        near.flush().await.unwrap();
        assert!(near.slow.is_none());

        near.write_all(&[0; 16]).await.unwrap();
        let error = near.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop((near, far));
        assert_eq!(written, 1);
    }

    #[tokio::test]
    async fn write_timeout_closes_a_reader_below_the_minimum_rate() {
        let (near, mut far) = duplex(16);
        let mut near = WriteTimeout::new(near, BOUNDS, || ());
        let slow = async {
            loop {
                sleep(Duration::from_millis(300)).await;
                far.read_exact(&mut [0; 1]).await.unwrap();
            }
        };
        let error = tokio::select! {
            written = near.write_all(&[0; 256]) => written.unwrap_err(),
            () = slow => unreachable!("it reads for ever"),
        };
        assert!(error.to_string().contains("too slowly"), "{error}");
    }
}
