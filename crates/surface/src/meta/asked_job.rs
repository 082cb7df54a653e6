//! What the body of a call asks of jobs.

use std::borrow::Cow;
use std::time::Duration;

use broker_core::{CallMode, CoreError};

use super::members::field_invalid;

/// The longest time for which a caller can ask to keep a job, in seconds: a week.
const MAX_TTL_SECONDS: u64 = 604_800;

/// What the body of a call asks of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AskedJob {
    /// How long the caller waits; `None` for the mode of the surface.
    pub(super) mode: Option<CallMode>,
    /// The time for which the finished job is kept.
    pub(super) ttl: Option<Duration>,
}

impl AskedJob {
    /// Reads the JSON of the members `mode` and `ttl_s`, if there are any.
    pub(super) fn read(mode: Option<&str>, ttl: Option<&str>) -> Result<Self, Box<CoreError>> {
        let mode = mode.map(|text| {
            let name = serde_json::from_str::<Cow<'_, str>>(text).ok();
            let mode = name.and_then(|name| CallMode::parse(&name));
            mode.ok_or_else(|| field_invalid("`mode` must be `sync`, `async` or `auto`".to_owned()))
        });
        let ttl = ttl.map(|text| {
            let seconds = serde_json::from_str::<u64>(text).ok();
            let seconds = seconds.filter(|seconds| (1..=MAX_TTL_SECONDS).contains(seconds));
            seconds.map(Duration::from_secs).ok_or_else(|| {
                field_invalid(format!(
                    "`ttl_s` must be an integer from 1 to {MAX_TTL_SECONDS}"
                ))
            })
        });
        Ok(Self {
            mode: mode.transpose()?,
            ttl: ttl.transpose()?,
        })
    }
}
