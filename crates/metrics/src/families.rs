//! The table of all metrics that a broker exports. The text of a scrape and `docs/telemetry.md` are made from it.

/// A metric: its name, and what its series have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name in queries. The series of a histogram have a suffix.
    pub name: &'static str,
    /// Its kind.
    pub kind: FamilyKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The unit of its values.
    pub unit: &'static str,
    /// Its meaning, in one sentence.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// It only grows.
    Counter,
    /// It has the value of the moment.
    Gauge,
    /// It counts durations in buckets.
    Histogram,
    /// It is always 1; its labels are the information.
    Info,
}

impl FamilyKind {
    /// The name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// Declares the metrics as constants, and the list of all.
macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal, [$($label:literal),*], $unit:literal, $help:literal;)*) => {
        $(pub(crate) static $constant: Family = Family {
            name: $name,
            kind: FamilyKind::$kind,
            labels: &[$($label),*],
            unit: $unit,
            help: $help,
        };)*

        /// All metrics, in the order in which they are exported.
        pub static FAMILIES: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    TARGET = Info "target_info", ["service_name", "service_version"], "1", "The service that is scraped.";
    BUILD = Info "mcp_broker_build_info", ["version", "catalog"], "1", "The version of the broker and the digest of its catalog.";
    SERVER_DURATION = Histogram "mcp_server_operation_duration_seconds", ["mcp_method_name", "gen_ai_tool_name", "gen_ai_prompt_name", "mcp_broker_item", "network_transport", "mcp_broker_source"], "seconds", "The time from the arrival of a request of a caller to its reply.";
    CLIENT_DURATION = Histogram "mcp_client_operation_duration_seconds", ["mcp_method_name", "gen_ai_tool_name", "gen_ai_prompt_name", "mcp_broker_item", "network_transport", "mcp_broker_source"], "seconds", "The time from a request to the server of a source to its answer.";
    CALLS = Counter "mcp_broker_calls_total", ["source", "tool", "outcome"], "calls", "Calls that ended with a result or an error, by outcome: ok, tool_error, refused or failed.";
    CALLS_REFUSED = Counter "mcp_broker_calls_refused_total", ["code"], "calls", "Requests that were refused and not executed, by the code of the error.";
    CALLS_FAILED = Counter "mcp_broker_calls_failed_total", ["code"], "calls", "Calls that failed while the server or the broker worked on them, by the code of the error.";
    CALLS_ABANDONED = Counter "mcp_broker_calls_abandoned_total", ["source"], "calls", "Calls whose caller left before the end.";
    RESULT_BYTES = Counter "mcp_broker_result_bytes_total", ["tool"], "bytes", "The size of the results that callers received.";
    RESULT_TOKENS = Counter "mcp_broker_result_tokens_estimated_total", ["tool"], "tokens", "The tokens of the results, estimated as one for every 4 bytes.";
    SOURCE_STATE = Gauge "mcp_broker_source_state", ["source", "state"], "sources", "1 for the state that the source has, 0 for the others; for further sources together, how many have the state.";
    SOURCE_RESTARTS = Counter "mcp_broker_source_restarts_total", ["source"], "restarts", "Attempts to start the source after the first.";
    SOURCE_HANGS = Counter "mcp_broker_source_hangs_total", ["source"], "restarts", "Restarts of the source because its server hung.";
    QUEUE_DEPTH = Gauge "mcp_broker_queue_depth", ["source"], "calls", "Calls that wait for the source.";
    QUEUE_WAITS = Counter "mcp_broker_queue_waits_total", ["source"], "calls", "Calls that had to wait for the source.";
    QUEUE_WAIT_TIME = Counter "mcp_broker_queue_wait_seconds_total", ["source"], "seconds", "The sum of the times that calls waited for the source.";
    CERTIFICATE_EXPIRY = Gauge "mcp_broker_certificate_expiry_timestamp_seconds", ["source"], "seconds", "When the first certificate of the source expires, of its server, `ca_file` or `client_cert`, in seconds since 1970.";
    TOOLS_WITHDRAWN = Gauge "mcp_broker_tools_withdrawn", [], "tools", "Exposed tools that are withdrawn because of drift.";
    DRIFT_FINDINGS = Counter "mcp_broker_drift_findings_total", ["class"], "findings", "Differences between a source and the lock that a comparison found, by drift class.";
    SESSIONS = Gauge "mcp_broker_sessions", [], "sessions", "Sessions of MCP clients.";
    STREAMS = Gauge "mcp_broker_streams", [], "streams", "Open event streams and WebSocket connections.";
    MEMORY_BUDGET = Gauge "mcp_broker_memory_budget_bytes", ["kind"], "bytes", "The memory budget: its limit, and the part in use.";
    AUDIT_SEQ = Gauge "mcp_broker_audit_seq", [], "lines", "The number of the last line of the audit log.";
    AUDIT_LAG = Gauge "mcp_broker_audit_lag_lines", [], "lines", "Audit lines that wait to be written.";
    AUDIT_AVAILABLE = Gauge "mcp_broker_audit_available", [], "1 or 0", "Whether the audit log can be written.";
    AUDIT_SPACE_LEFT = Gauge "mcp_broker_audit_space_left_seconds", [], "seconds", "The time until the disk of the audit log is full at the current rate.";
    DROPPED = Counter "mcp_broker_telemetry_dropped_total", ["what"], "records", "Calls without their spans, and audit lines, that were not exported over OTLP: a queue was full, or the receiver did not take them.";
    SEARCH_DEGRADED = Gauge "mcp_broker_search_degraded", [], "1 or 0", "Whether searches answer by words because the embedder fails.";
    KEY_EXPIRY = Gauge "mcp_broker_key_expiry_timestamp_seconds", [], "seconds", "When the next key of a caller expires, in seconds since 1970.";
}
