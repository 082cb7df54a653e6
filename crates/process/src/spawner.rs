//! The thread that starts children. It lives as long as the process, since the parent-death signal
//! depends on the thread that spawned the child and not on the process.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use broker_model::SourceCause;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::containers::{self, Container};
use super::cookie::VARIABLE;
use super::descendants::Cookie;
use super::reaper::NewChild;
use crate::child::spawn_failure;
use crate::{
    Process, ProcessSpec, SpawnError, StderrTail, StopDeadline, StopGrace, lookup, orphans, reaper,
};

/// The maximum number of starts that wait for the thread; one takes about a millisecond.
const MAX_WAITING: usize = 64;

struct Request {
    spec: ProcessSpec,
    grace: StopGrace,
    tail: StderrTail,
    tasks: TaskTracker,
    stop_deadline: StopDeadline,
    /// Makes a wait for the tasks include a start in progress.
    _under_way: TaskTrackerToken,
    runtime: Handle,
    reply: oneshot::Sender<Result<Process, SpawnError>>,
}

/// Whether starts are forbidden, since the broker ends its processes.
static STARTS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Forbids further starts. No process is started after this function returns.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_starts() {
    STARTS_FORBIDDEN.store(true, Ordering::SeqCst);
    orphans::await_start();
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
        if let Some(container) = &spec.container {
            containers::remove_abandoned(spec, container, tasks, stop_deadline).await;
        }
        let (reply, started) = oneshot::channel();
        let request = Request {
            spec: spec.clone(),
            grace,
            tail: tail.clone(),
            tasks: tasks.clone(),
            stop_deadline: stop_deadline.clone(),
            _under_way: tasks.token(),
            runtime: Handle::current(),
            reply,
        };
        let gone = || SpawnError::new(SourceCause::SpawnFailed, "the spawning thread has ended");
        let thread = thread().map_err(|error| {
            SpawnError::new(
                SourceCause::SpawnFailed,
                format!("the spawning thread cannot be started: {error}"),
            )
        })?;
        thread.send(request).await.map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

/// Returns the channel to the thread. The first use starts the thread.
fn thread() -> Result<&'static mpsc::Sender<Request>, &'static io::Error> {
    static THREAD: OnceLock<io::Result<mpsc::Sender<Request>>> = OnceLock::new();
    THREAD
        .get_or_init(|| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING);
            thread::Builder::new()
                .name("mcp-spawner".to_owned())
                .spawn(move || run(receiver))?;
            Ok(sender)
        })
        .as_ref()
}

fn run(mut requests: mpsc::Receiver<Request>) {
    while let Some(request) = requests.blocking_recv() {
        if request.reply.is_closed() {
            continue;
        }
        let started = start(&request);
        // If the caller is gone, the process is dropped here, and its reaper ends it.
        if request.reply.send(started).is_err() {
            tracing::debug!(source = %request.spec.name, "the request to start the process was cancelled");
        }
    }
}

fn start(request: &Request) -> Result<Process, SpawnError> {
    let spec = &request.spec;
    if let Some(cwd) = spec.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(SpawnError::new(
            SourceCause::SpawnFailed,
            format!("`cwd` is not a folder: `{}`", shown(spec, cwd)),
        ));
    }
    let program = lookup::find(spec)?;
    let _runtime = request.runtime.enter();
    let cookie = Cookie::new();
    let mut args = spec.args.clone();
    let container = spec.container.as_ref().and_then(|container| {
        Container::name(container, spec, &program, cookie.number(), &mut args)
    });
    let mut command = command(spec, &program, &args);
    // Replaces a value that the config gives.
    command.env(VARIABLE, cookie.value());
    #[cfg(target_os = "linux")]
    let control_group = super::cgroup::ControlGroup::create().map(|(group, procs)| {
        super::unix::join(&mut command, procs);
        group
    });
    // Before the start: the guard removes the container also if this process is killed right after it.
    container.iter().for_each(Container::enter);
    let claimed = orphans::claim(|| {
        if STARTS_FORBIDDEN.load(Ordering::SeqCst) {
            let message = "the broker is ending";
            return Err(SpawnError::new(SourceCause::SpawnFailed, message));
        }
        let started = command.spawn();
        started.map_err(|error| spawn_failure(&shown(spec, &program), &error))
    });
    if claimed.is_err() {
        container.iter().for_each(Container::leave);
    }
    let (child, claim) = claimed?;
    let started = NewChild {
        child,
        claim,
        cookie,
        spec: spec.clone(),
        container,
        #[cfg(target_os = "linux")]
        control_group,
    };
    Ok(reaper::adopt(
        started,
        &request.tail,
        request.grace,
        request.stop_deadline.clone(),
        &request.tasks,
        &request.runtime,
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the spawner: its thread outlives every child"
)]
fn command(spec: &ProcessSpec, program: &PathBuf, args: &[String]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(&spec.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The reaper ends children; this is for a runtime that ends before its reapers.
        .kill_on_drop(true);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    super::unix::isolate(&mut command);
    command
}

fn shown(spec: &ProcessSpec, path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    broker_model::text::shown_line(&spec.redactor.redact(&text), 300)
}
