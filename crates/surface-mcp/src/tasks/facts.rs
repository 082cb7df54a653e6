//! The facts of a job that tasks of both eras show.

use std::time::{Duration, SystemTime};

use broker_core::{JobState, JobView};
use broker_model::text::shown_line;
use broker_model::utc::UtcTime;
use serde_json::Value;

/// The time between two requests for a task that the broker recommends.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// While a job has not ended, the time of its last update moves at least this often: the broker knows that it is not lost.
const UPDATE_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum characters of a text of a server in the message of a task.
const MAX_MESSAGE_CHARS: usize = 300;

/// The facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskFacts {
    pub(super) created: String,
    pub(super) updated: String,
    /// The time from the creation of the job to its deletion, in milliseconds. It grows while the job has not ended.
    pub(super) ttl_ms: u64,
    pub(super) poll_ms: u64,
    /// A text about its state.
    pub(super) message: Option<String>,
}

impl TaskFacts {
    /// Returns the facts of a job at a time.
    pub(super) fn new(job: &JobView, now: SystemTime) -> Self {
        let kept = job.expires.duration_since(job.updated).unwrap_or_default();
        let updated = match job.state.is_finished() {
            true => job.updated,
            false => last_update(job.updated, now),
        };
        let expires = match job.state.is_finished() {
            true => job.expires,
            false => updated + kept,
        };
        let ttl = expires.duration_since(job.created).unwrap_or_default();
        Self {
            created: time(job.created),
            updated: time(updated),
            ttl_ms: millis(ttl),
            poll_ms: millis(POLL_INTERVAL),
            message: message(job),
        }
    }
}

/// Returns the time of the last update of a job that has not ended.
fn last_update(updated: SystemTime, now: SystemTime) -> SystemTime {
    // A clock that was set back shows the time of the last change.
    let passed = now.duration_since(updated).unwrap_or_default();
    let whole = passed.as_secs() / UPDATE_INTERVAL.as_secs() * UPDATE_INTERVAL.as_secs();
    updated + Duration::from_secs(whole)
}

fn message(job: &JobView) -> Option<String> {
    match job.state {
        JobState::Queued => Some("waits for its turn".to_owned()),
        JobState::Running | JobState::InputRequired => progress(job.progress.as_ref()?),
        JobState::Succeeded => None,
        JobState::Canceled => Some(match job.maybe_executed {
            Some(false) => "the call was not sent".to_owned(),
            Some(true) | None => "the call may have been executed".to_owned(),
        }),
        JobState::Failed | JobState::Lost => {
            let message = job.error.as_ref()?.get("message")?.as_str()?;
            Some(shown_line(message, MAX_MESSAGE_CHARS))
        }
    }
}

/// Returns the text about the last progress of a server.
fn progress(progress: &Value) -> Option<String> {
    let member = |name: &str| progress.get(name).filter(|value| !value.is_null());
    let mut text = format!("progress {}", member("progress")?);
    if let Some(total) = member("total") {
        text.push_str(&format!(" of {total}"));
    }
    if let Some(message) = member("message").and_then(Value::as_str) {
        text.push_str(&format!(": {}", shown_line(message, MAX_MESSAGE_CHARS)));
    }
    Some(text)
}

fn time(time: SystemTime) -> String {
    UtcTime::from_system_time(time).to_string()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    const START: SystemTime = SystemTime::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        START + Duration::from_secs(seconds)
    }

    /// A job that was created at second 0, changed at second 10, and is kept for an hour.
    pub(crate) fn job(state: JobState) -> JobView {
        JobView {
            id: "j_1".into(),
            path: "/a/t".into(),
            state,
            is_durable: true,
            created: at(0),
            started: None,
            ended: None,
            updated: at(10),
            expires: at(10 + 3600),
            progress: None,
            last_event: 0,
            is_error: None,
            result_bytes: None,
            error: None,
            maybe_executed: None,
        }
    }

    #[test]
    fn update_of_a_running_job_moves_and_its_ttl_grows() {
        let running = job(JobState::Running);
        let shown = |seconds| TaskFacts::new(&running, at(seconds));
        assert_eq!(shown(11).updated, "1970-01-01T00:00:10Z");
        let mut last = shown(10);
        for seconds in (10..1_000).step_by(45).skip(1) {
            let next = shown(seconds);
            assert!(next.updated > last.updated, "{seconds}");
            assert!(next.ttl_ms > last.ttl_ms, "{seconds}");
            // The job is kept for an hour from now on.
            assert!(next.ttl_ms + 30_000 >= (seconds + 3600) * 1000, "{seconds}");
            last = next;
        }
        let back = shown(0);
        assert_eq!(
            back.updated, "1970-01-01T00:00:10Z",
            "a clock that was set back"
        );
    }

    #[test]
    fn update_and_ttl_of_an_ended_job_stay() {
        for state in [
            JobState::Succeeded,
            JobState::Failed,
            JobState::Canceled,
            JobState::Lost,
        ] {
            let ended = job(state);
            let (soon, late) = (
                TaskFacts::new(&ended, at(11)),
                TaskFacts::new(&ended, at(3000)),
            );
            assert_eq!(soon, late);
            assert_eq!(soon.updated, "1970-01-01T00:00:10Z");
            assert_eq!(soon.ttl_ms, 3_610_000);
        }
    }

    #[test]
    fn message_has_progress_as_one_line_of_visible_text() {
        let mut running = job(JobState::Running);
        running.progress = Some(json!({"progress": 3, "total": 7, "message": "a\nb\u{1b}[31m"}));
        let message = TaskFacts::new(&running, at(10)).message.unwrap();
        assert!(message.starts_with("progress 3 of 7: a"), "{message}");
        assert!(!message.contains(['\n', '\u{1b}']), "{message}");
        running.progress = Some(json!({"progress": 0.5}));
        let message = TaskFacts::new(&running, at(10)).message.unwrap();
        assert_eq!(message, "progress 0.5");
    }
}
