//! Tool lists where jobs are tasks: the statement `execution.taskSupport`.

use serde_json::{Value, json};

/// The members of the entries of a list that depend on jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListForm {
    /// Whether the schemas of results are left out.
    pub(crate) without_output: bool,
    /// Whether each entry says that its calls may be tasks.
    pub(crate) task_support: bool,
}

/// Marks the tools with these names: their calls may be tasks.
pub(crate) fn mark(tools: &mut [Value], names: &[String]) {
    for tool in tools {
        let is_named = |known: &String| tool["name"].as_str() == Some(known);
        if names.iter().any(is_named) {
            tool["execution"] = json!({ "taskSupport": "optional" });
        }
    }
}
