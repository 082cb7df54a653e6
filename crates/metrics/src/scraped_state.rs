//! The state of a broker that is read when a client scrapes. Its owner fills it; no call keeps it up to date.

/// The state of a broker at one moment.
#[derive(Clone, Debug, Default)]
pub struct ScrapedState {
    /// The sources, in the order of the catalog.
    pub sources: Vec<ScrapedSource>,
    /// The exposed tools that are withdrawn now.
    pub tools_withdrawn: u64,
    /// Client sessions.
    pub sessions: u64,
    /// Open event streams and WebSocket connections.
    pub streams: u64,
    /// The memory budget.
    pub memory: MemoryState,
    /// The audit log; `None` if the config has none.
    pub audit: Option<AuditState>,
    /// What an exporter dropped; `None` without one.
    pub dropped: Option<DroppedState>,
    /// Whether searches answer by words since the embedder fails; `None` without an embedder.
    pub is_search_degraded: Option<bool>,
    /// When the next of the callers' keys expires, in seconds since 1970; `None` if no key does.
    pub key_expiry: Option<i64>,
}

/// The state of a source.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScrapedSource {
    /// Its state.
    pub state: SourceState,
    /// Attempts to start it after the first.
    pub restarts: u64,
    /// Restarts because its server hung.
    pub hangs: u64,
    /// Calls that wait for it.
    pub queue_depth: u64,
    /// Calls that had to wait for it.
    pub waited_calls: u64,
    /// The sum of the times that they waited, in milliseconds.
    pub waited_ms: u64,
    /// When the first of its certificates expires, in seconds since 1970; `None` without TLS.
    pub certificate_expiry: Option<u64>,
}

/// The state of a source, as the label `state` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// It is being started.
    #[default]
    Starting,
    /// It receives calls.
    Ready,
    /// It is down and will be started again.
    Backoff,
    /// It is down for a cause that does not end by itself.
    Failed,
    /// It differs from the lock.
    Withdrawn,
    /// It is being stopped.
    Stopping,
}

impl SourceState {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::Starting,
        Self::Ready,
        Self::Backoff,
        Self::Failed,
        Self::Withdrawn,
        Self::Stopping,
    ];

    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
            Self::Withdrawn => "withdrawn",
            Self::Stopping => "stopping",
        }
    }
}

/// The memory budget.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryState {
    /// Its size, in bytes.
    pub limit: u64,
    /// The bytes in use.
    pub used: u64,
}

/// What an exporter dropped, since a queue was full or the receiver did not take it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DroppedState {
    /// Calls without their spans.
    pub spans: u64,
    /// Lines of the audit log.
    pub audit_lines: u64,
}

/// The state of the audit log.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditState {
    /// The number of the last line.
    pub seq: u64,
    /// Lines that wait to be written.
    pub lag_lines: u64,
    /// Whether lines can be written.
    pub is_available: bool,
    /// The time until the disk is full at the current rate; `None` if it does not fill.
    pub space_left_seconds: Option<f64>,
}
