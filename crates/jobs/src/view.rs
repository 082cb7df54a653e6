//! Jobs and events as surfaces show them.

use broker_core::{JobEvent, JobEventKind, JobState, JobView};
use broker_store::{EventKind, Job};
use serde_json::{Value, json};

/// Returns a job without its arguments and its result.
pub(crate) fn job(job: &Job, is_durable: bool) -> JobView {
    let error = job
        .error
        .as_deref()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let maybe_executed = error
        .as_ref()
        .and_then(|error| error.get("maybe_executed"))
        .and_then(Value::as_bool)
        .or_else(|| (job.state == JobState::Canceled).then_some(job.sent));
    JobView {
        id: job.id.as_str().into(),
        path: job.path.as_str().into(),
        state: job.state,
        is_durable,
        created: job.created,
        started: job.started,
        ended: job.ended,
        updated: job.updated,
        expires: job.expires.unwrap_or(job.updated + job.ttl),
        progress: job.progress.as_ref().and_then(|body| serde_json::from_slice(body).ok()),
        last_event: job.last_seq,
        is_error: job.result_bytes.map(|_| job.is_error),
        result_bytes: job.result_bytes,
        error: error.or_else(|| {
            let reason = job.dropped?;
            Some(json!({"code": "output_too_large", "message": format!("the result is not kept: {}", reason.as_str())}))
        }),
        maybe_executed,
    }
}

/// Returns an event.
pub(crate) fn event(event: &broker_store::JobEvent) -> JobEvent {
    JobEvent {
        number: event.seq,
        at: event.at,
        kind: match event.kind {
            EventKind::Progress => JobEventKind::Progress,
            EventKind::Stdout => JobEventKind::Stdout,
            EventKind::Stderr => JobEventKind::Stderr,
            EventKind::Status => JobEventKind::Status,
            EventKind::Gap => JobEventKind::Gap,
        },
        body: String::from_utf8_lossy(&event.body).into_owned(),
    }
}
