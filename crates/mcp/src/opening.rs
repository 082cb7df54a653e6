//! The parameters that a supervisor adds to the start of a session.

use std::sync::Arc;

use broker_process::{StderrTail, StopDeadline};
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
