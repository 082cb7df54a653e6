//! Step 3: the time that the call may take, from its arrival to its result.

use std::time::Duration;

use broker_mcp::CallTime;
use tokio::time::Instant;

use super::resolve::Target;
use crate::snapshot::Terms;
use crate::sources::tool_settings::ToolSettings;

/// The time of one call, with the settings that give it.
pub(super) struct Deadline {
    /// The current settings of the tool.
    pub(super) settings: ToolSettings,
    /// The whole time of the call: the tool's `timeout`, or less if the caller stops waiting before.
    pub(super) time: Duration,
    began: Instant,
}

impl Deadline {
    /// Returns the time of a call by these terms: from its arrival, if it was `received` before now, to the `end` that
    /// its caller sets.
    #[inline]
    pub(super) fn new(
        terms: &Terms,
        target: &Target,
        received: Option<Instant>,
        end: Option<Instant>,
    ) -> Self {
        let settings = terms.settings[target.at as usize];
        let began = received.unwrap_or_else(Instant::now);
        let until = |end: Instant| end.saturating_duration_since(began);
        let left = end.map_or(Duration::MAX, until);
        let time = left.min(settings.timeout);
        Self {
            settings,
            time,
            began,
        }
    }

    /// Returns the arrival time of the call.
    pub(super) const fn began(&self) -> Instant {
        self.began
    }

    /// Returns the remaining time.
    #[inline]
    pub(super) fn left(&self) -> Duration {
        self.time.saturating_sub(self.began.elapsed())
    }

    /// Returns the remaining time. Progress extends it up to the deadline of the caller.
    #[inline]
    pub(super) fn call_time(&self, deadline: Option<Instant>) -> CallTime {
        let until = |deadline: Instant| deadline.saturating_duration_since(self.began);
        let left = deadline.map_or(Duration::MAX, until);
        let total = left.min(self.settings.max_timeout);
        CallTime::new(self.time, self.settings.timeout, total).less(self.began.elapsed())
    }

    /// Returns the time since the call arrived, in milliseconds.
    #[inline]
    pub(super) fn passed(&self) -> Duration {
        let passed = self.began.elapsed();
        Duration::new(passed.as_secs(), passed.subsec_millis() * 1_000_000)
    }
}
