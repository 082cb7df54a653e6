//! The health of a broker: whether it is ready, and the state of every source.

use std::sync::Arc;

use broker_mcp::{State, Status};
use serde::Serialize;

use crate::Fleet;
use crate::catalog::Source;
use crate::sources::listing_notes::ListingNotes;
use crate::sources::time::rfc3339;
use crate::view::{View, Withdrawal};

/// Maximum number of withdrawn tools of a source that are named; `withdrawn` counts all.
const MAX_NAMED: usize = 20;

/// The reply of `/readyz`, in the order of its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Whether the gate is open, a source is ready, and no shutdown has begun.
    pub ready: bool,
    /// Whether a source is not ready or a tool is withdrawn.
    pub degraded: bool,
    /// The digest of the catalog.
    pub catalog_digest: &'static str,
    /// Every source, in the order of the config.
    pub sources: Vec<SourceHealth>,
    /// The origin of the catalog; `/healthz` shows it.
    #[serde(skip)]
    pub built_from: BuiltFrom,
}

/// The origin of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BuiltFrom {
    /// The config's file name.
    pub config: &'static str,
    /// The digest of the config fields that the lock covers.
    pub config_digest: &'static str,
    /// The lock's digest.
    pub root_digest: &'static str,
}

/// One source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceHealth {
    /// The path of its node.
    pub path: &'static str,
    /// `starting`, `ready`, `backoff`, `failed`, `withdrawn` or `stopping`.
    pub state: &'static str,
    /// Why it is not ready, one of the source causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
    /// The number of tools that it exposes.
    pub tools: usize,
    /// The number of them that are withdrawn.
    pub withdrawn: usize,
    /// The first of them, by the order of the catalog; not part of `/readyz`.
    #[serde(skip)]
    pub withdrawn_tools: Vec<WithdrawnTool>,
    /// When it last answered a call, RFC 3339 in UTC; not part of `/readyz`.
    #[serde(skip)]
    pub last_ok: Option<String>,
    /// Counters since the start of the broker; not part of `/readyz`.
    #[serde(skip)]
    pub counters: SourceCounters,
    /// When the first of the certificates for it expires, in Unix time; `None` without TLS. Not part of `/readyz`.
    #[serde(skip)]
    pub certificate_expiry: Option<u64>,
    /// The unused parts of its latest listing; not part of `/readyz`.
    #[serde(skip)]
    pub notes: Arc<ListingNotes>,
    /// Its processes; not part of `/readyz`.
    #[serde(skip)]
    pub instances: Vec<InstanceHealth>,
}

/// One withdrawn tool, as `/sources` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WithdrawnTool {
    /// The path of the tool.
    pub path: &'static str,
    /// The drift class.
    pub class: &'static str,
    /// The drift rules.
    pub rules: Vec<&'static str>,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
}

impl WithdrawnTool {
    fn new(path: &'static str, withdrawal: &Withdrawal) -> Self {
        Self {
            path,
            class: withdrawal.class.as_str(),
            rules: withdrawal.rules.clone(),
            since: withdrawal.since.clone(),
        }
    }
}

/// One process of a source, as `/sources` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceHealth {
    /// The state, as for a source.
    pub state: &'static str,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
    /// When it is started again by itself, RFC 3339 in UTC. Of a ready server over HTTP: the end of the pause that it
    /// asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<String>,
}

impl From<&Status> for InstanceHealth {
    fn from(status: &Status) -> Self {
        let failure = status.failure.as_ref();
        Self {
            state: status.state.as_str(),
            cause: failure
                .filter(|_| status.state != State::Ready)
                .map(|failure| failure.cause.as_str()),
            since: rfc3339(status.since),
            next_attempt: status.next_attempt.map(rfc3339),
        }
    }
}

/// Counts of one source over all its processes, as `/sources` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceCounters {
    /// Calls that it received.
    pub calls: u64,
    /// Calls that ended without a result.
    pub failures: u64,
    /// Calls in a row, up to now, that its server did not answer.
    pub consecutive_failures: u64,
    /// Attempts to start it after the first.
    pub restarts: u64,
    /// Times that its server was started again because it hung.
    pub hangs: u64,
    /// Calls that wait for a place at its processes now.
    pub waiting: u64,
    /// Calls that had to wait for a place.
    pub waited: u64,
    /// The sum of the times that they waited, in milliseconds.
    pub waited_ms: u64,
    /// Lines on its stdout that were not messages.
    pub noise_lines: u64,
    /// Lines over the limit.
    pub oversize_lines: u64,
    /// Lines with replaced invalid UTF-8.
    pub invalid_utf8_lines: u64,
    /// Answers to calls that were never made.
    pub unknown_ids: u64,
    /// Answers to calls that had ended.
    pub late_answers: u64,
    /// Requests that it sent to the broker.
    pub server_requests: u64,
    /// Requests that were not answered, since their id is too long.
    pub unanswered_requests: u64,
    /// Notifications of progress that were over a limit.
    pub dropped_progress: u64,
    /// Log messages that certainly belong to no single call, cannot be read, or were over a limit.
    pub dropped_log_messages: u64,
}

