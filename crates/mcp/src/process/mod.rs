//! Child processes: started by one thread of their own, each in a process group, each reaped by a
//! task that owns it. Nothing here knows what is said over the pipes.

#[cfg(target_os = "linux")]
pub(crate) mod census;
#[cfg(target_os = "linux")]
pub(crate) mod cgroup;
#[cfg(target_os = "linux")]
pub(crate) mod children;
mod hurry;
pub(crate) mod orphans;
mod reaper;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod spawner;
mod stderr;
mod strays;
pub(crate) mod unix;

use std::time::Duration;

use broker_model::SourceCause;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::failure::{ExitReport, SourceFailure};
use crate::launch::Launch;

pub(crate) use hurry::Hurry;
pub use reaper::all_ended;
#[cfg(target_os = "linux")]
pub(crate) use spawner::refuse_starts;
pub use stderr::StderrTail;
#[cfg(target_os = "linux")]
pub(crate) use strays::Stray;
pub(crate) use strays::VARIABLE as COOKIE;
pub use unix::trim_heap;

/// A running child. Dropping it makes its reaper end the whole group at once.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) handle: ProcessHandle,
}

/// What is left of a child once its pipes were taken: how it ended, and the way to end it.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    pid: u32,
    exit: watch::Receiver<Option<ExitReport>>,
    swept: watch::Receiver<bool>,
    stderr_ended: watch::Receiver<bool>,
    stop: mpsc::Sender<()>,
    longest_stop: Duration,
}

impl Process {
    /// Starts `launch`'s program with its stderr going into `tail`.
    pub(crate) async fn spawn(
        launch: &Launch,
        tail: &StderrTail,
        tasks: &TaskTracker,
        hurry: &Hurry,
    ) -> Result<Self, SourceFailure> {
        #[cfg(any(test, feature = "scripted"))]
        if let Some(process) = scripted::spawn(launch, tasks) {
            return Ok(process);
        }
        spawner::spawn(launch, tail, tasks, hurry).await
    }
}

impl ProcessHandle {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How the leader ended; `None` while it runs.
    pub(crate) fn exit(&self) -> watch::Receiver<Option<ExitReport>> {
        self.exit.clone()
    }

    /// True once stderr was read to its end.
    pub(crate) fn stderr_ended(&self) -> watch::Receiver<bool> {
        self.stderr_ended.clone()
    }

    /// Ends the process and its group: the grace for leaving by itself begins now, so the caller
    /// closes stdin first. Returns when the group is gone, or when every bound has passed.
    pub(crate) async fn stop(&self) {
        // A full or closed channel means that the stop is under way or over.
        if self.stop.try_send(()).is_err() {
            tracing::trace!(pid = self.pid, "stop was already asked for");
        }
        let mut swept = self.swept.clone();
        let gone = swept.wait_for(|swept| *swept);
        if tokio::time::timeout(self.longest_stop, gone).await.is_err() {
            tracing::warn!(pid = self.pid, "process group is still there after KILL");
        }
    }
}

/// What a refused start means, by the operating system's error.
fn spawn_failure(program: &str, error: &std::io::Error) -> SourceFailure {
    use std::io::ErrorKind;
    let (cause, message) = match error.kind() {
        ErrorKind::NotFound => (
            SourceCause::SpawnNotFound,
            format!("`{program}` is there, but the interpreter that its first line names is not"),
        ),
        ErrorKind::PermissionDenied => (
            SourceCause::SpawnDenied,
            format!("`{program}` may not be executed"),
        ),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => (
            SourceCause::SpawnFormat,
            format!("`{program}` is no program for this machine"),
        ),
        _ => (
            SourceCause::SpawnFailed,
            format!("the operating system refused to start `{program}`: {error}"),
        ),
    };
    SourceFailure::new(cause, message)
}
