//! Reads the answers of servers about tasks, in both eras.

use std::time::Duration;

use broker_model::json::each_member;
use broker_wire::Era;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::RemoteTask;

/// The time between two questions for the state of a task whose server names none, and the bounds of the time that it names.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// `result._meta` key of the legacy era: the id of the task that the result is of.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStatus {
    /// The server works on it.
    Working,
    /// The server asks for input.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "working" => Some(Self::Working),
            "input_required" => Some(Self::InputRequired),
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }

    const fn is_end(self) -> bool {
        match self {
            Self::Working | Self::InputRequired => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// The state of a task, as the answer to `tasks/get` has it.
#[derive(Debug)]
pub(crate) struct TaskState<'a> {
    /// Its status.
    pub(crate) status: TaskStatus,
    /// A text about its status, as the server sent it.
    pub(crate) message: Option<String>,
    /// The time until its state is asked for again.
    pub(crate) interval: Duration,
    /// The result of a completed task in the modern era.
    pub(crate) result: Option<&'a RawValue>,
    /// The error of a failed task in the modern era.
    pub(crate) error: Option<&'a RawValue>,
}

/// The members of a task.
#[derive(Default)]
struct Members<'a> {
    id: Option<String>,
    status: Option<String>,
    message: Option<String>,
    interval: Option<f64>,
    result_type: Option<String>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn read(json: &'a [u8], era: Era) -> Result<Self, &'static str> {
        let interval = match era {
            Era::Legacy => "pollInterval",
            Era::Modern => "pollIntervalMs",
        };
        let mut found = Self::default();
        let text = |value: &RawValue| serde_json::from_str::<String>(value.get()).ok();
        let read = each_member(json, |name, value| match &*name {
            "taskId" => found.id = text(value),
            "status" => found.status = text(value),
            "statusMessage" => found.message = text(value),
            "resultType" => found.result_type = Some(text(value).unwrap_or_default()),
            "result" => found.result = Some(value),
            "error" => found.error = Some(value),
            name if name == interval => found.interval = value.get().parse().ok(),
            _ => {}
        });
        match read {
            Ok(()) => Ok(found),
            Err(_) => Err("the members of the task cannot be read"),
        }
    }

    fn status(&self) -> Result<TaskStatus, &'static str> {
        let status = self.status.as_deref().and_then(TaskStatus::parse);
        status.ok_or("the task has no status that MCP knows")
    }

    fn interval(&self) -> Duration {
        let millis = self.interval.filter(|millis| millis.is_finite());
        millis.map_or(POLL_INTERVAL, |millis| {
            let most = MAX_POLL_INTERVAL.as_millis() as f64;
            Duration::from_millis(millis.clamp(0.0, most) as u64).max(MIN_POLL_INTERVAL)
        })
    }

    fn into_made(self, era: Era) -> Result<RemoteTask, &'static str> {
        let wait = match self.status()?.is_end() {
            true => Duration::ZERO,
            false => self.interval(),
        };
        RemoteTask::new(self.id.as_deref().unwrap_or_default(), era, wait)
    }
}

impl<'a> TaskState<'a> {
    /// Reads the answer to `tasks/get` for this task.
    pub(crate) fn read(json: &'a [u8], task: &RemoteTask) -> Result<Self, &'static str> {
        let members = Members::read(json, task.era())?;
        if members.result_type.as_deref().unwrap_or("complete") != "complete" {
            return Err("the answer about the task is not complete");
        }
        if members.id.as_deref() != Some(task.id()) {
            return Err("the answer is about another task");
        }
        Ok(Self {
            status: members.status()?,
            interval: members.interval(),
            message: members.message,
            result: members.result,
            error: members.error,
        })
    }
}

/// Returns the task that a modern server made of a call; `None` for any other result.
pub(crate) fn made_modern(result: &[u8]) -> Option<Result<RemoteTask, &'static str>> {
    // Every result without the word is passed on without being parsed.
    memchr::memmem::find(result, b"task")?;
    let members = match Members::read(result, Era::Modern) {
        Ok(members) => members,
        Err(problem) => return Some(Err(problem)),
    };
    (members.result_type.as_deref() == Some("task")).then(|| members.into_made(Era::Modern))
}

/// Returns the task that a legacy server made of a call that asked for one; `None` for a result without a task.
pub(crate) fn made_legacy(result: &[u8]) -> Option<Result<RemoteTask, &'static str>> {
    let mut task = None;
    let read = each_member(result, |name, value| {
        if name == "task" {
            task = Some(value);
        }
    });
    read.ok()?;
    let members = Members::read(task?.get().as_bytes(), Era::Legacy);
    Some(members.and_then(|members| members.into_made(Era::Legacy)))
}

