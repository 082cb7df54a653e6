//! `mcp-broker jobs`: lists, shows, awaits, follows and cancels the jobs of a running broker, and checks the file of a store. Starts
//! no server.

use std::path::Path;
use std::time::Duration;

use broker_jobs::check_file;
use broker_model::exit::Exit;
use broker_model::redact::Secret;
use broker_model::terminal::Text;

use super::asked_broker::{open, print};
use super::failure::Failure;
use super::job_events::{self, exit_of};
use super::tree;
use crate::cli::{JobsVerb, OneJob};
use crate::logging::LogOutput;
use crate::status::{JobsClient, ShownJob, Target};

/// The interval in which a job is asked for that has not ended.
const WAIT_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a subcommand.
pub(super) async fn run(verb: &JobsVerb, output: &LogOutput) -> Result<Exit, Failure> {
    match verb {
        JobsVerb::List { status, asked } => {
            let (target, secret) = open(&asked.url, &asked.how, output)?;
            let client = client(&target, secret.as_ref());
            let listed = client.list(status.as_deref()).await;
            let (human, json) = listed.map_err(Failure::Internal)?;
            print(output, asked.how.format, &human, &json)?;
            Ok(Exit::Ok)
        }
        JobsVerb::Show(one) => {
            let (target, secret) = open(&one.asked.url, &one.asked.how, output)?;
            let shown = client(&target, secret.as_ref()).show(&one.id).await;
            print_job(output, one, &shown.map_err(Failure::Internal)?)?;
            Ok(Exit::Ok)
        }
        JobsVerb::Cancel(one) => {
            let (target, secret) = open(&one.asked.url, &one.asked.how, output)?;
            let shown = client(&target, secret.as_ref()).cancel(&one.id).await;
            print_job(output, one, &shown.map_err(Failure::Internal)?)?;
            Ok(Exit::Ok)
        }
        JobsVerb::Wait(one) => wait(one, output).await,
        JobsVerb::Events { one, after } => job_events::run(one, *after, output).await,
        JobsVerb::Check { file } => check(file, output),
    }
}

/// Waits for the end of a job. Its progress is on standard error.
async fn wait(one: &OneJob, output: &LogOutput) -> Result<Exit, Failure> {
    let (target, secret) = open(&one.asked.url, &one.asked.how, output)?;
    let client = client(&target, secret.as_ref());
    let mut last = None;
    loop {
        let job = client.show(&one.id).await.map_err(Failure::Internal)?;
        let progress = job.progress();
        if progress != last {
            progress
                .iter()
                .for_each(|progress| output.progress(progress));
            last = progress;
        }
        let state = job.state().ok_or_else(|| {
            Failure::Internal("the job has a state that this program does not know".to_owned())
        })?;
        let Some(exit) = exit_of(state) else {
            tokio::time::sleep(WAIT_INTERVAL).await;
            continue;
        };
        output.end_progress(last.is_some());
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

const fn client<'a>(target: &'a Target, secret: Option<&'a Secret>) -> JobsClient<'a> {
    JobsClient { target, secret }
}

fn print_job(output: &LogOutput, one: &OneJob, job: &ShownJob) -> Result<(), Failure> {
    print(output, one.asked.how.format, &job.human(), &job.text)
}
