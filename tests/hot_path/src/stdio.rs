//! An MCP client without a process: the input and the output of a broker over stdio. The input yields the
//! next call once the output has taken the whole answer.

use std::io::{self, IoSlice, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memchr::memmem;

use crate::Path;

/// How long the input waits for an answer before it ends.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hot-path","version":"1"}}}"#,
    "\n"
);
const INITIALIZED: &str = concat!(
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

/// A text in every result of the server.
const RESULT_TEXT: &[u8] = br#"{"type":"text","text":"xx"#;

/// The answers that have arrived, which both ends of a client know.
#[derive(Debug, Default)]
pub struct Answers {
    count: Mutex<usize>,
    arrived: Condvar,
}

/// The lines of the client.
#[derive(Debug)]
pub struct Input {
    path: Path,
    line: Vec<u8>,
    /// Bytes of the line that were read.
    read: usize,
    /// Lines that need an answer.
    asked: usize,
    calls: usize,
    answers: Arc<Answers>,
}

/// The answers of the broker.
#[derive(Debug)]
pub struct Output {
    path: Path,
    /// Bytes of the line that is being written, and whether the result of the server is in it.
    length: usize,
    has_result: bool,
    answers: Arc<Answers>,
}

/// The two ends of a client that sends the call of `path`, `calls` times.
pub fn client(path: Path, calls: usize) -> (Input, Output) {
    let answers = Arc::<Answers>::default();
    let input = Input {
        path,
        line: INITIALIZE.as_bytes().to_vec(),
        read: 0,
        asked: 1,
        calls,
        answers: Arc::clone(&answers),
    };
    let output = Output {
        path,
        length: 0,
        has_result: false,
        answers,
    };
    (input, output)
}

impl Answers {
    /// The number of answers, with that to `initialize`.
    pub fn count(&self) -> usize {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for this many answers; false if they do not arrive.
    fn wait_for(&self, count: usize) -> bool {
        let waits = |arrived: &mut usize| *arrived < count;
        let waited = self
            .arrived
            .wait_timeout_while(self.lock(), ANSWER_TIMEOUT, waits);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Input {
    /// The counter of answers.
    pub fn answers(&self) -> Arc<Answers> {
        Arc::clone(&self.answers)
    }

    /// Writes the next call into `self.line`; false at the end of the input.
    fn next(&mut self) -> io::Result<bool> {
        if self.calls == 0 || !self.answers.wait_for(self.asked) {
            return Ok(false);
        }
        self.calls -= 1;
        self.read = 0;
        self.line.clear();
        if self.asked == 1 {
            self.line.extend_from_slice(INITIALIZED.as_bytes());
        }
        let (id, tool, arguments) = (self.asked, self.path.tool(), self.path.arguments());
        self.asked += 1;
        writeln!(
            self.line,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        )?;
        Ok(true)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() && !self.next()? {
            self.answers.wait_for(self.asked);
            return Ok(0);
        }
        let rest = &self.line[self.read..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.read += read;
        Ok(read)
    }
}

impl Output {
    /// Takes a part of a line. The broker writes the last part of a line up to its end.
    fn take(&mut self, part: &[u8]) {
        self.length += part.len();
        self.has_result |= memmem::find(part, RESULT_TEXT).is_some();
        if part.last() != Some(&b'\n') {
            return;
        }
        let mut count = self.answers.lock();
        let is_call = *count > 0;
        *count += 1;
        assert!(
            !is_call || (self.has_result && self.length >= self.path.min_reply_bytes()),
            "an answer of {} bytes is not the result of the server",
            self.length
        );
        (self.length, self.has_result) = (0, false);
        self.answers.arrived.notify_one();
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes);
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let parts = parts.iter().filter(|part| !part.is_empty());
        Ok(parts.fold(0, |taken, part| {
            self.take(part);
            taken + part.len()
        }))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
