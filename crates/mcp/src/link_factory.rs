//! Servers that are tasks of this runtime, behind real pipes, in place of processes. A program that builds a broker
//! gives them to it; tests with a paused clock do so, since it affects tasks only.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use broker_process::{ExitReport, ProcessSpec};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::pipes;

/// The streams and the environment of a server that is a task.
#[derive(Debug)]
pub struct Pipes {
    /// The stream of bytes written to the server.
    pub input: ChildStdout,
    /// The stream of bytes that the server writes.
    pub output: ChildStdin,
    /// Its environment.
    pub env: BTreeMap<String, String>,
}

/// A server that runs as a task instead of a process, until it returns its exit code or is stopped.
pub type ServerTask = Box<dyn FnOnce(Pipes) -> Pin<Box<dyn Future<Output = i32> + Send>> + Send>;

/// Returns the server for the path of a source; `None` for a process.
type MakeServer = dyn Fn(&str) -> Option<ServerTask> + Send + Sync;

/// Decides at each start of a source with a command whether a task serves it instead of a process. By default, none does.
#[derive(Clone, Default)]
pub struct LinkFactory(Option<Arc<MakeServer>>);

impl LinkFactory {
    /// Makes a factory. `server` gets the path of the source; it returns `None` for a source that is a process.
    pub fn new(server: impl Fn(&str) -> Option<ServerTask> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(server)))
    }

    /// Starts the task that serves a source, if there is one.
    pub(crate) fn start(
        &self,
        source: &str,
        process: &ProcessSpec,
        tasks: &TaskTracker,
    ) -> Option<(ChildStdin, ChildStdout, TaskHandle)> {
        let serve = self.0.as_ref()?(source)?;
        let ends = pipes::open().ok()?;
        let pipes = Pipes {
            input: ends.input,
            output: ends.output,
            env: process.env.clone(),
        };
        let (exit_sender, exit) = watch::channel(None);
        let (ended_sender, stderr_ended) = watch::channel(true);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tasks.spawn(async move {
            let code = stopped.run_until_cancelled(serve(pipes)).await;
            let (code, signal) = (Some(code.unwrap_or(0)), None);
            exit_sender.send_replace(Some(ExitReport { code, signal }));
            drop(ended_sender);
        });
        let task = TaskHandle {
            exit,
            stderr_ended,
            stop,
        };
        Some((ends.stdin, ends.stdout, task))
    }
}

impl fmt::Debug for LinkFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.0.is_some();
        f.debug_tuple("LinkFactory").field(&is_set).finish()
    }
}

/// A task that serves a source.
#[derive(Debug)]
pub(crate) struct TaskHandle {
    /// Its exit; `None` while it runs.
    pub(crate) exit: watch::Receiver<Option<ExitReport>>,
    /// Always true: it writes no stderr.
    pub(crate) stderr_ended: watch::Receiver<bool>,
    stop: CancellationToken,
}

impl TaskHandle {
    /// Ends it. Returns when it has ended.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.exit.clone().wait_for(Option::is_some).await.ok();
    }
}