impl SourceCounters {
    /// Returns the counters over all processes of a source. The processes share them, except for the restarts.
    fn from_statuses(statuses: &[Status]) -> Self {
        let Some(status) = statuses.first() else {
            return Self::default();
        };
        let counters = &status.counters;
        let (waited, waited_time) = counters.waited();
        Self {
            waited,
            waited_ms: waited_time.as_millis().try_into().unwrap_or(u64::MAX),
            waiting: 0,
            calls: counters.calls(),
            failures: counters.failures(),
            consecutive_failures: counters.consecutive_failures(),
            restarts: statuses.iter().map(|status| status.restarts).sum(),
            hangs: counters.hangs(),
            noise_lines: counters.noise_lines(),
            oversize_lines: counters.oversize_lines(),
            invalid_utf8_lines: counters.invalid_utf8_lines(),
            unknown_ids: counters.unknown_ids(),
            late_answers: counters.late_answers(),
            server_requests: counters.server_requests(),
            unanswered_requests: counters.unanswered_requests(),
            dropped_progress: counters.dropped_progress(),
            dropped_log_messages: counters.dropped_log_messages(),
        }
    }
}

impl Health {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        // The view is read after the gate: a broker that is ready shows what its start has withdrawn.
        let is_ready = fleet.drift_state.gate.is_ready() && !fleet.shared.drain.is_draining();
        let view = fleet.drift_state.view_after_verdicts();
        let sources = fleet.catalog.sources.iter().enumerate();
        let sources: Vec<_> = sources
            .map(|(at, source)| SourceHealth::new(fleet, at, source, &view))
            .collect();
        // A catalog without sources does not have to wait.
        let serves = sources.is_empty() || sources.iter().any(SourceHealth::is_ready);
        Self {
            ready: is_ready && serves,
            degraded: sources
                .iter()
                .any(|source| !source.is_ready() || source.withdrawn > 0),
            catalog_digest: fleet.catalog.catalog_digest,
            sources,
            built_from: BuiltFrom {
                config: fleet.catalog.config_name,
                config_digest: fleet.catalog.config_digest,
                root_digest: fleet.catalog.root_digest,
            },
        }
    }
}

impl SourceHealth {
    fn is_ready(&self) -> bool {
        self.state == State::Ready.as_str()
    }

    fn new(fleet: &Fleet, at: usize, source: &'static Source, view: &View) -> Self {
        let shown = source.items.iter().filter(|tool| !view.is_hidden(**tool));
        let (mut tools, mut withdrawn) = (0, 0);
        let mut withdrawn_tools = Vec::new();
        for tool in shown {
            tools += 1;
            let Some(withdrawal) = view.withdrawn(*tool) else {
                continue;
            };
            withdrawn += 1;
            if withdrawn_tools.len() < MAX_NAMED {
                let entry = fleet.catalog.item(*tool).entry;
                let path = fleet.catalog.entry(entry).path;
                withdrawn_tools.push(WithdrawnTool::new(path, withdrawal));
            }
        }
        let statuses = fleet.statuses(at);
        let last_ok = statuses
            .first()
            .and_then(|status| status.counters.last_ok());
        // The state of a source is the state of its best process.
        let best = statuses.iter().min_by_key(|status| rank(status.state));
        let (mut state, mut since, mut cause) = match best {
            Some(status) => (
                status.state,
                rfc3339(status.since),
                status.failure.as_ref().map(|failure| failure.cause),
            ),
            None => (State::Starting, rfc3339(fleet.created), None),
        };
        if state == State::Ready {
            cause = None;
            if tools > 0 && withdrawn == tools {
                state = State::Withdrawn;
                let shown = source.items.iter().filter(|tool| !view.is_hidden(**tool));
                let withdrawals = shown.filter_map(|tool| view.withdrawn(*tool));
                // RFC 3339 in UTC sorts as text.
                since = withdrawals
                    .map(|withdrawn| withdrawn.since.clone())
                    .max()
                    .unwrap_or(since);
            }
        }
        Self {
            path: source.path,
            state: state.as_str(),
            cause: cause.map(|cause| cause.as_str()),
            since,
            tools,
            withdrawn,
            withdrawn_tools,
            last_ok: last_ok.map(rfc3339),
            counters: SourceCounters {
                waiting: fleet.waiting(at) as u64,
                ..SourceCounters::from_statuses(&statuses)
            },
            certificate_expiry: statuses
                .first()
                .and_then(|status| status.counters.certificate_expiry()),
            notes: fleet.drift_state.notes.get(at),
            instances: statuses.iter().map(InstanceHealth::from).collect(),
        }
    }
}

/// Returns the rank of a state: lower is more useful to a caller.
pub(crate) fn rank(state: State) -> u8 {
    match state {
        State::Ready => 0,
        State::Starting => 1,
        State::Backoff => 2,
        State::Failed => 3,
        State::Withdrawn => 4,
        State::Stopping => 5,
    }
}
