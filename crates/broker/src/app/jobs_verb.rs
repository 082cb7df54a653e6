//! `mcp-broker jobs`: lists, shows, awaits and cancels the jobs of a running broker, and checks the file of a store. Starts
//! no server.

use std::path::Path;
use std::time::Duration;

use broker_jobs::check_file;
use broker_model::exit::Exit;
use broker_model::job_state::JobState;
use broker_model::redact::{Redactor, Secret};
use broker_model::terminal::Text;

use super::failure::Failure;
use super::http::load_secret;
use super::tree;
use crate::cli::{AskedBroker, Format, JobsVerb, OneJob};
use crate::logging::LogOutput;
use crate::status::{JobsClient, ShownJob, Target};

/// The interval in which a job is asked for that has not ended.
const WAIT_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a subcommand.
pub(super) async fn run(verb: &JobsVerb, output: &LogOutput) -> Result<Exit, Failure> {
    match verb {
        JobsVerb::List { status, asked } => {
            let (target, secret) = open(asked, output)?;
            let client = client(&target, secret.as_ref());
            let listed = client.list(status.as_deref()).await;
            let (human, json) = listed.map_err(Failure::Internal)?;
            print(output, asked.format, &human, &json)?;
            Ok(Exit::Ok)
        }
        JobsVerb::Show(one) => {
            let (target, secret) = open(&one.asked, output)?;
            let shown = client(&target, secret.as_ref()).show(&one.id).await;
            print_job(output, one, &shown.map_err(Failure::Internal)?)?;
            Ok(Exit::Ok)
        }
        JobsVerb::Cancel(one) => {
            let (target, secret) = open(&one.asked, output)?;
            let shown = client(&target, secret.as_ref()).cancel(&one.id).await;
            print_job(output, one, &shown.map_err(Failure::Internal)?)?;
            Ok(Exit::Ok)
        }
        JobsVerb::Wait(one) => wait(one, output).await,
        JobsVerb::Check { file } => check(file, output),
    }
}

/// Waits for the end of a job. Its progress is on standard error.
async fn wait(one: &OneJob, output: &LogOutput) -> Result<Exit, Failure> {
    let (target, secret) = open(&one.asked, output)?;
    let client = client(&target, secret.as_ref());
    let mut last = None;
    loop {
        let job = client.show(&one.id).await.map_err(Failure::Internal)?;
        let progress = job.progress();
        if progress != last {
            progress.iter().for_each(|progress| output.note(progress));
            last = progress;
        }
        let state = job.state().ok_or_else(|| {
            Failure::Internal("the job has a state that this program does not know".to_owned())
        })?;
        let exit = match state {
            JobState::Queued | JobState::Running | JobState::InputRequired => {
                tokio::time::sleep(WAIT_INTERVAL).await;
                continue;
            }
            JobState::Succeeded => Exit::Ok,
            JobState::Failed => Exit::JobFailed,
            JobState::Lost => Exit::JobLost,
            JobState::Canceled => Exit::JobCanceled,
        };
        print_job(output, one, &job)?;
        return Ok(exit);
    }
}

/// Checks the file of a store.
fn check(file: &Path, output: &LogOutput) -> Result<Exit, Failure> {
    let faults = check_file(file);
    let faults = faults.map_err(|error| Failure::Usage(error.to_string()))?;
    let exit = match faults.is_empty() {
        true => Exit::Ok,
        false => Exit::Failure,
    };
    let mut text = Text::new();
    for fault in &faults {
        text.push(broker_model::text!("{}\n", fault.clone()));
    }
    if faults.is_empty() {
        text.push(broker_model::text!("the store has no fault\n"));
    }
    tree::print(&output.human_text(&text))?;
    Ok(exit)
}

fn open(asked: &AskedBroker, output: &LogOutput) -> Result<(Target, Option<Secret>), Failure> {
    let target = Target::parse(&asked.url);
    let target = target.and_then(|target| target.trusting(asked.ca_file.clone()));
    let target = target.map_err(Failure::Usage)?;
    let secret = load_secret(None, asked.secret_file.as_deref())?;
    output.mask(&Redactor::new(secret.clone()));
    Ok((target, secret))
}

const fn client<'a>(target: &'a Target, secret: Option<&'a Secret>) -> JobsClient<'a> {
    JobsClient { target, secret }
}

fn print_job(output: &LogOutput, one: &OneJob, job: &ShownJob) -> Result<(), Failure> {
    print(output, one.asked.format, &job.human(), &job.text)
}

fn print(output: &LogOutput, format: Format, human: &Text, json: &str) -> Result<(), Failure> {
    let text = match format {
        Format::Human => output.human_text(human),
        Format::Json => output.json_text(json),
    };
    tree::print(&text).map(drop)
}
