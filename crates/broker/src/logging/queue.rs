//! The queue of lines for standard error, and the thread that writes them: only this thread waits if
//! standard error is not read. The queue is bounded; lines that do not fit are counted.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// The maximum bytes of log lines that wait to be written.
const MAX_QUEUE_BYTES: usize = 1 << 20;
/// Maximum time that the end of the process waits for lines of the log, unless standard error has accepted no byte for
/// that long already.
const LOG_END_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit at the end of the process if a report waits as well.
const REPORT_END_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay before a retry if standard error is non-blocking and full.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum bytes of one write: a pipe accepts that many atomically, so that lines of other writers
/// come between lines and not into them.
const MAX_WRITE_BYTES: usize = 4 << 10;
/// The maximum memory that is kept while no line waits.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Creates the line that replaces a number of lost lines.
pub(super) type Notice = fn(super::Format, u64) -> String;

/// The queue. It accepts lines before its thread is started.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Wakes the thread.
    filled: Condvar,
    /// Wakes [`Queue::finish`] once the thread is idle.
    emptied: Condvar,
    format: super::Format,
    notice: Notice,
}

struct QueueState {
    thread: ThreadState,
    /// Complete lines that the thread has not taken yet.
    waiting: Vec<u8>,
    /// Bytes that the thread has taken and not written yet.
    unwritten: usize,
    /// Lines that were lost and not reported yet.
    lost: u64,
    /// The position in `waiting` where they are missing.
    gap: usize,
    /// Whether a report is not written yet.
    has_report: bool,
    /// When standard error last accepted bytes, or when the first write began.
    progress: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    NotStarted,
    Idle,
    Busy,
}

/// The bytes that the thread has taken to write.
#[derive(Default)]
struct WriteBatch {
    bytes: Vec<u8>,
    lost: u64,
    gap: usize,
    /// Whether the last line is incomplete, since the write of its rest failed.
    is_torn: bool,
}

