//! The command that runs after the tool list of a session has changed, for clients that ignore the notification. It
//! delays no reply, and its failure has no effect on the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use broker_process::{ExitReport, Process, ProcessSpec, StderrTail, StopDeadline, StopGrace};
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use broker_core::{Identity, Subject};

/// The maximum time of a run.
const RUN_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum time between the starts of two runs for a session.
const RUN_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of runs at a time.
const MAX_RUNS: usize = 4;
/// The maximum bytes of a run's output that are read.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// The maximum lines of the output in one log message, and the characters of a line.
const MAX_LINES: usize = 1000;
const MAX_LINE_CHARS: usize = 400;
/// The maximum bytes of the caller's name in the environment of a run.
const MAX_SUBJECT_BYTES: usize = 256;

/// The command, and the bound of its runs.
#[derive(Debug)]
pub struct ListChangedExec {
    process: ProcessSpec,
    slots: Semaphore,
    /// The tasks of processes.
    tasks: TaskTracker,
}

/// Runs the command for one session.
#[derive(Debug)]
pub struct Announcer {
    exec: Arc<ListChangedExec>,
    /// A hash of the session's id.
    session: String,
    subject: String,
    /// Cancelled when the broker ends. This ends runs.
    end: CancellationToken,
    state: Arc<Mutex<Waiting>>,
}

/// The changes that no run was started for.
#[derive(Debug, Default)]
struct Waiting {
    changed: Changed,
    /// Whether a task runs the command until no change waits.
    is_running: bool,
}

/// The numbers of tools that a change added and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub added: usize,
    pub removed: usize,
}

impl Changed {
    /// Adds another change.
    pub fn add(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
    }
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("the command was not started: {0}")]
    Spawn(#[from] broker_process::SpawnError),
    #[error("the command did not end within {} s and was ended", RUN_TIMEOUT.as_secs())]
    Timeout,
    #[error("the command {0}")]
    Failed(ExitReport),
}

impl ListChangedExec {
    /// Returns the runner of a command. The command was expanded.
    pub fn new(process: ProcessSpec) -> Self {
        Self {
            process,
            slots: Semaphore::new(MAX_RUNS),
            tasks: TaskTracker::new(),
        }
    }

    /// Runs the command once with these variables.
    async fn run(&self, variables: [(&str, String); 4]) -> Result<(), RunError> {
        let mut process = self.process.clone();
        for (name, value) in variables {
            process.env.insert(name.to_owned(), value);
        }
        let redactor = process.redactor.clone();
        let tail = StderrTail::new(redactor.clone());
        let grace = StopGrace {
            close: Duration::ZERO,
            term: Duration::ZERO,
        };
        let never = StopDeadline::never();
        let started = Process::spawn(&process, grace, &tail, &self.tasks, &never);
        let mut running = started.await?;
        drop(running.stdin.take());
        let mut output = Vec::new();
        let run = async {
            if let Some(stdout) = running.stdout.take() {
                // An output that breaks off ends like one that is complete; the exit decides.
                let read = stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut output).await;
                if let Err(error) = read {
                    tracing::debug!(%error, "the output of the command broke off");
                }
            }
            let mut exit = running.handle.exit();
            let exit = exit.wait_for(Option::is_some).await;
            exit.ok().and_then(|exit| *exit)
        };
        let exit = timeout(RUN_TIMEOUT, run).await;
        // Descendants end with the run.
        running.handle.stop().await;
        log_output(&output, &tail, &redactor);
        match exit {
            Err(_elapsed) => Err(RunError::Timeout),
            Ok(Some(ExitReport { code: Some(0), .. })) => Ok(()),
            Ok(exit) => Err(RunError::Failed(exit.unwrap_or(ExitReport {
                code: None,
                signal: None,
            }))),
        }
    }
}

/// Logs what a run printed, without secrets.
fn log_output(output: &[u8], tail: &StderrTail, redactor: &Redactor) {
    let output = String::from_utf8_lossy(output);
    let lines = output.lines().map(|line| redactor.redact(line));
    for line in lines.take(MAX_LINES).chain(tail.lines(MAX_LINES)) {
        let line = shown_line(&line, MAX_LINE_CHARS);
        tracing::debug!(line, "output of the command for changed lists");
    }
}

