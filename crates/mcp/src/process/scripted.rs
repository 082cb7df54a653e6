//! Servers that are tasks of this runtime, behind real pipes: a launch of a program that was registered
//! here runs such a task. For tests that stop the clock, since a stopped clock affects tasks only.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use super::{Process, ProcessHandle};
use crate::failure::ExitReport;
use crate::launch::Launch;

/// The time allowed for a stop, which is immediate here.
const LONGEST_STOP: Duration = Duration::from_secs(10);

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

/// Registers `server`: every later launch of this program runs it.
pub fn register<F, S>(program: &str, server: F)
where
    F: Fn(Pipes) -> S + Send + Sync + 'static,
    S: Future<Output = i32> + Send + 'static,
{
    let server: Program = Arc::new(move |pipes| Box::pin(server(pipes)));
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    programs.insert(program.to_owned(), server);
}

/// The process of a registered program.
pub(super) fn spawn(launch: &Launch, tasks: &TaskTracker) -> Option<Process> {
    let programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let program = programs.get(&launch.program)?.clone();
    drop(programs);
    let (stdin, stdout, pipes) = pipes(launch).ok()?;
    let (exit_sender, exit) = watch::channel(None);
    let (swept_sender, swept) = watch::channel(false);
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
        swept_sender.send_replace(true);
        drop(ended_sender);
    });
    Some(Process {
        stdin: Some(stdin),
        stdout: Some(stdout),
        handle: ProcessHandle {
            pid: 0,
            exit,
            swept,
            stderr_ended,
            stop,
            longest_stop: LONGEST_STOP,
        },
    })
}

fn pipes(launch: &Launch) -> io::Result<(ChildStdin, ChildStdout, Pipes)> {
    let (input, stdin) = io::pipe()?;
    let (stdout, output) = io::pipe()?;
    let ours = |end: OwnedFd| ChildStdout::from_std(end.into());
    let theirs = |end: OwnedFd| ChildStdin::from_std(end.into());
    let pipes = Pipes {
        input: ours(input.into())?,
        output: theirs(output.into())?,
        env: launch.env.clone(),
    };
    Ok((theirs(stdin.into())?, ours(stdout.into())?, pipes))
}