/// Returns a result without the id of its task.
pub(crate) fn without_related_task(result: Bytes) -> Bytes {
    if memchr::memmem::find(&result, b"related-task").is_none() {
        return result;
    }
    let mut out = Vec::with_capacity(result.len());
    let read = each_member(&result, |name, value| {
        let meta = match &*name {
            "_meta" => serde_json::from_str::<serde_json::Map<String, Value>>(value.get()).ok(),
            _ => None,
        };
        let text = match meta {
            Some(mut meta) => {
                meta.remove(RELATED_TASK);
                Value::Object(meta).to_string()
            }
            None => value.get().to_owned(),
        };
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(Value::from(&*name).to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(text.as_bytes());
    });
    match read {
        Ok(()) => {
            out.push(b'}');
            out.into()
        }
        Err(_) => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> RemoteTask {
        RemoteTask::new("t", Era::Modern, Duration::ZERO).unwrap()
    }

    #[test]
    fn only_a_result_of_the_type_task_is_a_modern_task() {
        let made = |text: &str| made_modern(text.as_bytes());
        let one = made(r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":null}"#);
        let one = one.unwrap().unwrap();
        assert_eq!((one.id(), one.wait()), ("t", POLL_INTERVAL));
        let ended = made(r#"{"resultType":"task","taskId":"t","status":"completed"}"#);
        assert_eq!(ended.unwrap().unwrap().wait(), Duration::ZERO);
        for other in [
            r#"{"content":[]}"#,
            r#"{"content":[{"text":"task"}],"taskId":"t"}"#,
            r#"{"structuredContent":{"resultType":"task"}}"#,
            r#"{"resultType":"complete","task":{"taskId":"t","status":"working"}}"#,
        ] {
            assert!(made(other).is_none(), "{other}");
        }
        for wrong in [
            r#"{"resultType":"task"}"#,
            r#"{"resultType":"task","taskId":"t"}"#,
            r#"{"resultType":"task","taskId":"","status":"working"}"#,
            r#"{"resultType":"task","taskId":7,"status":"working"}"#,
            r#"{"resultType":"task","taskId":"t","status":"paused"}"#,
        ] {
            assert!(made(wrong).unwrap().is_err(), "{wrong}");
        }
    }

    #[test]
    fn legacy_task_is_a_member_of_the_result() {
        let text = r#"{"task":{"taskId":"t","status":"working","pollInterval":250}}"#;
        let made = made_legacy(text.as_bytes()).unwrap().unwrap();
        assert_eq!(
            (made.id(), made.wait(), made.era()),
            ("t", Duration::from_millis(250), Era::Legacy)
        );
        assert!(made_legacy(br#"{"content":[]}"#).is_none());
        assert!(made_legacy(br#"{"task":7}"#).unwrap().is_err());
    }

    #[test]
    fn interval_of_a_server_is_honoured_within_bounds() {
        for (written, expected) in [
            ("500", Duration::from_millis(500)),
            ("1", MIN_POLL_INTERVAL),
            ("-5", MIN_POLL_INTERVAL),
            ("1e300", MAX_POLL_INTERVAL),
            ("\"5\"", POLL_INTERVAL),
        ] {
            let text = format!(r#"{{"taskId":"t","status":"working","pollIntervalMs":{written}}}"#);
            let state = TaskState::read(text.as_bytes(), &task()).unwrap();
            assert_eq!(state.interval, expected, "{written}");
        }
    }

    #[test]
    fn answer_about_another_task_or_of_another_type_is_refused() {
        for wrong in [
            r#"{"taskId":"u","status":"working"}"#,
            r#"{"status":"working"}"#,
            r#"{"taskId":"t","status":"working","resultType":"task"}"#,
            r#"{"taskId":"t","status":"working","resultType":7}"#,
            r#"{"taskId":"t","status":"asleep"}"#,
            "[]",
        ] {
            assert!(
                TaskState::read(wrong.as_bytes(), &task()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn result_of_a_task_does_not_name_it() {
        let text = r#"{"content":[],"n":1.00,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"},"a":1}}"#;
        let without = without_related_task(Bytes::from_static(text.as_bytes()));
        assert_eq!(
            without,
            r#"{"content":[],"n":1.00,"_meta":{"a":1}}"#.as_bytes()
        );
        let plain = Bytes::from_static(br#"{"content" : []}"#);
        assert_eq!(without_related_task(plain.clone()), plain);
    }
}
