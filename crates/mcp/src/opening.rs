//! The start of a session: the parameters that a supervisor adds, and the result of the handshake.

use std::sync::Arc;

use broker_process::{StderrTail, StopDeadline};
use broker_wire::Era;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::status::Counters;

/// The parameters that a supervisor adds to the start of a session.
pub(crate) struct Opening<'a> {
    pub(crate) tail: &'a StderrTail,
    pub(crate) counters: &'a Arc<Counters>,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) stop_deadline: &'a StopDeadline,
    /// Whether there may be a second try when the first process dies, or its server over HTTP fails in the known era.
    pub(crate) second_try: bool,
}

/// The result of a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) era: Era,
    pub(crate) server_info: Value,
    pub(crate) protocol_version: String,
    pub(crate) capabilities: Value,
    pub(crate) instructions: Option<String>,
}
