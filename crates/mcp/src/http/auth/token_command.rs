//! A command that prints a token. It runs like the server of a source that is a process.

use std::time::Duration;

use broker_model::SourceCause;
use broker_model::redact::{Redactor, Secret};
use broker_model::text::shown_line;
use broker_process::{
    ExitReport, Process, ProcessSpec, SpawnError, StderrTail, StopDeadline, StopGrace,
};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::grant::{Grant, TokenType};
use super::{FETCH_TIMEOUT, MAX_TOKEN_BYTES, Token};
use crate::failure::SourceFailure;
use crate::opening::Opening;
use crate::spec::Timing;

/// Lines of its stderr that are kept.
const MAX_STDERR_LINES: usize = 100;
/// Maximum time to read the rest of its stderr.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);
/// Lines of its stderr in a failure.
const MAX_FAILURE_LINES: usize = 20;

/// A command that prints a token.
#[derive(Debug)]
pub(super) struct TokenCommand {
    process: ProcessSpec,
    grace: StopGrace,
    /// The stderr of the source.
    tail: StderrTail,
    tasks: TaskTracker,
    stop_deadline: StopDeadline,
}

/// Why a command gave no token.
enum CommandError {
    Spawn(SpawnError),
    Timeout,
    TooLong,
    Failed(ExitReport),
    Invalid(&'static str),
}

impl TokenCommand {
    pub(super) fn new(process: &ProcessSpec, timing: Timing, opening: &Opening<'_>) -> Self {
        Self {
            process: process.clone(),
            // A command that is ended has no work to finish.
            grace: StopGrace {
                close: Duration::ZERO,
                term: timing.term_grace,
            },
            tail: opening.tail.clone(),
            tasks: opening.tasks.clone(),
            stop_deadline: opening.stop_deadline.clone(),
        }
    }

    /// Runs the command. Dropping the future ends it with its descendants.
    pub(super) async fn run(&self, masks: &Redactor) -> Result<Grant, SourceFailure> {
        // The token is masked in what the command writes to stderr, and it is known only at the end.
        let own_tail = StderrTail::new(masks.clone());
        let mut output = Vec::new();
        let result = timeout(FETCH_TIMEOUT, self.output(&own_tail, &mut output)).await;
        let result = result.unwrap_or(Err(CommandError::Timeout));
        let result = result.and_then(|()| read(&output).map_err(CommandError::Invalid));
        let stderr = masked_lines(&own_tail, &output, result.as_ref().ok());
        for line in &stderr {
            self.tail.push(line.as_bytes());
            self.tail.push(b"\n");
        }
        result.map_err(|error| error.into_failure(stderr))
    }

    /// Reads the output up to its end, and checks the exit.
    async fn output(&self, tail: &StderrTail, output: &mut Vec<u8>) -> Result<(), CommandError> {
        let started = Process::spawn(
            &self.process,
            self.grace,
            tail,
            &self.tasks,
            &self.stop_deadline,
        );
        let mut process = started.await.map_err(CommandError::Spawn)?;
        drop(process.stdin.take());
        if let Some(stdout) = process.stdout.take() {
            let mut bounded = stdout.take(MAX_TOKEN_BYTES as u64 + 1);
            // An output that breaks off ends like one that is complete; its exit decides.
            if let Err(error) = bounded.read_to_end(output).await {
                tracing::debug!(%error, "the output of a token command broke off");
            }
        }
        if output.len() > MAX_TOKEN_BYTES {
            return Err(CommandError::TooLong);
        }
        let mut exit = process.handle.exit();
        let exit = exit.wait_for(Option::is_some).await;
        let exit = exit.ok().and_then(|exit| *exit).unwrap_or(ExitReport {
            code: None,
            signal: None,
        });
        let mut stderr_ended = process.handle.stderr_ended();
        let stderr_ended = stderr_ended.wait_for(|ended| *ended);
        if timeout(STDERR_TIMEOUT, stderr_ended).await.is_err() {
            tracing::debug!("a descendant of a token command keeps its stderr open");
        }
        match exit.code {
            Some(0) => Ok(()),
            _ => Err(CommandError::Failed(exit)),
        }
    }
}

/// Reads the token in an output: the bare token, or an object like the answer of a token endpoint.
fn read(output: &[u8]) -> Result<Grant, &'static str> {
    let text = std::str::from_utf8(output).map_err(|_| "is not UTF-8")?;
    let text = text.trim_ascii();
    match text.starts_with('{') {
        true => Grant::read(text.as_bytes(), TokenType::Optional),
        false => Token::new(text).map(Grant::lasting),
    }
}

/// Returns the lines on stderr, with the output and the token masked.
fn masked_lines(tail: &StderrTail, output: &[u8], grant: Option<&Grant>) -> Vec<String> {
    let output = String::from_utf8_lossy(output);
    let secrets = [
        Some(Secret::new(output.trim_ascii())),
        grant.map(|grant| grant.token.secret.clone()),
    ];
    let masks = Redactor::new(secrets.into_iter().flatten());
    let lines = tail.lines(MAX_STDERR_LINES).into_iter();
    lines.map(|line| masks.redact(&line)).collect()
}

impl CommandError {
    fn into_failure(self, mut stderr: Vec<String>) -> SourceFailure {
        let seconds = FETCH_TIMEOUT.as_secs();
        let (cause, message) = match self {
            Self::Spawn(error) => (
                error.cause,
                format!("`token_command` was not started: {error}"),
            ),
            Self::Timeout => (
                SourceCause::Unreachable,
                format!("`token_command` did not end within {seconds} s"),
            ),
            Self::TooLong => (
                SourceCause::NeedsAuth,
                format!("`token_command` printed more than {MAX_TOKEN_BYTES} bytes"),
            ),
            Self::Failed(exit) => (SourceCause::NeedsAuth, format!("`token_command` {exit}")),
            Self::Invalid(reason) => (
                SourceCause::NeedsAuth,
                format!("the output of `token_command` {reason}"),
            ),
        };
        let last = stderr.last().map(|last| shown_line(last, 200));
        let message = match &last {
            Some(last) => format!("{message}; its last line on stderr: {last}"),
            None => message,
        };
        stderr.drain(..stderr.len().saturating_sub(MAX_FAILURE_LINES));
        SourceFailure {
            stderr,
            quotes_stderr: last.is_some(),
            ..SourceFailure::new(cause, message)
        }
    }
}
