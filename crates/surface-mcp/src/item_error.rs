//! Errors of the methods about prompts and resources.

use broker_core::CoreError;
use broker_wire::protocol::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
use broker_wire::{Era, RpcError};
use serde_json::json;

/// The maximum characters of a URI in an error.
const MAX_URI_CHARS: usize = 1024;

/// The error of a URI that no entry of the caller covers.
pub(super) fn not_found(uri: &str, era: Era) -> RpcError {
    let code = match era {
        Era::Legacy => RESOURCE_NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    let uri = broker_model::text::shown_line(uri, MAX_URI_CHARS);
    RpcError::new(code, "the resource does not exist").data(json!({ "uri": uri }))
}

/// The error of a prompt or resource that the broker refuses: these methods have no results with `isError`.
pub(super) fn refusal(error: &CoreError, object: serde_json::Value) -> RpcError {
    use broker_model::CallCode as C;
    let of_params = [
        C::ArgsInvalid,
        C::FieldInvalid,
        C::JsonInvalid,
        C::PathNotFound,
    ];
    let code = match of_params.contains(&error.code) {
        true => INVALID_PARAMS,
        false => broker_wire::protocol::INTERNAL_ERROR,
    };
    RpcError::new(code, error.message.clone()).data(object)
}
