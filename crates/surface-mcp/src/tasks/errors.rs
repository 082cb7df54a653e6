//! Errors of jobs as errors of JSON-RPC.

use broker_core::{CallCode, CoreError};
use broker_wire::protocol::{INTERNAL_ERROR, INVALID_PARAMS};
use broker_wire::{Era, RpcError};

use crate::{result, server_error};

/// The codes of requests that the client has to change.
const WRONG_PARAMS: [CallCode; 8] = [
    CallCode::JobNotFound,
    CallCode::JobFinished,
    CallCode::FieldInvalid,
    CallCode::FieldUnknown,
    CallCode::ArgsInvalid,
    CallCode::JsonInvalid,
    CallCode::PathNotFound,
    CallCode::PathInvalid,
];

/// Returns an error of the broker as an error of JSON-RPC. The error of a server stays the error of the server.
pub(crate) fn rpc_error(error: &CoreError, era: Era, request_id: &str) -> RpcError {
    server_error::extract(error, era).unwrap_or_else(|| {
        let code = match WRONG_PARAMS.contains(&error.code) {
            true => INVALID_PARAMS,
            false => INTERNAL_ERROR,
        };
        let object = result::error_object(error, request_id);
        RpcError::new(code, error.message.clone()).data(object)
    })
}
