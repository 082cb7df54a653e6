//! Errors of calls whose tool does not exist for the caller.

use broker_config::McpMode;
use broker_surface::meta::similar_names;
use broker_wire::RpcError;
use broker_wire::protocol::INVALID_PARAMS;
use serde_json::json;

use super::tools::{call_names, own_names};
use crate::ClientView;

/// Returns the error of a call of a tool that the client does not see.
pub(super) fn unknown_own_tool(view: ClientView, name: &str) -> RpcError {
    let shown = broker_model::text::shown_line(name, 80);
    let names = own_names(view);
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = match (view.mode, name.starts_with('/'), call_names(view).first()) {
        (McpMode::Search, true, Some(call)) => {
            format!("unknown tool `{shown}`: call it by `{call}` with this as `name`")
        }
        (_, true, Some(call)) => {
            format!("unknown tool `{shown}`: call it by `{call}` with this as `path`")
        }
        _ => {
            let (last, others) = quoted.split_last().expect("a view has tools");
            let others = others.join(", ");
            format!("unknown tool `{shown}`: there are {others} and {last}")
        }
    };
    let error = RpcError::new(INVALID_PARAMS, message);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match similar_names(name, &names) {
        close if close.is_empty() => error,
        close => error.data(json!({ "did_you_mean": close })),
    }
}

/// Returns the same error for a tool that does not exist and one that the caller may not see.
pub(super) fn unknown_flat_name(name: &str) -> RpcError {
    let shown = broker_model::text::shown_line(name, 160);
    let message = format!("unknown tool `{shown}`: `tools/list` has the names");
    RpcError::new(INVALID_PARAMS, message)
}
