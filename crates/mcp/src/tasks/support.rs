//! The tasks of one session: the tools that are called as tasks, and the number of tasks that are followed.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use broker_model::json::each_member;
use broker_model::snapshot::ListedTool;
use broker_wire::Era;
use serde_json::Value;

use crate::opening::Negotiated;
use crate::overload::Overload;
use crate::server_call::{CallTime, ServerCall, ServerOperation};

/// The maximum number of tasks of one session that are followed at one time.
const MAX_FOLLOWED: usize = 256;

/// What a session with the extension knows about tasks.
#[derive(Debug)]
pub(crate) struct TaskSupport {
    /// Whether the server is of the legacy era and makes tasks of calls that ask for one.
    asks: bool,
    /// The tools that a legacy server calls as tasks only.
    required: RwLock<HashSet<Box<str>>>,
    followed: AtomicUsize,
}

impl TaskSupport {
    /// Returns what a session with this server knows before its first list.
    pub(crate) fn new(negotiated: &Negotiated) -> Self {
        let capability = negotiated
            .capabilities
            .pointer("/tasks/requests/tools/call");
        let makes_tasks = capability.is_some_and(Value::is_object);
        Self {
            asks: negotiated.era == Era::Legacy && makes_tasks,
            required: RwLock::default(),
            followed: AtomicUsize::new(0),
        }
    }

    /// Notes which of the listed tools are called as tasks only.
    pub(crate) fn note_tools(&self, tools: &[ListedTool]) {
        if !self.asks {
            return;
        }
        let required = tools.iter().filter(|tool| needs_task(tool.text()));
        let required = required.map(|tool| tool.name().into()).collect();
        *self
            .required
            .write()
            .unwrap_or_else(PoisonError::into_inner) = required;
    }

    /// Returns the milliseconds for which the server is asked to keep the task of a call; `None` for a call without one.
    pub(crate) fn ttl(
        &self,
        call: &ServerCall<'_>,
        time: CallTime,
    ) -> Result<Option<NonZeroU32>, Overload> {
        let ServerOperation::CallTool { name, .. } = call.operation else {
            return Ok(None);
        };
        if self.followed.load(Ordering::Relaxed) >= MAX_FOLLOWED {
            let limit = MAX_FOLLOWED;
            return Err(Overload::Queue { limit });
        }
        let required = self.required.read().unwrap_or_else(PoisonError::into_inner);
        let millis = u32::try_from(time.total().as_millis()).unwrap_or(u32::MAX);
        Ok(NonZeroU32::new(millis).filter(|_| required.contains(name)))
    }

    /// Counts a task that is followed, as long as the returned value exists.
    pub(crate) fn follow(&self) -> FollowedTask<'_> {
        self.followed.fetch_add(1, Ordering::Relaxed);
        FollowedTask(&self.followed)
    }
}

/// Counts a task that is followed.
#[derive(Debug)]
pub(crate) struct FollowedTask<'a>(&'a AtomicUsize);

impl Drop for FollowedTask<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the text of a tool says that it is called as a task only.
fn needs_task(tool: &str) -> bool {
    // Few tools have it, so that the others are not parsed.
    if !tool.contains("taskSupport") && !tool.contains("\\u") {
        return false;
    }
    let mut is_required = false;
    let read = each_member(tool.as_bytes(), |name, value| {
        if name == "execution" {
            let execution = serde_json::from_str::<Value>(value.get()).unwrap_or_default();
            is_required = execution.get("taskSupport").and_then(Value::as_str) == Some("required");
        }
    });
    read.is_ok() && is_required
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_is_called_as_a_task_only_if_its_server_says_so() {
        for (tool, expected) in [
            (
                r#"{"name":"t","execution":{"taskSupport":"required"}}"#,
                true,
            ),
            (
                r#"{"name":"t","execution":{"task\u0053upport":"required"}}"#,
                true,
            ),
            (
                r#"{"name":"t","execution":{"taskSupport":"optional"}}"#,
                false,
            ),
            (
                r#"{"name":"t","execution":{"taskSupport":"forbidden"}}"#,
                false,
            ),
            (r#"{"name":"t","execution":"taskSupport"}"#, false),
            (
                r#"{"name":"t","x":{"execution":{"taskSupport":"required"}}}"#,
                false,
            ),
            (r#"{"name":"t"}"#, false),
        ] {
            assert_eq!(needs_task(tool), expected, "{tool}");
        }
    }
}
