//! Tasks of revision 2025-11-25: the client asks for one with `params.task`, and `tasks/result` has its result.

use std::time::{Duration, SystemTime};

use broker_core::{
    AcceptedJob, Account, Broker, CallCode, CoreError, JobDesk, JobQuery, JobState, JobView,
};
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_PARAMS};
use broker_wire::write::Text;
use broker_wire::{Era, JsonMembers, RpcError, valid_string};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::end::{self, META_REPLAYED};
use super::errors::rpc_error;
use super::facts::TaskFacts;
use super::task_id::task_id;
use crate::Client;
use crate::params::Params;
use crate::reply::Answer;

/// The `_meta` key of a message about a task: the task.
pub(super) const META_RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The shortest and the longest time for which a client can keep a finished task.
const MIN_TTL: Duration = Duration::from_secs(1);
const MAX_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// The number of tasks in a page of `tasks/list`.
const PAGE_TASKS: usize = 100;
/// The time for which `tasks/cancel` waits for the end of the job.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// A request about tasks.
#[derive(Debug)]
pub(crate) enum LegacyTask {
    /// `tasks/get`
    Get(Box<str>),
    /// `tasks/result`
    Result(Box<str>),
    /// `tasks/list`, from a cursor on.
    List(Option<String>),
    /// `tasks/cancel`
    Cancel(Box<str>),
}

/// A task as its client sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: Box<str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<String>,
    created_at: String,
    last_updated_at: String,
    ttl: u64,
    poll_interval: u64,
}

impl LegacyTask {
    /// Reads a request; `None` for another method.
    pub(super) fn read(method: &str, params: &JsonMembers<'_>) -> Option<Result<Self, RpcError>> {
        Some(match method {
            "tasks/get" => task_id(params).map(Self::Get),
            "tasks/result" => task_id(params).map(Self::Result),
            "tasks/cancel" => task_id(params).map(Self::Cancel),
            "tasks/list" => match params.given("cursor") {
                None => Ok(Self::List(None)),
                Some(cursor) => match valid_string(cursor) {
                    Some(cursor) => Ok(Self::List(Some(cursor.into_owned()))),
                    None => Err(RpcError::new(INVALID_PARAMS, "`cursor` must be a string")),
                },
            },
            _ => return None,
        })
    }

    /// Answers the request.
    pub(super) async fn answer(
        &self,
        client: &Client<impl Broker>,
        desk: &dyn JobDesk,
        account: &Account,
        request_id: &str,
    ) -> Answer {
        let identity = &client.identity;
        let refused = |error: Box<_>| rpc_error(&error, Era::Legacy, request_id);
        match self {
            Self::Get(id) => {
                let job = desk.own(identity, id).await.map_err(refused)?;
                Ok(text(&Task::new(&job)))
            }
            Self::Result(id) => {
                let draining = client.broker.services().drain().draining();
                let job = tokio::select! {
                    job = desk.ended(identity, id) => job.map_err(refused)?,
                    () = draining.cancelled() => {
                        let error = CoreError::new(CallCode::ShuttingDown, "the broker shuts down");
                        return Err(refused(Box::new(error)));
                    }
                };
                if job.state == JobState::Canceled {
                    let error = RpcError::new(INTERNAL_ERROR, "the task was cancelled");
                    let data =
                        json!({ "status": "cancelled", "maybe_executed": job.maybe_executed });
                    return Err(error.data(data));
                }
                let ended = end::result(client, desk, account, id, Era::Legacy).await;
                let (result, charge) = ended.map_err(refused)?;
                let related = json!({ "taskId": &**id }).to_string();
                let result = end::with_meta(&result, META_RELATED_TASK, &related).unwrap_or(result);
                Ok(Text::charged(result, charge))
            }
            Self::List(cursor) => {
                let query = JobQuery {
                    state: None,
                    limit: PAGE_TASKS,
                    cursor: cursor.clone(),
                    is_own_only: true,
                };
                let page = desk.list(identity, query).await.map_err(refused)?;
                let tasks: Vec<_> = page.jobs.iter().map(Task::new).collect();
                let mut list = json!({ "tasks": tasks });
                if let Some(next) = page.next {
                    list["nextCursor"] = Value::from(next);
                }
                Ok(text(&list))
            }
            Self::Cancel(id) => {
                let mut job = desk.cancel(identity, id).await.map_err(refused)?;
                // Where the caller has no place to wait, the task is cancelled soon.
                if !job.state.is_finished()
                    && let Ok(Ok(ended)) = timeout(CANCEL_TIMEOUT, desk.ended(identity, id)).await
                {
                    job = ended;
                }
                Ok(text(&Task::new(&job)))
            }
        }
    }
}

