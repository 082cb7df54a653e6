//! The task that owns a child: waits for its end, ends it on request or when its handle is dropped, and
//! then ends its group and the descendants outside the group. Every step has a timeout.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::containers::{Container, REMOVE_TIMEOUT, run_removal};
use super::descendants::{Cookie, Descendants, ProcessList, descendants_of};
use super::orphans::Claim;
use super::pinned_process::PinnedProcess;
use super::unix::Group;
use crate::stderr_log::StderrLog;
use crate::{
    Ending, ExitReport, Process, ProcessHandle, ProcessSpec, StderrTail, StopDeadline, StopGrace,
    StopStage,
};

/// The interval of checks while a group ends.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time for the kernel to end a killed process.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// The time of a member of the group between SIGTERM and SIGKILL once the leader has ended.
const GROUP_END_TIMEOUT: Duration = Duration::from_millis(500);

/// The number of running reapers in this process.
static RUNNING_REAPERS: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// Waits until every process that was started has ended with its descendants.
pub async fn all_ended() {
    // The sender is static, so that the wait cannot fail.
    let _ = RUNNING_REAPERS
        .subscribe()
        .wait_for(|count| *count == 0)
        .await;
}

/// A child, and the marks that identify it and its descendants.
pub(super) struct NewChild {
    pub(super) child: Child,
    /// Held until the child was reaped.
    pub(super) claim: Claim,
    pub(super) cookie: Cookie,
    pub(super) spec: ProcessSpec,
    pub(super) container: Option<Container>,
    #[cfg(target_os = "linux")]
    pub(super) control_group: Option<super::cgroup::ControlGroup>,
}

/// Starts the reaper of a child and returns the child's pipes and handle.
pub(super) fn adopt(
    started: NewChild,
    tail: &StderrTail,
    grace: StopGrace,
    stop_deadline: StopDeadline,
    tasks: &TaskTracker,
    runtime: &Handle,
) -> Process {
    let mut child = started.child;
    let pid = child.id().unwrap_or_default();
    let (exit_sender, exit) = watch::channel(None);
    let (swept_sender, swept) = watch::channel(None);
    let (ended_sender, stderr_ended) = watch::channel(false);
    let (stop, stop_receiver) = mpsc::channel(1);
    let descendants = Descendants::default();
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    if let Some(stderr) = child.stderr.take() {
        let log = tail.logged_as().map(StderrLog::new);
        tasks.spawn_on(drain(stderr, tail.clone(), ended_sender, log), runtime);
    }
    let has_container = started.container.is_some();
    let reaper = Reaper {
        child,
        descendants: descendants.clone(),
        _claim: started.claim,
        group: Group::from_leader(pid),
        cookie: started.cookie,
        spec: started.spec,
        container: started.container,
        tasks: tasks.clone(),
        #[cfg(target_os = "linux")]
        control_group: started.control_group,
        grace,
        stop_deadline,
        exit: exit_sender,
        swept: swept_sender,
    };
    RUNNING_REAPERS.send_modify(|count| *count += 1);
    tasks.spawn_on(reaper.run(stop_receiver), runtime);
    let longest_removal = if has_container {
        REMOVE_TIMEOUT
    } else {
        Duration::ZERO
    };
    let longest_stop = grace.close
        + grace.term
        + 2 * GROUP_END_TIMEOUT
        + 4 * KILL_TIMEOUT
        + KILL_TIMEOUT
        + longest_removal;
    Process {
        stdin,
        stdout,
        handle: ProcessHandle {
            pid,
            exit,
            swept,
            stderr_ended,
            stop,
            descendants,
            longest_stop,
        },
    }
}

struct Reaper {
    child: Child,
    descendants: Descendants,
    _claim: Claim,
    group: Option<Group>,
    cookie: Cookie,
    spec: ProcessSpec,
    container: Option<Container>,
    tasks: TaskTracker,
    #[cfg(target_os = "linux")]
    control_group: Option<super::cgroup::ControlGroup>,
    grace: StopGrace,
    stop_deadline: StopDeadline,
    exit: watch::Sender<Option<ExitReport>>,
    swept: watch::Sender<Option<Ending>>,
}

impl Reaper {
    async fn run(mut self, mut stop: mpsc::Receiver<()>) {
        let asked = tokio::select! {
            ended = self.child.wait() => {
                self.publish(ended.ok());
                None
            }
            asked = stop.recv() => Some(asked.is_some()),
        };
        let mut stage = StopStage::Closed;
        if let Some(asked) = asked {
            // If the handle was dropped, a wait has no purpose.
            let grace = if asked {
                self.grace.close
            } else {
                Duration::ZERO
            };
            stage = self.end(grace).await;
        }
        self.sweep().await;
        self.end_descendants().await;
        #[cfg(target_os = "linux")]
        self.end_control_group().await;
        let removed = self.remove_container(stage).await;
        if stage == StopStage::Killed {
            self.report_kill(removed.as_ref());
        }
        self.swept.send_replace(Some(Ending { stage, removed }));
        RUNNING_REAPERS.send_modify(|count| *count -= 1);
    }

