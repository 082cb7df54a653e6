//! What a live listing becomes in a lock, and what differs from the lock there is. Its tools are parsed
//! aside, in one of the few places that there are for that.

use std::sync::Arc;

use broker_drift::Report;
use broker_mcp::ConcurrencyLimits;
use broker_model::NodePath;
use broker_model::config::Source;
use broker_model::lock::{Lock, LockedSource};
use broker_model::snapshot::{ListedTool, Snapshot};

use super::survey::resume;

/// Bytes that the exposed tools of one source may take once parsed: a lock holds all of them at once.
const MAX_EXPOSED_BYTES: u64 = 32 << 20;

/// The exposed tools of a source would take this many bytes once parsed, more than a lock may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    source: NodePath,
    bytes: u64,
}

impl TooLarge {
    /// The text of the error, without a full stop.
    pub(super) fn message(&self) -> String {
        format!(
            "the exposed tools of `{}` would take {} bytes once parsed, and at most {MAX_EXPOSED_BYTES} go into a lock",
            self.source, self.bytes
        )
    }

    /// The remedy that the error names.
    pub(super) const HELP: &str = "Leave tools out with `tool_filter`.";
}

/// The source as a lock has it.
pub(super) async fn locked(
    source: &Source,
    snapshot: Snapshot,
    concurrency: &ConcurrencyLimits,
) -> Result<LockedSource, TooLarge> {
    let source = source.clone();
    let work = concurrency.parse_aside(move || to_locked(&source, &snapshot));
    work.await.unwrap_or_else(resume)
}

/// Compares a live source with its entry in the lock. Gives the report, and the entry that a new lock would
/// have; `None` if the lock has no such source.
pub(super) async fn compared(
    source: &Source,
    lock: &Arc<Lock>,
    snapshot: Snapshot,
    concurrency: &ConcurrencyLimits,
) -> Option<(Report, Result<LockedSource, TooLarge>)> {
    let (source, lock) = (source.clone(), lock.clone());
    let work = concurrency.parse_aside(move || {
        let locked = lock.source(source.path.as_str())?;
        let report = broker_drift::classify(locked, &snapshot, &source.filter);
        Some((report, to_locked(&source, &snapshot)))
    });
    work.await.unwrap_or_else(resume)
}

fn to_locked(source: &Source, snapshot: &Snapshot) -> Result<LockedSource, TooLarge> {
    let exposed = snapshot.tools.iter();
    let exposed = exposed.filter(|tool| source.filter.admits(tool.name()));
    let bytes: u64 = exposed.map(ListedTool::parsed_bytes).sum();
    if bytes > MAX_EXPOSED_BYTES {
        let source = source.path.clone();
        return Err(TooLarge { source, bytes });
    }
    Ok(LockedSource::from_snapshot(source, snapshot))
}
