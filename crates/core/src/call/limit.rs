//! Step 4: the time that the call may take, from its arrival to its result.

use std::time::Duration;

use tokio::time::Instant;

use super::resolve::Target;
use crate::Inner;
use crate::call::context::CallContext;
use crate::sources::setup::ToolSettings;

/// The bounds of one call.
pub(super) struct Limits {
    /// The current settings of the tool.
    pub(super) settings: ToolSettings,
    /// The whole time of the call: the tool's `timeout`, or less if the caller stops waiting before.
    pub(super) time: Duration,
    began: Instant,
}

impl Inner {
    pub(super) fn limits(&self, target: &Target, context: &CallContext<'_>) -> Limits {
        let settings = self.settings.load()[target.at as usize];
        let began = context.received.unwrap_or_else(Instant::now);
        let until = |deadline: Instant| deadline.saturating_duration_since(began);
        let time = match context.deadline.map(until) {
            Some(time) => time.min(settings.timeout),
            None => settings.timeout,
        };
        Limits {
            settings,
            time,
            began,
        }
    }
}

impl Limits {
    /// The remaining time.
    pub(super) fn left(&self) -> Duration {
        self.time.saturating_sub(self.began.elapsed())
    }
}
