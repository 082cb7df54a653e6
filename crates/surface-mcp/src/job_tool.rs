//! The tool `job`: a model waits for a call that became a job, cancels it, or reads its result in parts.

use std::time::Duration;

use broker_core::{
    AcceptedJob, Account, Broker, CallCode, CallMode, CoreError, Identity, ItemKind, JobDesk,
    JobRequest, JobResult, JobState, JobView, Outcome,
};
use broker_model::text::shown_line;
use broker_surface::job_json;
use broker_wire::Era;
use broker_wire::write::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::Client;
use crate::job_resource;
use crate::result::{self, ServerResult};

/// The name of the tool.
pub(super) const NAME: &str = "job";
/// The longest time that one call of the tool waits. Many clients give up after 60 s.
const WAIT_TIMEOUT: Duration = Duration::from_secs(50);
/// The characters that one call reads, if it does not say how many, and the maximum.
const READ_CHARS: usize = 20_000;
const MAX_READ_CHARS: usize = 100_000;
/// A longer result is read in parts.
const MAX_WHOLE_BYTES: usize = 25_000;
/// The characters of the id of a kept result in `_meta`: `,"rest":"r_…"`.
pub(super) const REST_CHARS: usize = 40;
/// The number of events that a waiting call reads at once.
const EVENTS_AT_ONCE: usize = 100;

/// The arguments of the tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    action: Action,
    #[serde(default)]
    pointer: String,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Wait,
    Cancel,
    Read,
}

/// Returns the entry of the tool in lists. Each session pays for its words, and the texts that name a job say the rest.
pub(super) fn entry() -> Value {
    json!({
        "name": NAME,
        "description": "Waits for a job, cancels it or reads its result",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "action": { "enum": ["wait", "cancel", "read"] },
                "pointer": { "type": "string" },
                "offset": { "type": "integer" },
                "limit": { "type": "integer" },
            },
            "required": ["id"],
        },
        // Without it, clients ask their user before each wait.
        "annotations": { "destructiveHint": false },
    })
}

/// Answers a call of the tool.
pub(super) async fn answer(
    client: &Client<impl Broker>,
    account: &Account,
    arguments: &[u8],
    era: Era,
) -> Result<Json, Box<CoreError>> {
    let arguments: Arguments = serde_json::from_slice(arguments).map_err(|error| {
        let message = shown_line(&format!("the arguments of `{NAME}`: {error}"), 300);
        Box::new(CoreError::new(CallCode::FieldInvalid, message).maybe_executed(false))
    })?;
    let Some(desk) = client.broker.jobs() else {
        let error = CoreError::new(CallCode::JobNotFound, "jobs are off here");
        return Err(Box::new(error));
    };
    let (identity, id) = (&client.identity, arguments.id.as_str());
    match arguments.action {
        Action::Wait => {
            let draining = client.broker.services().drain().draining();
            let job = wait(&**desk, (identity, id), &draining).await?;
            match job.state {
                JobState::Queued | JobState::Running | JobState::InputRequired => {
                    Ok(result::own(&unfinished_text(&job), era))
                }
                JobState::Succeeded | JobState::Failed | JobState::Canceled | JobState::Lost => {
                    let ended = desk.result(identity, id).await?;
                    whole((client, account), &job, ended, era).await
                }
            }
        }
        Action::Cancel => {
            let job = desk.cancel(identity, id).await?;
            let text = match job.state {
                JobState::Canceled => "The job is cancelled; its call was not sent.",
                _ => "The job is being cancelled; its call may have been executed.",
            };
            Ok(result::own(text, era))
        }
        Action::Read => {
            let ended = desk.read(identity, id).await?;
            let limit = arguments.limit.unwrap_or(READ_CHARS).min(MAX_READ_CHARS);
            let read = move || part(&ended, &arguments.pointer, arguments.offset, limit);
            let text = client.broker.services().shape_long(account, read).await?;
            Ok(result::own(&text, era))
        }
    }
}

/// Waits for the end of a job, until the time is over or the broker drains.
async fn wait(
    desk: &dyn JobDesk,
    (identity, id): (&Identity, &str),
    draining: &CancellationToken,
) -> Result<JobView, Box<CoreError>> {
    let end = Instant::now() + WAIT_TIMEOUT;
    let mut after = 0;
    loop {
        let job = desk.show(identity, id).await?;
        if job.state.is_finished() {
            return Ok(job);
        }
        after = job.last_event.max(after);
        let changed = timeout_at(end, desk.events(identity, id, after, EVENTS_AT_ONCE));
        tokio::select! {
            changed = changed => match changed {
                Ok(events) => after = events?.events.last().map_or(after, |event| event.number),
                Err(_) => return desk.show(identity, id).await,
            },
            () = draining.cancelled() => return Ok(job),
        }
    }
}