impl Announcer {
    /// One for a session of this caller, by a hash of the session's id. Runs end when `end` is cancelled.
    pub fn new(
        exec: &Arc<ListChangedExec>,
        session: String,
        identity: &Identity,
        end: CancellationToken,
    ) -> Self {
        Self {
            exec: Arc::clone(exec),
            session,
            subject: name_of(identity.subject()),
            end,
            state: Arc::default(),
        }
    }

    /// Runs the command for a change. Changes during a run are one further run.
    pub fn changed(&self, changed: Changed) {
        let mut state = lock(&self.state);
        state.changed.add(changed);
        if std::mem::replace(&mut state.is_running, true) {
            return;
        }
        drop(state);
        let (exec, state) = (Arc::clone(&self.exec), Arc::clone(&self.state));
        let (session, subject) = (self.session.clone(), self.subject.clone());
        let end = self.end.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = run_until_idle(&exec, &state, &session, &subject) => {}
                () = end.cancelled() => {}
            }
        });
    }
}

async fn run_until_idle(
    exec: &ListChangedExec,
    state: &Mutex<Waiting>,
    session: &str,
    subject: &str,
) {
    loop {
        let Ok(slot) = exec.slots.acquire().await else {
            return;
        };
        let changed = {
            let mut state = lock(state);
            let changed = std::mem::take(&mut state.changed);
            if changed == Changed::default() {
                state.is_running = false;
                return;
            }
            changed
        };
        let next = Instant::now() + RUN_INTERVAL;
        let outcome = exec
            .run([
                ("MCP_BROKER_SESSION", session.to_owned()),
                ("MCP_BROKER_SUBJECT", subject.to_owned()),
                ("MCP_BROKER_TOOLS_ADDED", changed.added.to_string()),
                ("MCP_BROKER_TOOLS_REMOVED", changed.removed.to_string()),
            ])
            .await;
        if let Err(error) = outcome {
            let error = shown_line(&exec.process.redactor.redact(&error.to_string()), 400);
            tracing::warn!("`mcp.list_changed_exec`: {error}");
        }
        drop(slot);
        sleep_until(next).await;
    }
}

/// Writes the name of a caller with the kind of the caller in front. A key with the name `local` is `key:local`, so that
/// no command takes it for the local program.
pub fn name_of(subject: &Subject) -> String {
    let (kind, name) = match subject {
        Subject::Anonymous => return "anonymous".to_owned(),
        Subject::Secret => return "secret".to_owned(),
        Subject::Local => return "local".to_owned(),
        Subject::Key { name } => ("key", name),
        Subject::Token { subject, .. } => ("token", subject),
    };
    shown_subject(&format!("{kind}:{name}"))
}

/// A subject without control characters, in at most [`MAX_SUBJECT_BYTES`].
fn shown_subject(subject: &str) -> String {
    let mut shown = String::new();
    for c in subject.chars().filter(|c| !c.is_control()) {
        if shown.len() + c.len_utf8() > MAX_SUBJECT_BYTES {
            break;
        }
        shown.push(c);
    }
    shown
}

fn lock(state: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // The counts are valid after a panic.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_caller_has_its_kind_in_front() {
        let key = Subject::Key {
            name: "local".into(),
        };
        assert_eq!(name_of(&key), "key:local");
        let token = Subject::Token {
            issuer: "https://id".into(),
            subject: "secret".into(),
        };
        assert_eq!(name_of(&token), "token:secret");
        assert_eq!(name_of(&Subject::Local), "local");
    }

    #[test]
    fn subject_of_a_run_has_no_control_characters_and_is_short() {
        assert_eq!(shown_subject("a\nb\u{1b}[0m"), "ab[0m");
        let long = "é".repeat(200);
        assert_eq!(shown_subject(&long), "é".repeat(128));
    }
}
