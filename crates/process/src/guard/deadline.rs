//! Ends the process if its orderly shutdown takes too long: a plain thread that needs neither the runtime nor a lock
//! nor the log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use broker_model::exit::Exit;
use tokio::time::Instant;

use crate::unix::end_process;

/// The handle of the thread. The thread is idle until [`Deadline::end_within`].
#[derive(Debug)]
pub struct Deadline {
    thread: Thread,
    shared: Arc<DeadlineState>,
}

#[derive(Debug)]
struct DeadlineState {
    start: Instant,
    /// The end in milliseconds since `start`, above the exit code in the lowest byte.
    end: AtomicU64,
}

/// No end is set.
const NEVER: u64 = u64::MAX;

impl Deadline {
    /// Starts the thread.
    pub fn new() -> io::Result<Self> {
        let shared = Arc::new(DeadlineState {
            start: Instant::now(),
            end: AtomicU64::new(NEVER),
        });
        let of_thread = Arc::clone(&shared);
        let handle = thread::Builder::new()
            .name("mcp-deadline".to_owned())
            .spawn(move || of_thread.run())?;
        Ok(Self {
            thread: handle.thread().clone(),
            shared,
        })
    }

    /// Ends the process with `exit` after this time, unless it has ended by then. An end later than the
    /// current one is ignored.
    pub fn end_within(&self, time: Duration, exit: Exit) {
        let end = self.shared.word(time, exit);
        self.shared.end.fetch_min(end, Ordering::AcqRel);
        self.thread.unpark();
    }
}

impl Deadline {
    /// Moves an end that was set with `exit` to this time from now, if that is later.
    pub(super) fn postpone(&self, time: Duration, exit: Exit) {
        let later = self.shared.word(time, exit);
        let is_same = |end: u64| end != NEVER && end & 0xff == later & 0xff;
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        // The thread looks again when the earlier end has come.
        let _: Result<u64, u64> = self.shared.end.fetch_update(done, failed, |end| {
            (is_same(end) && end < later).then_some(later)
        });
    }
}

impl DeadlineState {
    /// Returns the word of an end: the time above the exit code.
    fn word(&self, time: Duration, exit: Exit) -> u64 {
        let at = (self.start.elapsed() + time).as_millis();
        let at = u64::try_from(at).unwrap_or(NEVER) & (NEVER >> 8);
        at << 8 | u64::from(exit.code())
    }

    fn run(&self) {
        loop {
            let end = self.end.load(Ordering::Acquire);
            if end == NEVER {
                thread::park();
                continue;
            }
            let left = Duration::from_millis(end >> 8).saturating_sub(self.start.elapsed());
            if left.is_zero() {
                end_process((end & 0xff) as u8);
            }
            thread::park_timeout(left);
        }
    }
}
