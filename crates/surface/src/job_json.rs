//! Jobs as JSON, the same on every surface.

use std::time::SystemTime;

use broker_core::{AcceptedJob, JobPage, JobState, JobView};
use broker_model::utc::UtcTime;
use serde::Serialize;
use serde_json::{Value, json};

/// The state of a job that has no result of use, for simple clients.
const FAILED: &str = "failed";

/// A job: its id, its path, its state, its times, and what is known of its progress and its end.
#[derive(Serialize)]
struct JobMembers<'a> {
    job_id: &'a str,
    path: &'a str,
    status: &'static str,
    durable: bool,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    expires_at: String,
    last_event: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maybe_executed: Option<bool>,
}

impl<'a> JobMembers<'a> {
    fn new(job: &'a JobView) -> Self {
        Self {
            job_id: &job.id,
            path: &job.path,
            status: job.state.as_str(),
            durable: job.is_durable,
            created_at: time(job.created),
            started_at: job.started.map(time),
            ended_at: job.ended.map(time),
            expires_at: time(job.expires),
            last_event: job.last_event,
            progress: job.progress.as_ref(),
            is_error: job.is_error,
            result_bytes: job.result_bytes,
            error: job.error.as_ref(),
            maybe_executed: job.maybe_executed,
        }
    }
}

/// The answer to a call that became a job.
#[derive(Serialize)]
struct AcceptedMembers<'a> {
    status: &'static str,
    job_id: &'a str,
    poll: String,
    ws: String,
    download: String,
    manifest: String,
    events: String,
    expires_at: String,
    durable: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

/// Returns a job as an object.
pub fn job(job: &JobView) -> String {
    text(&JobMembers::new(job))
}

/// Returns a page of jobs: `{"jobs":[…],"next"?:CURSOR}`.
pub fn page(page: &JobPage) -> String {
    #[derive(Serialize)]
    struct Page<'a> {
        jobs: Vec<JobMembers<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<&'a str>,
    }
    text(&Page {
        jobs: page.jobs.iter().map(JobMembers::new).collect(),
        next: page.next.as_deref(),
    })
}

/// Returns the answer to a call that became a job: `status`, the id, and where the job is read.
pub fn accepted(accepted: &AcceptedJob) -> String {
    let (job, id) = (&accepted.job, &accepted.job.id);
    text(&AcceptedMembers {
        status: "accepted",
        job_id: id,
        poll: format!("/jobs/{id}"),
        ws: format!("/ws/jobs/{id}"),
        download: format!("/jobs/{id}/download"),
        manifest: format!("/jobs/{id}/manifest"),
        events: format!("/jobs/{id}/events"),
        expires_at: time(job.expires),
        durable: job.is_durable,
        replayed: accepted.is_replayed,
    })
}

/// Returns the state of a job as simple clients know it: `{"job_id","status","exit_code","output_file"}`, and
/// `maybe_executed` if it is known. A job whose tool failed and a job that is lost have failed.
pub fn simple_state(job: &JobView) -> Value {
    let (status, exit_code) = match job.state {
        JobState::Queued | JobState::Running | JobState::InputRequired => {
            (job.state.as_str(), None)
        }
        JobState::Succeeded if job.is_error == Some(true) => (FAILED, Some(1)),
        JobState::Succeeded => (job.state.as_str(), Some(0)),
        JobState::Failed | JobState::Lost => (FAILED, Some(1)),
        JobState::Canceled => (job.state.as_str(), Some(1)),
    };
    let output =
        (job.state == JobState::Succeeded).then(|| format!("/v1/jobs/{}/download", job.id));
    let mut state = json!({
        "job_id": job.id,
        "status": status,
        "exit_code": exit_code,
        "output_file": output,
    });
    if let Some(maybe) = job.maybe_executed {
        state["maybe_executed"] = json!(maybe);
    }
    state
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn time(time: SystemTime) -> String {
    UtcTime::from_system_time(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_clients_know_four_ends_of_a_job() {
        let job = |state, is_error, maybe_executed| JobView {
            id: "j_a".into(),
            path: "/a".into(),
            state,
            is_durable: true,
            created: SystemTime::UNIX_EPOCH,
            started: None,
            ended: None,
            updated: SystemTime::UNIX_EPOCH,
            expires: SystemTime::UNIX_EPOCH,
            progress: None,
            last_event: 1,
            is_error,
            result_bytes: None,
            error: None,
            maybe_executed,
        };
        for (state, is_error, maybe, shown, exit_code, has_output) in [
            (JobState::Running, None, None, "running", None, false),
            (
                JobState::Succeeded,
                Some(false),
                None,
                "succeeded",
                Some(0),
                true,
            ),
            (
                JobState::Succeeded,
                Some(true),
                None,
                "failed",
                Some(1),
                true,
            ),
            (
                JobState::Failed,
                None,
                Some(false),
                "failed",
                Some(1),
                false,
            ),
            (JobState::Lost, None, Some(true), "failed", Some(1), false),
            (
                JobState::Canceled,
                None,
                Some(true),
                "canceled",
                Some(1),
                false,
            ),
        ] {
            let found = simple_state(&job(state, is_error, maybe));
            let output = has_output.then_some("/v1/jobs/j_a/download");
            let mut expected = json!({
                "job_id": "j_a", "status": shown, "exit_code": exit_code, "output_file": output,
            });
            if let Some(maybe) = maybe {
                expected["maybe_executed"] = json!(maybe);
            }
            assert_eq!(found, expected, "{state:?}");
        }
    }
}
