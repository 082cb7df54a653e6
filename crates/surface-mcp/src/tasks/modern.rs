//! Tasks of the extension of revision 2026-07-28: a call becomes a task if the broker decides so, and `tasks/get` has its
//! result.

use std::time::SystemTime;

use broker_core::{AcceptedJob, Account, Broker, CallCode, Charge, JobDesk, JobState, JobView};
use broker_wire::protocol::{INVALID_PARAMS, META_SERVER_INFO};
use broker_wire::write::{Json, ObjectWriter, Text};
use broker_wire::{Era, JsonMembers, RpcError};
use serde_json::json;

use super::end::{self, META_REPLAYED};
use super::errors::rpc_error;
use super::facts::TaskFacts;
use super::task_id::task_id;
use crate::Client;
use crate::reply::Answer;
use crate::server_info::server_info;

/// The bytes of a task without its result.
const TASK_BYTES: usize = 512;

/// A request about a task.
#[derive(Debug)]
pub(crate) enum ModernTask {
    /// `tasks/get`
    Get(Box<str>),
    /// `tasks/update`: answers to questions of the server.
    Update(Box<str>),
    /// `tasks/cancel`
    Cancel(Box<str>),
}

impl ModernTask {
    /// Reads a request; `None` for another method.
    pub(super) fn read(method: &str, params: &JsonMembers<'_>) -> Option<Result<Self, RpcError>> {
        Some(match method {
            "tasks/get" => task_id(params).map(Self::Get),
            "tasks/cancel" => task_id(params).map(Self::Cancel),
            "tasks/update" => task_id(params).and_then(|id| {
                let responses = params.given("inputResponses");
                match responses.is_some_and(|responses| responses.starts_with('{')) {
                    true => Ok(Self::Update(id)),
                    false => {
                        let message = "`inputResponses` must be an object";
                        Err(RpcError::new(INVALID_PARAMS, message))
                    }
                }
            }),
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
        let refused = |error: Box<_>| rpc_error(&error, Era::Modern, request_id);
        match self {
            Self::Get(id) => {
                let job = desk.own(identity, id).await.map_err(refused)?;
                let (end, charge) = match job.state {
                    JobState::Succeeded => {
                        let ended = end::result(client, desk, account, id, Era::Modern).await;
                        let (result, charge) = ended.map_err(refused)?;
                        (Some(TaskEnd::Result(result)), charge)
                    }
                    JobState::Failed | JobState::Lost => {
                        let error = desk.result(identity, id).await.err().map(refused);
                        (error.map(TaskEnd::Error), Charge::default())
                    }
                    JobState::Queued
                    | JobState::Running
                    | JobState::InputRequired
                    | JobState::Canceled => (None, Charge::default()),
                };
                let mut out = detailed(&job, end.as_ref());
                out.member("resultType", "\"complete\"");
                out.member("_meta", &server_meta());
                Ok(Text::charged(out.end(), charge))
            }
            // No server asks questions yet, so that every key is unknown, and ignored.
            Self::Update(id) => {
                desk.own(identity, id).await.map_err(refused)?;
                Ok(acknowledgement())
            }
            Self::Cancel(id) => match desk.cancel(identity, id).await {
                Ok(_) => Ok(acknowledgement()),
                // The end of a task and its cancellation may cross.
                Err(error) if error.code == CallCode::JobFinished => Ok(acknowledgement()),
                Err(error) => Err(refused(error)),
            },
        }
    }
}

/// The end of a task that is part of it.
pub(super) enum TaskEnd {
    Result(Json),
    Error(RpcError),
}

/// Returns the answer to a call that became a task.
pub(crate) fn created(accepted: &AcceptedJob) -> Text {
    let mut out = task(&accepted.job, status(accepted.job.state));
    out.member("resultType", "\"task\"");
    let mut meta = json!({ META_SERVER_INFO: server_info() });
    if accepted.is_replayed {
        meta[META_REPLAYED] = json!(true);
    }
    out.member("_meta", &meta.to_string());
    out.end().into()
}

/// Returns a task with its end, without the closing brace.
pub(super) fn detailed(job: &JobView, end: Option<&TaskEnd>) -> ObjectWriter {
    let mut out = task(job, status(job.state));
    match end {
        Some(TaskEnd::Result(result)) => {
            out.member("result", &String::from_utf8_lossy(result.as_ref()));
        }
        Some(TaskEnd::Error(error)) => {
            let mut object = json!({ "code": error.code, "message": error.message });
            if let Some(data) = &error.data {
                object["data"] = data.clone();
            }
            out.member("error", &object.to_string());
        }
        None if job.state == JobState::InputRequired => out.member("inputRequests", "{}"),
        None => {}
    }
    out
}

/// Returns the status of a task. An error of the tool is a result, so that its task is completed.
const fn status(state: JobState) -> &'static str {
    match state {
        JobState::Queued | JobState::Running => "working",
        JobState::InputRequired => "input_required",
        JobState::Succeeded => "completed",
        JobState::Failed | JobState::Lost => "failed",
        JobState::Canceled => "cancelled",
    }
}

fn task(job: &JobView, status: &str) -> ObjectWriter {
    let facts = TaskFacts::new(job, SystemTime::now());
    let text = |text: &str| json!(text).to_string();
    let mut out = ObjectWriter::with_capacity(TASK_BYTES);
    out.member("taskId", &text(&job.id));
    out.member("status", &text(status));
    if let Some(message) = &facts.message {
        out.member("statusMessage", &text(message));
    }
    out.member("createdAt", &text(&facts.created));
    out.member("lastUpdatedAt", &text(&facts.updated));
    out.member("ttlMs", &facts.ttl_ms.to_string());
    out.member("pollIntervalMs", &facts.poll_ms.to_string());
    out
}

fn acknowledgement() -> Text {
    let mut out = ObjectWriter::with_capacity(TASK_BYTES);
    out.member("resultType", "\"complete\"");
    out.member("_meta", &server_meta());
    out.end().into()
}

fn server_meta() -> String {
    json!({ META_SERVER_INFO: server_info() }).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::facts::tests::job;
    use super::*;

    fn read(out: ObjectWriter) -> Value {
        serde_json::from_slice(out.end().as_ref()).unwrap()
    }

    #[test]
    fn status_of_each_state_is_the_one_of_the_extension() {
        for (state, expected) in [
            (JobState::Queued, "working"),
            (JobState::Running, "working"),
            (JobState::InputRequired, "input_required"),
            (JobState::Succeeded, "completed"),
            (JobState::Failed, "failed"),
            (JobState::Canceled, "cancelled"),
            (JobState::Lost, "failed"),
        ] {
            let mut view = job(state);
            view.is_error = Some(true);
            let task = read(detailed(&view, None));
            assert_eq!(task["status"], expected);
            assert_eq!(
                task.get("inputRequests").is_some(),
                expected == "input_required"
            );
        }
    }

    #[test]
    fn task_is_flat_and_has_milliseconds() {
        let accepted = AcceptedJob {
            job: job(JobState::Queued),
            is_replayed: false,
        };
        let task: Value = serde_json::from_slice(created(&accepted).as_ref()).unwrap();
        assert_eq!(task["resultType"], "task");
        assert_eq!(task["taskId"], "j_1");
        assert!(
            task["ttlMs"].is_u64() && task["pollIntervalMs"].is_u64(),
            "{task}"
        );
        for name in [
            "task",
            "ttl",
            "pollInterval",
            "result",
            "error",
            "requestState",
        ] {
            assert!(task.get(name).is_none(), "{name}");
        }
        assert!(task["_meta"].get(META_REPLAYED).is_none());
        let replayed = AcceptedJob {
            is_replayed: true,
            ..accepted
        };
        let task: Value = serde_json::from_slice(created(&replayed).as_ref()).unwrap();
        assert_eq!(task["_meta"][META_REPLAYED], true);
    }
}
