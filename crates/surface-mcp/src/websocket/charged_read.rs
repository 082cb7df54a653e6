//! Charges the bytes of an incoming message to its caller while they arrive, so that connections with half a message
//! cannot fill the memory together.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use broker_core::{Account, Charge};

/// A stream whose read bytes are charged. Without memory for it, a read fails with [`io::ErrorKind::OutOfMemory`].
#[derive(Debug)]
pub(super) struct ChargedRead<T> {
    stream: T,
    charge: ReadCharge,
}

/// The bytes of the message that is being read.
#[derive(Clone, Debug)]
pub(super) struct ReadCharge(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    account: Account,
    charge: Charge,
    bytes: usize,
}

impl<T> ChargedRead<T> {
    /// Wraps a stream. The second value takes the charges of complete messages.
    pub(super) fn new(stream: T, account: Account) -> (Self, ReadCharge) {
        let charge = ReadCharge(Arc::new(Mutex::new(State {
            account,
            charge: Charge::default(),
            bytes: 0,
        })));
        let copy = charge.clone();
        (Self { stream, charge }, copy)
    }

    /// The stream itself.
    pub(super) const fn get_mut(&mut self) -> &mut T {
        &mut self.stream
    }
}

impl ReadCharge {
    /// Returns a complete message. It stays charged until it is dropped.
    pub(super) fn whole_message(&self, message: Bytes) -> Bytes {
        let mut charge = self.take();
        charge.shrink(message.len());
        charge.hold(message)
    }

    /// Releases the charge of a frame that is dropped as a whole.
    pub(super) fn nothing_kept(&self) {
        drop(self.take());
    }

    fn take(&self) -> Charge {
        let mut state = self.lock();
        state.bytes = 0;
        std::mem::take(&mut state.charge)
    }

    fn add(&self, bytes: usize) -> io::Result<()> {
        let mut state = self.lock();
        let State {
            account,
            charge,
            bytes: all,
        } = &mut *state;
        *all += bytes;
        let covered = charge.cover(account, *all);
        covered.map_err(|_full| io::Error::from(io::ErrorKind::OutOfMemory))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ChargedRead<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match read {
            Poll::Ready(Ok(())) => {
                let added = self.charge.add(buffer.filled().len() - before);
                if added.is_err() {
                    buffer.set_filled(before);
                }
                Poll::Ready(added)
            }
            other => other,
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ChargedRead<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use broker_core::MemoryBudget;

    #[tokio::test]
    async fn bytes_are_charged_from_their_arrival_until_their_message_is_dropped() {
        let budget = MemoryBudget::new(4 << 20);
        let (mut client, server) = duplex(1 << 20);
        let (mut stream, charge) = ChargedRead::new(server, budget.account());
        client.write_all(&vec![b'x'; 200_000]).await.expect("room");
        let mut read = vec![0; 200_000];
        stream.read_exact(&mut read).await.expect("bytes");
        assert_eq!(budget.used(), 200_000);
        let message = charge.whole_message(read.into());
        assert_eq!(budget.used(), 200_000);
        drop(message);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn read_without_memory_fails() {
        let budget = MemoryBudget::new(400_000);
        let (mut client, server) = duplex(1 << 20);
        let (mut stream, _charge) = ChargedRead::new(server, budget.account());
        client.write_all(&vec![b'x'; 500_000]).await.expect("room");
        let mut read = Vec::new();
        let failed = stream.read_to_end(&mut read).await.expect_err("no memory");
        assert_eq!(failed.kind(), io::ErrorKind::OutOfMemory);
    }
}
