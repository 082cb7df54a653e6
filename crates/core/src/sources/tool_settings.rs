//! The settings of the calls of one tool.

use std::time::Duration;

use broker_config::RenderMode;

/// The settings of the calls of one tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolSettings {
    pub(crate) timeout: Duration,
    /// The maximum time in all of a call whose server reports progress.
    pub(crate) max_timeout: Duration,
    /// The maximum length of a reply, in characters, if the config sets one for the tool or its source.
    pub(crate) limit: Option<usize>,
    /// The limit of other replies to models.
    pub(crate) default_limit: usize,
    /// Whether arguments that do not match are converted.
    pub(crate) coerces: bool,
    pub(crate) form: RenderMode,
    /// Whether a call that a server may have executed before it ended is sent once more.
    pub(crate) retry: bool,
    /// The maximum time that a call waits for the source to start.
    pub(crate) start_wait: Duration,
    /// Whether the source is `trusted`, so that it gets the baggage of callers.
    pub(crate) is_trusted: bool,
}