impl Queue {
    /// An empty queue without a thread.
    pub(super) fn new(format: super::Format, notice: Notice) -> Self {
        Self {
            state: Mutex::new(QueueState {
                thread: ThreadState::NotStarted,
                waiting: Vec::new(),
                unwritten: 0,
                lost: 0,
                gap: 0,
                has_report: false,
                progress: Instant::now(),
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            format,
            notice,
        }
    }

    /// Starts the thread, unless that was done before. It inherits the signals that this one blocks.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<()> {
        self.start_to(io::stderr)
    }

    fn start_to<W: Write>(
        self: &Arc<Self>,
        output: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<()> {
        let mut state = self.state();
        if state.thread == ThreadState::NotStarted {
            let queue = Arc::clone(self);
            thread::Builder::new()
                .name("mcp-log".to_owned())
                .spawn(move || queue.run(&mut output()))?;
            state.thread = ThreadState::Busy;
            state.progress = Instant::now();
        }
        Ok(())
    }

    /// Adds a line of the log, or counts it as lost if there is no room.
    pub(super) fn push_line(&self, line: &str) {
        let mut state = self.state();
        let length = state.waiting.len() + state.unwritten + line.len();
        if length > MAX_QUEUE_BYTES {
            if state.lost == 0 {
                state.gap = state.waiting.len();
            }
            state.lost += 1;
            return;
        }
        self.push(state, line);
    }

    /// Adds a report of any length: there are few, and they explain the exit code.
    pub(super) fn push_report(&self, text: &str) {
        let mut state = self.state();
        state.has_report = true;
        self.push(state, text);
    }

    fn push(&self, mut state: MutexGuard<'_, QueueState>, text: &str) {
        state.waiting.extend_from_slice(text.as_bytes());
        // A busy thread checks the queue again by itself. This saves a system call for each line.
        if state.thread == ThreadState::Idle {
            state.thread = ThreadState::Busy;
            state.progress = Instant::now();
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Waits until all lines are written, within the time limits of the end.
    pub(super) fn finish(self: &Arc<Self>) {
        if self.state().waiting.is_empty() && self.state().unwritten == 0 {
            return;
        }
        if self.start().is_err() {
            // Without a thread there is no time limit, but this is the last action of the process.
            let mut batch = WriteBatch::default();
            take(&mut self.state(), &mut batch);
            self.write(&mut batch, &mut io::stderr());
            return;
        }
        let began = Instant::now();
        let mut state = self.state();
        while state.thread == ThreadState::Busy {
            let timeout = if state.has_report {
                REPORT_END_TIMEOUT
            } else {
                LOG_END_TIMEOUT
            };
            let left =
                (state.progress.min(began) + timeout).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.emptied.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The thread.
    fn run(&self, output: &mut impl Write) {
        let mut batch = WriteBatch::default();
        let mut has_failed = false;
        loop {
            self.next(&mut batch, has_failed);
            has_failed = !self.write(&mut batch, output);
        }
    }

    /// Waits for something to write. Lost lines alone are enough, unless the last write failed.
    fn next(&self, batch: &mut WriteBatch, has_failed: bool) {
        let mut state = self.state();
        while state.waiting.is_empty() && (state.lost == 0 || has_failed) {
            state.thread = ThreadState::Idle;
            state.has_report = false;
            state.waiting.shrink_to(MAX_KEPT_BYTES);
            batch.bytes.shrink_to(MAX_KEPT_BYTES);
            self.emptied.notify_all();
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.thread = ThreadState::Busy;
        take(&mut state, batch);
    }

    /// Writes the batch and empties it. If that fails, its lines are lost; the loss is reported with
    /// the next line that can be written, for example when a disk is no longer full.
    fn write(&self, batch: &mut WriteBatch, output: &mut impl Write) -> bool {
        let gap = if batch.lost == 0 {
            batch.bytes.len()
        } else {
            batch.gap
        };
        let (before, after) = batch.bytes.split_at(gap);
        let (mut lost, is_torn) = (batch.lost, &mut batch.is_torn);
        let mut unwritten = self.write_lines(before, output, is_torn);
        if unwritten == 0 && lost > 0 {
            let notice = (self.notice)(self.format, lost);
            if self.write_lines(notice.as_bytes(), output, is_torn) == 0 {
                lost = 0;
            }
        }
        unwritten += if unwritten == 0 && lost == 0 {
            self.write_lines(after, output, is_torn)
        } else {
            lines(after)
        };
        batch.bytes.clear();
        let mut state = self.state();
        state.unwritten = 0;
        lost += unwritten;
        if lost > 0 {
            // They precede all waiting lines.
            state.lost += lost;
            state.gap = 0;
        }
        lost == 0
    }

    /// Writes complete lines, after the rest of an incomplete one. Returns how many were not written
    /// completely.
    fn write_lines(&self, mut bytes: &[u8], output: &mut impl Write, is_torn: &mut bool) -> u64 {
        let mut ends_torn = *is_torn;
        while !bytes.is_empty() {
            let next = if ends_torn { b"\n" } else { piece(bytes) };
            match output.write(next) {
                Ok(0) => break,
                Ok(_) if ends_torn => (ends_torn, *is_torn) = (false, false),
                Ok(written) => {
                    *is_torn = next.get(written - 1) != Some(&b'\n');
                    bytes = bytes.get(written..).unwrap_or_default();
                    let mut state = self.state();
                    state.unwritten = state.unwritten.saturating_sub(written);
                    state.progress = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(RETRY_INTERVAL);
                }
                Err(_) => break,
            }
        }
        lines(bytes)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// Makes all waiting lines the batch; the memory of the batch is reused for the next lines.
fn take(state: &mut QueueState, batch: &mut WriteBatch) {
    mem::swap(&mut state.waiting, &mut batch.bytes);
    batch.lost = mem::take(&mut state.lost);
    batch.gap = mem::take(&mut state.gap);
    state.unwritten = batch.bytes.len();
    state.progress = Instant::now();
}

/// The first complete lines for one write, or a part of a longer line.
fn piece(bytes: &[u8]) -> &[u8] {
    let most = bytes.get(..MAX_WRITE_BYTES).unwrap_or(bytes);
    match memchr::memrchr(b'\n', most) {
        Some(end) => &most[..=end],
        None => most,
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests;
