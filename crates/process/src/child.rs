//! Child processes: started by a dedicated thread, each in a process group, each reaped by a task that
//! owns it. Independent of the protocol on the pipes.

use std::time::Duration;

use broker_model::SourceCause;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use crate::descendants::{Descendants, descendants_of};
use crate::{ExitReport, SpawnError};

/// A running child. Dropping it makes its reaper end the whole group at once.
#[derive(Debug)]
pub struct Process {
    /// Its standard input, until it is taken.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, until it is taken.
    pub stdout: Option<ChildStdout>,
    /// The handle that ends it.
    pub handle: ProcessHandle,
}

/// The step of a stop at which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopStage {
    /// It ended by itself, or after its input was closed.
    Closed,
    /// It ended after SIGTERM.
    Terminated,
    /// It was killed.
    Killed,
}

/// The end of a process and of its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The step at which the process ended.
    pub stage: StopStage,
    /// The removal of the container that it started, if the container had to be removed: its name, or why it may still
    /// run.
    pub removed: Option<Result<String, String>>,
}

/// The handle of a child: its exit, and the way to end it.
#[derive(Debug)]
pub struct ProcessHandle {
    pub(crate) pid: u32,
    pub(crate) exit: watch::Receiver<Option<ExitReport>>,
    pub(crate) swept: watch::Receiver<Option<Ending>>,
    pub(crate) stderr_ended: watch::Receiver<bool>,
    pub(crate) stop: mpsc::Sender<()>,
    pub(crate) descendants: Descendants,
    pub(crate) longest_stop: Duration,
}

impl ProcessHandle {
    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the exit of the group leader; `None` while it runs.
    pub fn exit(&self) -> watch::Receiver<Option<ExitReport>> {
        self.exit.clone()
    }

    /// Returns a value that is true once stderr was read to its end.
    pub fn stderr_ended(&self) -> watch::Receiver<bool> {
        self.stderr_ended.clone()
    }

    /// Records the current descendants of the process, so that its end also ends the descendants that left its group.
    /// The caller closes stdin afterwards: an ended process does not show its descendants.
    pub async fn note_descendants(&self) {
        let pid = self.pid;
        let found = tokio::task::spawn_blocking(move || descendants_of(pid)).await;
        // The id of an ended process may belong to another process.
        if self.exit.borrow().is_none() {
            self.descendants.add(found.unwrap_or_default());
        }
    }

    /// Ends the process and its group. The grace to end by itself begins now, so the caller closes
    /// stdin first. Returns how it ended when the group is gone, or `None` when every timeout has passed.
    pub async fn stop(&self) -> Option<Ending> {
        // A full or closed channel means that the stop is in progress or done.
        if self.stop.try_send(()).is_err() {
            tracing::trace!(pid = self.pid, "the stop was already requested");
        }
        let mut swept = self.swept.clone();
        let gone = swept.wait_for(Option::is_some);
        match tokio::time::timeout(self.longest_stop, gone).await {
            Ok(ending) => ending.ok().and_then(|ending| ending.clone()),
            Err(_) => {
                tracing::warn!(
                    pid = self.pid,
                    "the process group still exists after SIGKILL"
                );
                None
            }
        }
    }
}

/// Returns the spawn error for an error of the operating system.
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