/// Returns the result of a job as the result of its call; the beginning of a long one.
async fn whole(
    (client, account): (&Client<impl Broker>, &Account),
    job: &JobView,
    ended: JobResult,
    era: Era,
) -> Result<Json, Box<CoreError>> {
    if ended.result.len() > MAX_WHOLE_BYTES {
        let read = move || part(&ended, "", 0, READ_CHARS);
        let text = client.broker.services().shape_long(account, read).await?;
        return Ok(result::own(&text, era));
    }
    let path = client.broker.services().known_path(&job.path);
    let outcome = Outcome {
        path: path.unwrap_or_default(),
        kind: ItemKind::Tool,
        result: ended.result,
        is_error: ended.is_error,
        cut: None,
        warnings: Vec::new(),
        job: None,
        receipt: None,
    };
    result::forward(&outcome, ServerResult::Same, era)
}

/// Keeps the whole of a result that was cut, so that the caller can read the rest.
pub(super) fn keep_rest(client: &Client<impl Broker>, outcome: &mut Outcome) {
    let path = outcome.path;
    let Some((cut, desk)) = outcome.cut.as_mut().zip(client.broker.jobs()) else {
        return;
    };
    if let Some(whole) = cut.whole.take() {
        cut.rest = desk.keep_result(&client.identity, path, &whole);
    }
}

/// Returns a part of a result: characters of the text at a pointer, or of the JSON of another value.
fn part(
    ended: &JobResult,
    pointer: &str,
    offset: usize,
    limit: usize,
) -> Result<String, Box<CoreError>> {
    let invalid = |message: String| Box::new(CoreError::new(CallCode::FieldInvalid, message));
    let value: Value = serde_json::from_slice(&ended.result)
        .map_err(|_| invalid("the result is not JSON that can be read in parts".to_owned()))?;
    let found = value.pointer(pointer).ok_or_else(|| {
        let shown = shown_line(pointer, 200);
        invalid(format!("the result has no value at the pointer `{shown}`"))
    })?;
    let text = match found {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let all = text.chars().count();
    let shown: String = text.chars().skip(offset).take(limit).collect();
    let end = offset.saturating_add(limit).min(all);
    let rest = match end < all {
        true => format!("; the rest: offset {end}"),
        false => String::new(),
    };
    Ok(format!(
        "Characters {} to {end} of {all}{rest}\n{shown}",
        offset.min(all)
    ))
}

/// Returns the text about a job that has not ended.
fn unfinished_text(job: &JobView) -> String {
    let mut text = format!("Job {} is {}", job.id, job.state.as_str());
    if let Some(progress) = &job.progress {
        let member = |name: &str| progress.get(name).filter(|value| !value.is_null());
        if let Some(done) = member("progress") {
            text.push_str(&format!(", progress {done}"));
        }
        if let Some(total) = member("total") {
            text.push_str(&format!(" of {total}"));
        }
        if let Some(message) = member("message").and_then(Value::as_str) {
            text.push_str(&format!(": {}", shown_line(message, 300)));
        }
    }
    text.push_str(&format!(
        ". Call `{NAME}` with this id again to wait for its result."
    ));
    text
}

/// Returns the result of a call that became a job.
pub(super) fn accepted(accepted: &AcceptedJob, era: Era) -> Json {
    let id = &accepted.job.id;
    let text = format!(
        "The call takes long and goes on as job {id}. Call the tool `{NAME}` with {{\"id\":\"{id}\"}} to wait for its result, or read {}.",
        job_resource::uri(id)
    );
    // Some legacy clients do not know links, and would refuse the result.
    let link = match era {
        Era::Legacy => None,
        Era::Modern => Some(job_resource::link(&accepted.job)),
    };
    result::with_structured(&text, link.as_ref(), job_json::accepted(accepted), era)
}

/// Returns what a call in this mode asks of jobs.
pub(super) const fn job_request(mode: CallMode) -> Option<&'static JobRequest> {
    static ASYNC: JobRequest = JobRequest::in_mode(CallMode::Async);
    static AUTO: JobRequest = JobRequest::in_mode(CallMode::Auto);
    match mode {
        CallMode::Sync => None,
        CallMode::Async => Some(&ASYNC),
        CallMode::Auto => Some(&AUTO),
    }
}

#[cfg(test)]
#[path = "job_tool_tests.rs"]
mod tests;
