//! JSON-RPC errors as they are written.

use serde_json::Value;

/// The error of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The code of JSON-RPC or of MCP.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The member `data`, left out if absent.
    pub data: Option<Value>,
}

impl RpcError {
    /// Makes an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Sets `data`.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}
