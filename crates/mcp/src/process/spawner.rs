//! The one thread that starts children. It lives as long as the process, since the parent-death
//! signal follows the thread that spawned and not the process.

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

use super::reaper::Started;
use super::strays::Cookie;
use super::{COOKIE, Hurry, Process, StderrTail, orphans, reaper, spawn_failure};
use crate::failure::SourceFailure;
use crate::launch::Launch;
use crate::lookup;

/// Starts that may wait for the thread; one takes about a millisecond.
const WAITING: usize = 64;

struct Request {
    launch: Launch,
    tail: StderrTail,
    tasks: TaskTracker,
    hurry: Hurry,
    /// A wait for the tasks is also a wait for a start that is under way.
    _under_way: TaskTrackerToken,
    runtime: Handle,
    reply: oneshot::Sender<Result<Process, SourceFailure>>,
}

/// Whether the end of everything has begun.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Forbids further starts. No process is started after this function returns.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_starts() {
    REFUSED.store(true, Ordering::SeqCst);
    orphans::await_start();
}

/// Has the thread start `launch`'s program.
pub(super) async fn spawn(
    launch: &Launch,
    tail: &StderrTail,
    tasks: &TaskTracker,
    hurry: &Hurry,
) -> Result<Process, SourceFailure> {
    let (reply, started) = oneshot::channel();
    let request = Request {
        launch: launch.clone(),
        tail: tail.clone(),
        tasks: tasks.clone(),
        hurry: hurry.clone(),
        _under_way: tasks.token(),
        runtime: Handle::current(),
        reply,
    };
    let gone = || SourceFailure::new(SourceCause::SpawnFailed, "the spawning thread is gone");
    let thread = thread().map_err(|error| {
        SourceFailure::new(
            SourceCause::SpawnFailed,
            format!("the spawning thread cannot be started: {error}"),
        )
    })?;
    thread.send(request).await.map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

/// The way to the thread, which the first use starts.
fn thread() -> Result<&'static mpsc::Sender<Request>, &'static io::Error> {
    static THREAD: OnceLock<io::Result<mpsc::Sender<Request>>> = OnceLock::new();
    THREAD
        .get_or_init(|| {
            let (sender, receiver) = mpsc::channel(WAITING);
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
        // A process whose opener is gone is dropped here, and its reaper ends it.
        if request.reply.send(started).is_err() {
            tracing::debug!(source = %request.launch.source.as_str(), "nobody waits for the process any more");
        }
    }
}

fn start(request: &Request) -> Result<Process, SourceFailure> {
    let launch = &request.launch;
    if let Some(cwd) = launch.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(SourceFailure::new(
            SourceCause::SpawnFailed,
            format!("`cwd` is not a folder: `{}`", shown(launch, cwd)),
        ));
    }
    let program = lookup::find(launch)?;
    let _runtime = request.runtime.enter();
    let cookie = Cookie::new(launch.env.get(COOKIE).map_or("", String::as_str));
    let mut command = command(launch, &program);
    command.env(COOKIE, cookie.value());
    #[cfg(target_os = "linux")]
    let control_group = super::cgroup::ControlGroup::create().map(|(group, procs)| {
        super::unix::join(&mut command, procs);
        group
    });
    let (child, claim) = orphans::claim(|| {
        if REFUSED.load(Ordering::SeqCst) {
            let message = "the broker is ending";
            return Err(SourceFailure::new(SourceCause::SpawnFailed, message));
        }
        let started = command.spawn();
        started.map_err(|error| spawn_failure(&shown(launch, &program), &error))
    })?;
    let started = Started {
        child,
        claim,
        cookie,
        #[cfg(target_os = "linux")]
        control_group,
    };
    Ok(reaper::adopt(
        started,
        &request.tail,
        launch.timing,
        request.hurry.clone(),
        &request.tasks,
        &request.runtime,
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the spawner: its thread outlives every child"
)]
fn command(launch: &Launch, program: &PathBuf) -> Command {
    let mut command = Command::new(program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The reaper ends children; this is for a runtime that goes before its reapers do.
        .kill_on_drop(true);
    if let Some(cwd) = &launch.cwd {
        command.current_dir(cwd);
    }
    super::unix::isolate(&mut command);
    command
}

fn shown(launch: &Launch, path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    broker_model::text::shown_line(&launch.redactor.redact(&text), 300)
}
