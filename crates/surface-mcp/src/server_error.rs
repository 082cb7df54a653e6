//! The JSON-RPC error of a server for a client that called its tool by a flat name: it stays a JSON-RPC
//! error.

use std::ops::RangeInclusive;

use broker_wire::protocol::INTERNAL_ERROR;
use broker_wire::{Era, RpcError};
use serde_json::{Value, json};

use broker_core::CoreError;

/// The key of `data` for the error of a server that the client must not see directly.
const ORIGINAL: &str = "dev.mcp-broker/original";
/// Codes of legacy implementations. A modern client must not see them.
const IMPLEMENTATION_DEFINED: RangeInclusive<i64> = -32019..=-32000;
/// Legacy: a URL has to be visited first.
const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The range that modern revisions reserve for their own errors.
const MODERN_ONLY: RangeInclusive<i64> = -32099..=-32020;

/// Returns the server's error that `error` carries; `None` if it is not one of a server.
pub(super) fn extract(error: &CoreError, era: Era) -> Option<RpcError> {
    let server = error.server_error()?;
    if is_visible(server.code, era) {
        let visible = RpcError::new(server.code, server.message.clone());
        return Some(match server.data {
            Some(data) => visible.data(data),
            None => visible,
        });
    }
    let mut original = json!({ "code": server.code, "message": server.message });
    if let Some(data) = server.data {
        original["data"] = data;
    }
    let message = format!("the server answered with error {}", server.code);
    let data = Value::from_iter([(ORIGINAL, original)]);
    Some(RpcError::new(INTERNAL_ERROR, message).data(data))
}

/// Whether a client of this era may get the code.
fn is_visible(code: i64, era: Era) -> bool {
    match era {
        Era::Modern => !IMPLEMENTATION_DEFINED.contains(&code) && code != URL_ELICITATION_REQUIRED,
        // A legacy client does not know the errors of modern requests.
        Era::Legacy => code == URL_ELICITATION_REQUIRED || !MODERN_ONLY.contains(&code),
    }
}
