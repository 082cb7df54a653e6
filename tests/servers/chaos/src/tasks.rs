//! Tasks: calls whose results the server has later, in both eras. The script says of a tool how its tasks go on; it is read
//! again at each question, so that a test decides when a task ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::reply::{Outcome, text_result};
use crate::script::{RpcError, Script};
use crate::state::{Request, State};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How the tasks of a tool go on.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    /// The number of questions that are answered with `working`.
    polls: u64,
    /// The status behind them.
    end: String,
    /// The id, if the test gives it.
    id: Option<String>,
    interval_ms: u64,
    /// The text about the status of a task that the server works on.
    message: Option<String>,
    /// The id in answers to `tasks/get`, if it is another one.
    other_id: Option<String>,
    /// The number of bytes of the result's text.
    bytes: usize,
    is_error: bool,
    /// The error of a task that failed.
    error: Option<RpcError>,
}

impl TaskPlan {
    fn parse(value: &Value) -> Result<Self, String> {
        let known = [
            "polls",
            "end",
            "id",
            "interval_ms",
            "message",
            "other_id",
            "bytes",
            "is_error",
            "error",
        ];
        let members = value.as_object().ok_or("must be an object")?;
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("`{name}` is not known"));
        }
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let number = |name: &str, default: u64| value[name].as_u64().unwrap_or(default);
        Ok(Self {
            polls: number("polls", 0),
            end: text("end").unwrap_or_else(|| "completed".to_owned()),
            id: text("id"),
            interval_ms: number("interval_ms", 100),
            message: text("message"),
            other_id: text("other_id"),
            bytes: usize::try_from(number("bytes", 0)).map_err(|error| error.to_string())?,
            is_error: value["is_error"] == true,
            error: value.get("error").map(RpcError::parse).transpose()?,
        })
    }

    /// Reads the plans of the tools of a script.
    pub(crate) fn parse_all(value: &Value) -> Result<HashMap<String, Self>, String> {
        let plans = value.as_object().ok_or("must be an object")?;
        let parse = |(tool, plan): (&String, &Value)| {
            let plan = Self::parse(plan).map_err(|error| format!("`{tool}`: {error}"))?;
            Ok((tool.clone(), plan))
        };
        plans.iter().map(parse).collect()
    }
}

/// A task that was made.
#[derive(Clone, Debug)]
struct Task {
    tool: String,
    arguments: Value,
    polls: u64,
    is_cancelled: bool,
}

/// The tasks that were made.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Task>>);

impl Tasks {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a call of a tool with a plan; `None` for a call that gets its result at once.
pub(crate) fn make(
    state: &State,
    script: &Script,
    request: &Request,
    modern: bool,
    sequence: u64,
) -> Option<Outcome> {
    let name = request.params["name"].as_str()?;
    let plan = script.tasks.get(name)?;
    let asked = match modern {
        true => !request.params["_meta"][CAPABILITIES]["extensions"][EXTENSION].is_null(),
        false => request.params["task"].is_object(),
    };
    if !asked {
        let error = match modern {
            true => RpcError::new(-32021, "the tool needs the extension of tasks"),
            false => RpcError::new(-32601, "the tool must be called as a task"),
        };
        return Some(Outcome::Error(error));
    }
    let id = plan
        .id
        .clone()
        .unwrap_or_else(|| format!("task-{sequence}"));
    let task = Task {
        tool: name.to_owned(),
        arguments: request.params["arguments"].clone(),
        polls: 0,
        is_cancelled: false,
    };
    let status = if plan.polls == 0 {
        &plan.end
    } else {
        "working"
    };
    state.tasks.all().insert(id.clone(), task);
    let details = json!({"id": id, "tool": name, "task": request.params["task"]});
    state.journal.write("task-made", details);
    let mut made = facts(plan, &id, status, modern);
    if modern {
        made["resultType"] = json!("task");
    } else {
        made = json!({ "task": made });
    }
    Some(Outcome::Result(made.to_string()))
}

/// The members of a task.
fn facts(plan: &TaskPlan, id: &str, status: &str, modern: bool) -> Value {
    let mut facts = json!({
        "taskId": id, "status": status,
        "createdAt": "2026-11-28T00:00:00Z", "lastUpdatedAt": "2026-11-28T00:00:00Z",
    });
    let (ttl, interval) = match modern {
        true => ("ttlMs", "pollIntervalMs"),
        false => ("ttl", "pollInterval"),
    };
    facts[ttl] = Value::Null;
    facts[interval] = json!(plan.interval_ms);
    if let Some(message) = plan.message.as_ref().filter(|_| status == "working") {
        facts["statusMessage"] = json!(message);
    }
    facts
}

/// The answer to a request about a task; `None` for other methods.
pub(crate) fn answer(
    state: &State,
    script: &Script,
    request: &Request,
    modern: bool,
) -> Option<Outcome> {
    let event = match (request.method.as_str(), modern) {
        ("tasks/get", _) => "task-get",
        ("tasks/cancel", _) => "task-cancel",
        ("tasks/result", false) => "task-result",
        _ => return None,
    };
    let id = request.params["taskId"].as_str().unwrap_or_default();
    let mut details = json!({"id": id, "meta": request.params["_meta"]});
    request.add_number(&mut details);
    state.journal.write(event, details);
    let mut tasks = state.tasks.all();
    let known = tasks.get_mut(id);
    let known = known.and_then(|task| script.tasks.get(&task.tool).map(|plan| (task, plan)));
    let Some((task, plan)) = known else {
        let error = RpcError::new(-32602, "the task is not known");
        return Some(Outcome::Error(error));
    };
    if event == "task-cancel" {
        task.is_cancelled = true;
        let facts = facts(plan, id, "cancelled", modern);
        let ended = if modern {
            json!({"resultType": "complete"})
        } else {
            facts
        };
        return Some(Outcome::Result(ended.to_string()));
    }
    let result = result(plan, id, task, modern);
    if event == "task-result" {
        return Some(match &plan.error {
            Some(error) => Outcome::Error(error.clone()),
            None => Outcome::Result(result.to_string()),
        });
    }
    task.polls += 1;
    let status = match task {
        Task {
            is_cancelled: true, ..
        } => "cancelled",
        Task { polls, .. } if *polls <= plan.polls => "working",
        _ => &plan.end,
    };
    let shown = plan.other_id.as_deref().unwrap_or(id);
    let mut facts = facts(plan, shown, status, modern);
    if modern {
        facts["resultType"] = json!("complete");
        match (status, &plan.error) {
            ("completed", _) => facts["result"] = result,
            ("failed", Some(error)) => facts["error"] = crate::reply::error_body(error),
            ("input_required", _) => facts["inputRequests"] = json!({}),
            _ => {}
        }
    }
    Some(Outcome::Result(facts.to_string()))
}

/// The result of a task: its arguments as text.
fn result(plan: &TaskPlan, id: &str, task: &Task, modern: bool) -> Value {
    let mut text = task.arguments.to_string();
    text.extend(std::iter::repeat_n('x', plan.bytes));
    let mut result = text_result(&text, plan.is_error, modern);
    if !modern {
        result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
    }
    result
}
