//! The id of a task in the params of a request: the id of its job.

use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::{JsonMembers, RpcError, valid_string};

/// Reads the id of a task.
pub(super) fn task_id(params: &JsonMembers<'_>) -> Result<Box<str>, RpcError> {
    let id = params.given("taskId").and_then(valid_string);
    let id = id.ok_or_else(|| RpcError::new(INVALID_PARAMS, "`taskId` must be a string"))?;
    Ok(id.into())
}
