//! The output: stdout under a lock, in whole messages, and errors on stderr.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Output {
    sink: Arc<Mutex<dyn Write + Send>>,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self {
            sink: Arc::new(Mutex::new(io::stdout())),
        }
    }

    /// Writes and flushes bytes unchanged; a fault may write half a line.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write_all(bytes)?;
        sink.flush()
    }

    /// Writes a few bytes at a time, and holds the lock in between.
    pub(crate) fn drip(&self, bytes: &[u8], step: usize, pause: Duration) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.chunks(step) {
            if sink.write_all(part).and_then(|()| sink.flush()).is_err() {
                return;
            }
            std::thread::sleep(pause);
        }
    }

    /// Writes one line. A reader that has gone also closed stdin, which ends the process.
    pub(crate) fn line(&self, line: &str) {
        drop(self.raw(format!("{line}\n").as_bytes()));
    }
}

/// Writes an error to stderr; if stderr is closed, the error is lost.
pub(crate) fn complain(message: &str) {
    drop(writeln!(io::stderr(), "chaos-mcp: {message}"));
}
