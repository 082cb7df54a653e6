//! `mcp-broker jobs events`: prints the events of a job as they come, and goes on after a cut.

use std::time::Duration;

use broker_model::exit::Exit;
use broker_model::job_state::JobState;
use broker_model::text;
use tokio::time::sleep;

use super::asked_broker;
use super::failure::Failure;
use crate::cli::OneJob;
use crate::logging::LogOutput;
use crate::status::{JobsClient, StreamEnd};

/// The pause before a stream that was cut is opened again.
const REOPEN_DELAY: Duration = Duration::from_secs(1);
/// The maximum number of attempts to open a stream again without an event between them.
const MAX_ATTEMPTS: u32 = 60;

/// Returns the exit code for the state of a job; `None` for a job that has not ended.
pub(super) const fn exit_of(state: JobState) -> Option<Exit> {
    match state {
        JobState::Queued | JobState::Running | JobState::InputRequired => None,
        JobState::Succeeded => Some(Exit::Ok),
        JobState::Failed => Some(Exit::JobFailed),
        JobState::Lost => Some(Exit::JobLost),
        JobState::Canceled => Some(Exit::JobCanceled),
    }
}

/// Prints the events behind the number `after`, until the job has ended.
pub(super) async fn run(one: &OneJob, mut after: u64, output: &LogOutput) -> Result<Exit, Failure> {
    let how = &one.asked.how;
    let (target, secret) = asked_broker::open(&one.asked.url, how, output)?;
    let client = JobsClient {
        target: &target,
        secret: secret.as_ref(),
    };
    let (mut attempts, mut ended) = (0, None);
    loop {
        let end = client
            .follow(&one.id, after, |event| {
                (after, attempts) = (event.number, 0);
                ended = event.state().and_then(exit_of).or(ended);
                asked_broker::print(output, how.format, &event.human(), &event.json())
            })
            .await;
        let reason = match (end, ended) {
            (_, Some(exit)) => return Ok(exit),
            (StreamEnd::Unprinted(failure), None) => return Err(failure),
            (StreamEnd::Refused(reason), None) => return Err(Failure::Internal(reason)),
            (StreamEnd::Cut(reason), None) => reason,
        };
        attempts += 1;
        if attempts > MAX_ATTEMPTS {
            return Err(Failure::Internal(reason));
        }
        if attempts == 1 {
            output.note(&text!("{}: the events go on behind {}", reason, after));
        }
        sleep(REOPEN_DELAY).await;
    }
}
