//! Servers that are tasks of this runtime, behind real pipes: starting a registered program runs such a task. For tests
//! with a paused clock: it affects tasks only.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use broker_process::{ExitReport, ProcessSpec};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::connection::pipes;

/// The streams and the environment of a scripted server.
#[derive(Debug)]
pub struct Pipes {
    /// The stream of bytes written to the server.
    pub input: ChildStdout,
    /// The stream of bytes that the server writes.
    pub output: ChildStdin,
    /// Its environment.
    pub env: BTreeMap<String, String>,
}

/// A server: it ends with this exit code, or when it is stopped.
type Program = Arc<dyn Fn(Pipes) -> Pin<Box<dyn Future<Output = i32> + Send>> + Send + Sync>;

static PROGRAMS: LazyLock<Mutex<BTreeMap<String, Program>>> = LazyLock::new(Mutex::default);

/// Registers `server`: every later start of this program runs it.
pub fn register<F, S>(program: &str, server: F)
where
    F: Fn(Pipes) -> S + Send + Sync + 'static,
    S: Future<Output = i32> + Send + 'static,
{
    let server: Program = Arc::new(move |pipes| Box::pin(server(pipes)));
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    programs.insert(program.to_owned(), server);
}

/// The task that runs a registered program.
#[derive(Debug)]
pub(crate) struct TaskHandle {
    exit: watch::Receiver<Option<ExitReport>>,
    stderr_ended: watch::Receiver<bool>,
    stop: mpsc::Sender<()>,
}

impl TaskHandle {
    /// Returns its exit; `None` while it runs.
    pub(crate) fn exit(&self) -> watch::Receiver<Option<ExitReport>> {
        self.exit.clone()
    }

    /// Returns a value that is always true: it writes no stderr.
    pub(crate) fn stderr_ended(&self) -> watch::Receiver<bool> {
        self.stderr_ended.clone()
    }

    /// Ends it. Returns when it has ended.
    pub(crate) async fn stop(&self) {
        // A full or closed channel means that it is ending or has ended.
        if self.stop.try_send(()).is_err() {
            tracing::trace!("the stop was already requested");
        }
        let mut exit = self.exit.clone();
        if exit.wait_for(Option::is_some).await.is_err() {
            tracing::trace!("the task is gone");
        }
    }
}

/// Starts the registered program that `spec` names, if there is one.
pub(crate) fn start(
    spec: &ProcessSpec,
    tasks: &TaskTracker,
) -> Option<(ChildStdin, ChildStdout, TaskHandle)> {
    let programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let program = programs.get(&spec.program)?.clone();
    drop(programs);
    let ends = pipes::open().ok()?;
    let (stdin, stdout) = (ends.stdin, ends.stdout);
    let pipes = Pipes {
        input: ends.input,
        output: ends.output,
        env: spec.env.clone(),
    };
    let (exit_sender, exit) = watch::channel(None);
    let (ended_sender, stderr_ended) = watch::channel(true);
    let (stop, mut stopped) = mpsc::channel(1);
    tasks.spawn(async move {
        let code = tokio::select! {
            biased;
            _ = stopped.recv() => 0,
            code = program(pipes) => code,
        };
        let code = Some(code);
        exit_sender.send_replace(Some(ExitReport { code, signal: None }));
        drop(ended_sender);
    });
    let task = TaskHandle {
        exit,
        stderr_ended,
        stop,
    };
    Some((stdin, stdout, task))
}