    /// Waits for the leader to end by itself, then sends SIGTERM, then SIGKILL.
    async fn end(&mut self, grace: Duration) -> StopStage {
        if let Some(pid) = self.child.id() {
            let found = tokio::task::spawn_blocking(move || descendants_of(pid)).await;
            self.descendants.add(found.unwrap_or_default());
        }
        if let Some(ended) = self.stop_deadline.bound(grace, 3, self.child.wait()).await {
            self.publish(ended.ok());
            return StopStage::Closed;
        }
        if let Some(group) = self.group {
            group.terminate();
        }
        let grace = self.grace.term;
        if let Some(ended) = self.stop_deadline.bound(grace, 2, self.child.wait()).await {
            self.publish(ended.ok());
            return StopStage::Terminated;
        }
        if let Some(group) = self.group {
            group.kill();
        }
        match timeout(KILL_TIMEOUT, self.child.wait()).await {
            Ok(ended) => self.publish(ended.ok()),
            Err(_) => {
                tracing::warn!("a killed process did not end");
                self.publish(None);
            }
        }
        StopStage::Killed
    }

    /// Removes the container if its client was killed, by the broker or by another process: then the container runs on.
    /// Returns its name, or why it may still run; `None` if nothing had to be removed.
    async fn remove_container(&mut self, stage: StopStage) -> Option<Result<String, String>> {
        let container = self.container.take()?;
        let exit = *self.exit.borrow();
        let is_signalled = exit.is_none_or(|exit| exit.code.is_none());
        if stage < StopStage::Killed && !is_signalled {
            container.leave();
            return None;
        }
        let name = container.shown();
        let Some(removal) = container.removal(&self.spec) else {
            container.leave();
            return None;
        };
        let removed = run_removal(&removal, &self.tasks, &self.stop_deadline).await;
        if removed.is_ok() {
            container.leave();
            tracing::info!(source = %self.spec.name, container = %name, "the container was removed, since its client was killed");
        }
        // Without success it stays in the list, so that the guard tries again at the end.
        let removed =
            removed.map_err(|why| format!("the container `{name}` cannot be removed: {why}"));
        Some(removed.map(|()| name))
    }

    fn report_kill(&self, removed: Option<&Result<String, String>>) {
        let rest = match removed {
            Some(Ok(_)) => "its container was removed".to_owned(),
            Some(Err(why)) => why.clone(),
            None => {
                "if it started a container or a process on another host, that still runs".to_owned()
            }
        };
        tracing::warn!(source = %self.spec.name, rest, "the process did not end and was killed");
    }

    fn publish(&self, status: Option<ExitStatus>) {
        self.exit.send_replace(Some(ExitReport {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
        }));
    }

    /// Ends the rest of the process group. It may exist even after a clean exit of the leader. The id of the group
    /// cannot be reused while a member lives; if no member lives, the first signal is sent right after the leader was
    /// reaped, before the id is reused.
    async fn sweep(&mut self) {
        let Some(group) = self.group else { return };
        if !group.terminate() {
            return;
        }
        let left = self
            .stop_deadline
            .bound(GROUP_END_TIMEOUT, 2, emptied(group))
            .await;
        if left.is_some() {
            return;
        }
        group.kill();
        if timeout(KILL_TIMEOUT, emptied(group)).await.is_err() {
            tracing::warn!("processes of a process group still exist after SIGKILL");
        }
    }

    /// Kills processes that belong to the child only by its control group.
    #[cfg(target_os = "linux")]
    async fn end_control_group(&mut self) {
        let Some(group) = self.control_group.take() else {
            return;
        };
        let ended = tokio::task::spawn_blocking(|| group.end(KILL_TIMEOUT)).await;
        if !ended.unwrap_or(false) {
            tracing::warn!("processes of a control group still exist after SIGKILL");
        }
    }

    /// Ends descendants that left the group before the leader ended.
    async fn end_descendants(&mut self) {
        let descendants = self.descendants.take();
        let asked = descendants_ended(&self.cookie, &descendants, false);
        if self
            .stop_deadline
            .bound(GROUP_END_TIMEOUT, 1, asked)
            .await
            .is_some()
        {
            return;
        }
        let killed = descendants_ended(&self.cookie, &descendants, true);
        if timeout(KILL_TIMEOUT, killed).await.is_err() {
            tracing::warn!("processes that left their group still exist after SIGKILL");
        }
    }
}

/// Returns when no process with the cookie and no former descendant of the child is left. Every process
/// that it finds gets SIGKILL, or SIGTERM once.
async fn descendants_ended(cookie: &Cookie, descendants: &ProcessList, kill: bool) {
    let mut asked = false;
    loop {
        let found = find_descendants(cookie, descendants).await;
        if found.is_empty() {
            return;
        }
        if kill || !asked {
            found.iter().for_each(|process| process.signal(kill));
            asked = true;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Reads the table of all processes. This takes a while if there are many.
async fn find_descendants(cookie: &Cookie, descendants: &ProcessList) -> Vec<PinnedProcess> {
    let (cookie, descendants) = (cookie.clone(), descendants.clone());
    let found = tokio::task::spawn_blocking(move || cookie.holders(&descendants)).await;
    found.unwrap_or_else(|error| {
        tracing::debug!(%error, "the search for processes that left their group failed");
        Vec::new()
    })
}

/// Returns when no member of the group is left.
async fn emptied(group: Group) {
    while group.has_members() {
        sleep(POLL_INTERVAL).await;
    }
}

/// Always reads stderr to its end: a child would block on a full pipe.
async fn drain(
    mut stderr: ChildStderr,
    tail: StderrTail,
    ended: watch::Sender<bool>,
    mut log: Option<StderrLog>,
) {
    let mut chunk = vec![0; 16 << 10];
    loop {
        match stderr.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => {
                let lines = tail.push(&chunk[..read]);
                if let Some(log) = &mut log {
                    log.log(&tail, lines);
                }
            }
        }
    }
    if let Some(log) = &mut log {
        log.finish(&tail);
    }
    ended.send_replace(true);
}
