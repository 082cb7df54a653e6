//! The result of a handshake.

use broker_wire::Era;
use serde_json::Value;

/// What client and server agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) era: Era,
    pub(crate) server_info: Value,
    pub(crate) protocol_version: String,
    pub(crate) capabilities: Value,
    pub(crate) instructions: Option<String>,
}
