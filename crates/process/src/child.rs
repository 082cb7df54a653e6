//! Child processes: started by one thread of their own, each in a process group, each reaped by a
//! task that owns it. Nothing here knows what is said over the pipes.

use std::time::Duration;

use broker_model::SourceCause;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::descendants::{Descendants, descendants_of};
use crate::{ExitReport, ProcessSpec, SpawnError, StderrTail, StopDeadline, StopGrace, spawner};

/// A running child. Dropping it makes its reaper end the whole group at once.
#[derive(Debug)]
pub struct Process {
    /// Its standard input, until it is taken.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, until it is taken.
    pub stdout: Option<ChildStdout>,
    /// How it ends.
    pub handle: ProcessHandle,
}

/// What is left of a child once its pipes were taken: how it ended, and the way to end it.
#[derive(Debug)]
pub struct ProcessHandle {
    pub(crate) pid: u32,
    pub(crate) exit: watch::Receiver<Option<ExitReport>>,
    pub(crate) swept: watch::Receiver<bool>,
    pub(crate) stderr_ended: watch::Receiver<bool>,
    pub(crate) stop: mpsc::Sender<()>,
    pub(crate) descendants: Descendants,
    pub(crate) longest_stop: Duration,
}

impl Process {
    /// Starts the program of `spec` with its stderr going into `tail`.
    pub async fn spawn(
        spec: &ProcessSpec,
        grace: StopGrace,
        tail: &StderrTail,
        tasks: &TaskTracker,
        stop_deadline: &StopDeadline,
    ) -> Result<Self, SpawnError> {
        spawner::spawn(spec, grace, tail, tasks, stop_deadline).await
    }
}

impl ProcessHandle {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How the leader ended; `None` while it runs.
    pub fn exit(&self) -> watch::Receiver<Option<ExitReport>> {
        self.exit.clone()
    }

    /// True once stderr was read to its end.
    pub fn stderr_ended(&self) -> watch::Receiver<bool> {
        self.stderr_ended.clone()
    }

    /// Takes note of the descendants that the process has now, so that its end also ends those that left
    /// its group. The caller closes stdin afterwards: a process that has left shows none.
    pub async fn note_descendants(&self) {
        let pid = self.pid;
        let looked = tokio::task::spawn_blocking(move || descendants_of(pid)).await;
        // The number of a process that ended may be that of another.
        if self.exit.borrow().is_none() {
            self.descendants.add(looked.unwrap_or_default());
        }
    }

    /// Ends the process and its group: the grace for leaving by itself begins now, so the caller
    /// closes stdin first. Returns when the group is gone, or when every bound has passed.
    pub async fn stop(&self) {
        // A full or closed channel means that the stop is under way or over.
        if self.stop.try_send(()).is_err() {
            tracing::trace!(pid = self.pid, "the stop was already requested");
        }
        let mut swept = self.swept.clone();
        let gone = swept.wait_for(|swept| *swept);
        if tokio::time::timeout(self.longest_stop, gone).await.is_err() {
            tracing::warn!(
                pid = self.pid,
                "the process group still exists after SIGKILL"
            );
        }
    }
}

/// What a refused start means, by the operating system's error.
pub(crate) fn spawn_failure(program: &str, error: &std::io::Error) -> SpawnError {
    use std::io::ErrorKind;
    let (cause, message) = match error.kind() {
        ErrorKind::NotFound => (
            SourceCause::SpawnNotFound,
            format!("`{program}` exists, but the interpreter that its first line names does not"),
        ),
        ErrorKind::PermissionDenied => (
            SourceCause::SpawnDenied,
            format!("`{program}` cannot be executed: permission denied"),
        ),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => (
            SourceCause::SpawnFormat,
            format!("`{program}` is not a program for this machine"),
        ),
        _ => (
            SourceCause::SpawnFailed,
            format!("the operating system refused to start `{program}`: {error}"),
        ),
    };
    SpawnError::new(cause, message)
}
