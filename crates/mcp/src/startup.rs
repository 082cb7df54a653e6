//! The timeout of a start, and the explanation of a failed one.

use std::time::Duration;

use broker_model::SourceCause;
use tokio::time::{Instant, sleep_until};

use crate::failure::SourceFailure;
use crate::spec::SourceSpec;
use broker_process::StderrTail;

/// The maximum total time of a start that makes progress, as a multiple of its timeout.
const MAX_TIMEOUT_FACTOR: u32 = 3;
/// The maximum number of variables that a message names.
const MAX_NAMES: usize = 8;
/// Output on stderr within this time counts as progress.
const ACTIVITY_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns when a start that began at `start` has timed out. While there is output on stderr, an installer may be
/// running, and ending it would discard its work.
pub(crate) async fn expired(start: Instant, base: Duration, tail: &StderrTail) -> SourceFailure {
    let last = start + base * MAX_TIMEOUT_FACTOR;
    let window = ACTIVITY_TIMEOUT.min(base / 2);
    let mut deadline = start + base;
    loop {
        sleep_until(deadline).await;
        let moved = tail.last_activity().filter(|at| *at + window > deadline);
        match moved {
            Some(at) if deadline < last => deadline = (at + window).min(last),
            _ => break,
        }
    }
    let message = format!("no answer within {} s", start.elapsed().as_secs());
    SourceFailure {
        stderr: tail.for_failure(),
        ..SourceFailure::new(SourceCause::StartupTimeout, message)
    }
}

/// Adds to the message that the process is stopped by a signal: the system stops a process that reads a
/// terminal from the background.
pub(crate) fn name_stop(mut failure: SourceFailure, pid: Option<u32>) -> SourceFailure {
    let Some(pid) = pid else { return failure };
    // Only Linux has this file; on other systems the message stays as it is.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    if state.is_some_and(|rest| rest.starts_with('T')) {
        failure.process_stopped = true;
        failure.message = format!(
            "{}; its process is stopped, like a process that waits for a terminal",
            failure.message
        );
    }
    failure
}

/// Returns the pause before the second try of a start that began at `began`: the one that the server asks for, or a
/// short one. Fails with the failure of the first try if the time of the start ends before.
pub(crate) fn pause_before_second(
    first: &SourceFailure,
    spec: &SourceSpec,
    began: Instant,
) -> Result<Duration, SourceFailure> {
    let pause = first.retry_after.unwrap_or(spec.timing.second_try);
    let rest = spec.startup_timeout.saturating_sub(began.elapsed());
    if pause < rest {
        return Ok(pause);
    }
    let mut failure = first.clone();
    if first.retry_after.is_some() {
        failure.message = format!(
            "{}; another try is due in {} s (`Retry-After`, or what is usual without it), and `startup_timeout` is {} s",
            failure.message,
            pause.as_secs(),
            spec.startup_timeout.as_secs(),
        );
    }
    Err(failure)
}

/// Returns the failure of a start of two tries. A second try that got no answer in the rest of the time says less than
/// the first.
pub(crate) fn name_first(second: SourceFailure, first: SourceFailure) -> SourceFailure {
    if second.cause == SourceCause::StartupTimeout {
        return SourceFailure {
            message: format!(
                "{}; after that, a second try got {}",
                first.message, second.message
            ),
            process_stopped: second.process_stopped,
            ..first
        };
    }
    if second.message == first.message {
        return second;
    }
    SourceFailure {
        message: format!(
            "{}; before that, a first try failed: {}",
            second.message, first.message
        ),
        ..second
    }
}

/// Makes an exit one before the server was ready, with its last words.
pub(crate) fn explain_exit(failure: &mut SourceFailure, tail: &StderrTail) {
    if failure.cause == SourceCause::Exited {
        failure.cause = SourceCause::ExitBeforeReady;
        let clean = failure.exit.is_some_and(|exit| exit.code == Some(0));
        failure.message = if clean {
            "exited 0 without speaking MCP; is it a stdio server?".to_owned()
        } else {
            format!("{} before it answered", failure.message)
        };
        if let Some(last) = tail.last_line().filter(|_| !clean) {
            failure.quotes_stderr = true;
            failure.message = format!(
                "{}; its last line on stderr: {}",
                failure.message,
                cut(&last)
            );
        }
    }
}

/// Names the variables of the config that are set and empty if the server refused the credentials or ended: CI gives
/// empty secrets to the runs of forks and bots.
pub(crate) fn name_empty(failure: &mut SourceFailure, spec: &SourceSpec) {
    if !failure.cause.may_lack_value() || spec.empty_variables.is_empty() {
        return;
    }
    let verb = if spec.empty_variables.len() == 1 {
        "is"
    } else {
        "are"
    };
    failure.message = format!(
        "{}; {} of its config {verb} set and empty",
        failure.message,
        names(&spec.empty_variables)
    );
}

/// Returns at most [`MAX_NAMES`] names, for a message.
fn names(all: &[String]) -> String {
    let shown: Vec<_> = all
        .iter()
        .take(MAX_NAMES)
        .map(|name| format!("`{name}`"))
        .collect();
    match all.len().saturating_sub(MAX_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Completes the message of a failed start: an exit becomes an exit before it was ready, and variables
/// that the child did not inherit are named. `noise` are the lines of the server that are not messages.
pub(crate) fn explain(
    mut failure: SourceFailure,
    spec: &SourceSpec,
    tail: &StderrTail,
    noise: Vec<String>,
) -> SourceFailure {
    explain_exit(&mut failure, tail);
    name_empty(&mut failure, spec);
    let said = |line: String| format!("it wrote a line that is not a message: {line}").into();
    failure.said = failure.said.or_else(|| noise.into_iter().next().map(said));
    if !spec.withheld.is_empty() && failure.cause != SourceCause::Stopped {
        failure.message = format!(
            "{}; these variables were not passed on: {}",
            failure.message,
            names(&spec.withheld)
        );
    }
    failure
}

fn cut(line: &str) -> String {
    broker_model::text::shown_line(line, 200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_model::redact::Redactor;

    #[tokio::test(start_paused = true)]
    async fn startup_timeout_is_extended_while_stderr_grows() {
        let silent = StderrTail::new(Redactor::default());
        let base = Duration::from_millis(60);
        let start = Instant::now();
        let failure = expired(start, base, &silent).await;
        assert_eq!(failure.cause, SourceCause::StartupTimeout);
        assert!(start.elapsed() >= base);

        let busy = StderrTail::new(Redactor::default());
        let start = Instant::now();
        let talk = async {
            loop {
                busy.push(b"fetching\n");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            failure = expired(start, base, &busy) => assert_eq!(failure.stderr.last().map(String::as_str), Some("fetching")),
            () = talk => {}
        }
        assert!(start.elapsed() >= base * MAX_TIMEOUT_FACTOR);
    }
}