impl Task {
    fn new(job: &JobView) -> Self {
        let facts = TaskFacts::new(job, SystemTime::now());
        Self {
            task_id: job.id.clone(),
            status: status(job),
            status_message: facts.message,
            created_at: facts.created,
            last_updated_at: facts.updated,
            ttl: facts.ttl_ms,
            poll_interval: facts.poll_ms,
        }
    }
}

/// Returns the capability `tasks`.
pub(crate) fn capability() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

/// Returns a job as a task.
pub(super) fn task(job: &JobView) -> String {
    serde_json::to_string(&Task::new(job)).unwrap_or_default()
}

/// Returns the answer to a call that became a task.
pub(crate) fn created(accepted: &AcceptedJob) -> Text {
    let mut answer = json!({ "task": Task::new(&accepted.job) });
    if accepted.is_replayed {
        answer["_meta"] = json!({ META_REPLAYED: true });
    }
    text(&answer)
}

/// Reads the time for which a client wants its finished task to be kept. A longer or shorter time is the nearest one
/// that the broker has.
pub(super) fn ttl(params: &Params<'_>) -> Result<Option<Duration>, RpcError> {
    let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
    let task = params
        .members
        .given("task")
        .and_then(JsonMembers::from_valid);
    let task = task.ok_or_else(|| wrong("`task` must be an object"))?;
    let Some(ttl) = task.given("ttl") else {
        return Ok(None);
    };
    let millis = ttl.parse::<f64>().ok().filter(|millis| *millis > 0.0);
    let millis = millis.ok_or_else(|| wrong("`task.ttl` must be a positive number"))?;
    // Numbers beyond the longest time are cut first: they may be infinite.
    let millis = millis.min(MAX_TTL.as_millis() as f64);
    let ttl = Duration::from_millis(millis.ceil() as u64);
    Ok(Some(ttl.clamp(MIN_TTL, MAX_TTL)))
}

/// Returns the status of a task. A result that is an error of the tool is a failure.
pub(super) const fn status(job: &JobView) -> &'static str {
    match job.state {
        JobState::Queued | JobState::Running => "working",
        JobState::InputRequired => "input_required",
        JobState::Succeeded => match job.is_error {
            Some(true) => "failed",
            Some(false) | None => "completed",
        },
        JobState::Failed | JobState::Lost => "failed",
        JobState::Canceled => "cancelled",
    }
}

fn text(value: &impl Serialize) -> Text {
    serde_json::to_vec(value).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::facts::tests::job;
    use super::*;

    #[test]
    fn status_of_each_state_is_the_one_of_the_revision() {
        for (state, is_error, expected) in [
            (JobState::Queued, None, "working"),
            (JobState::Running, None, "working"),
            (JobState::InputRequired, None, "input_required"),
            (JobState::Succeeded, Some(false), "completed"),
            (JobState::Succeeded, Some(true), "failed"),
            (JobState::Failed, None, "failed"),
            (JobState::Canceled, None, "cancelled"),
            (JobState::Lost, None, "failed"),
        ] {
            let mut view = job(state);
            view.is_error = is_error;
            assert_eq!(status(&view), expected, "{state:?} {is_error:?}");
        }
    }

    #[test]
    fn ttl_of_a_client_is_a_positive_number_within_the_bounds() {
        let read = |task: &str| {
            let raw = Bytes::from(format!(r#"{{"task":{task}}}"#));
            ttl(&Params::read(&raw).unwrap()).map_err(|error| error.code)
        };
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"ttl":null}"#), Ok(None));
        assert_eq!(read(r#"{"ttl":60000}"#), Ok(Some(Duration::from_secs(60))));
        assert_eq!(
            read(r#"{"ttl":60000.5}"#),
            Ok(Some(Duration::from_millis(60_001)))
        );
        assert_eq!(read(r#"{"ttl":1}"#), Ok(Some(MIN_TTL)));
        assert_eq!(read(r#"{"ttl":1e-9}"#), Ok(Some(MIN_TTL)));
        for huge in ["1e300", "1e9999", "18446744073709551616", "99999999999"] {
            assert_eq!(
                read(&format!(r#"{{"ttl":{huge}}}"#)),
                Ok(Some(MAX_TTL)),
                "{huge}"
            );
        }
        for wrong in ["0", "-1", "-1e999", "\"60000\"", "true", "[]", "{}"] {
            let task = format!(r#"{{"ttl":{wrong}}}"#);
            assert_eq!(read(&task), Err(INVALID_PARAMS), "{wrong}");
        }
        for wrong in ["1", "\"x\"", "[]", "true"] {
            assert_eq!(read(wrong), Err(INVALID_PARAMS), "{wrong}");
        }
    }
}
