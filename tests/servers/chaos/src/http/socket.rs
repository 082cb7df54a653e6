//! The socket of a connection: writes, waits, and the search for a client that has closed it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Time between two looks at a socket or a queue.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The reason why a connection ends with an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client closed the connection.
    ClientClosed,
    /// The response breaks off, as scripted.
    CutOff,
    /// The response is complete.
    Closed,
}

pub(crate) struct Socket {
    stream: TcpStream,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Without it, parts of an answer would wait for each other; the tests work with it as well.
        drop(stream.set_nodelay(true));
        Self { stream }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Stop> {
        (&self.stream)
            .write_all(bytes)
            .map_err(|_| Stop::ClientClosed)
    }

    /// Writes a few bytes at a time.
    pub(crate) fn drip(&self, bytes: &[u8], step: usize, pause: Duration) -> Result<(), Stop> {
        for part in bytes.chunks(step.max(1)) {
            self.write(part)?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Waits, unless the client closes the connection.
    pub(crate) fn pause(&self, ms: u64) -> Result<(), Stop> {
        let mut left = Duration::from_millis(ms);
        while !left.is_zero() {
            if self.is_closed() {
                return Err(Stop::ClientClosed);
            }
            let step = left.min(POLL_INTERVAL);
            std::thread::sleep(step);
            left -= step;
        }
        Ok(())
    }

    /// Waits until the client closes the connection.
    pub(crate) fn wait_for_close(&self) -> Stop {
        while !self.is_closed() {
            std::thread::sleep(POLL_INTERVAL);
        }
        Stop::ClientClosed
    }

    /// Whether the client has closed the connection. Unread bytes hide the end that comes after them.
    pub(crate) fn is_closed(&self) -> bool {
        let nonblocking = self.stream.set_nonblocking(true);
        let peeked = self.stream.peek(&mut [0]);
        let blocking = self.stream.set_nonblocking(false);
        if nonblocking.is_err() || blocking.is_err() {
            return true;
        }
        match peeked {
            Ok(bytes) => bytes == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Waits for bytes, and copies them without taking them from the socket; `None` at the end.
    pub(crate) fn peek(&self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match self.stream.peek(buffer) {
                Ok(0) => return None,
                Ok(bytes) => return Some(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Reads exactly this many bytes; `None` if the connection ends before.
    pub(crate) fn take(&self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(count).ok()?;
        let read = (&self.stream).take(limit).read_to_end(&mut bytes).ok()?;
        (read == count).then_some(bytes)
    }
}
