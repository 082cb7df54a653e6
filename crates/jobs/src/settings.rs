//! The settings of the layer.

use std::time::Duration;

use broker_core::CallMode;

/// The settings of jobs.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// The time after which a call in the mode `auto` becomes a job.
    pub promote_after: Duration,
    /// The mode of a call of an MCP client that names none.
    pub mcp_mode: CallMode,
    /// The time for which a finished job is kept, if its caller names none.
    pub ttl: Duration,
}

impl JobSettings {
    /// The time after which a call becomes a job, without a setting.
    pub const PROMOTE_AFTER: Duration = Duration::from_secs(15);
    /// The time for which a finished job is kept, without a setting.
    pub const TTL: Duration = Duration::from_secs(3600);
    /// The longest time for which a finished job is kept.
    pub const MAX_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
    /// The maximum number of running jobs of one owner.
    pub const MAX_RUNNING: u64 = 4;
}
