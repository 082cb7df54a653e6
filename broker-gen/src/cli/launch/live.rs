//! The locked form of a live listing, and its differences from the current lock. Tools are parsed on a
//! blocking thread, within the limit on concurrent parsing.

use std::sync::Arc;

use broker_config::Source;
use broker_drift::Report;
use broker_mcp::ConcurrencyLimits;
use broker_model::NodePath;
use broker_model::lock::{Lock, LockedSource};
use broker_model::snapshot::{ListedTool, Snapshot};

use crate::cli::launch::launch_all::resume;
use crate::cli::schemas;

/// Maximum memory of the parsed exposed tools of one source: a lock holds all of them at once.
const MAX_EXPOSED_BYTES: u64 = 32 << 20;

/// The estimated memory of a source's exposed tools, in bytes; it exceeds the bound of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct TooLarge {
    source: NodePath,
    bytes: u64,
}

impl TooLarge {
    /// The text of the error, without a full stop.
    pub(in crate::cli) fn message(&self) -> String {
        format!(
            "the exposed tools of `{}` would take {} bytes of memory, and a lock holds at most {MAX_EXPOSED_BYTES}",
            self.source, self.bytes
        )
    }

    /// The remedy of the error.
    pub(in crate::cli) const HELP: &str = "Hide tools with `tool_filter`.";
}

/// The locked form of the source.
pub(in crate::cli) async fn locked(
    source: &Source,
    snapshot: Snapshot,
    concurrency: &ConcurrencyLimits,
) -> Result<LockedSource, TooLarge> {
    let source = source.clone();
    let work = concurrency.parse_aside(move || to_locked(&source, &snapshot));
    work.await.unwrap_or_else(resume)
}

/// Compares a live source with its entry in the lock. Returns the report and the new entry; `None` if the
/// lock has no such source.
pub(in crate::cli) async fn compared(
    source: &Source,
    lock: &Arc<Lock>,
    snapshot: Snapshot,
    concurrency: &ConcurrencyLimits,
) -> Option<(Report, Result<LockedSource, TooLarge>)> {
    let (source, lock) = (source.clone(), lock.clone());
    let work = concurrency.parse_aside(move || {
        let locked = lock.source(source.path.as_str())?;
        let report = broker_drift::classify(locked, &snapshot, &source.exposure);
        Some((report, to_locked(&source, &snapshot)))
    });
    work.await.unwrap_or_else(resume)
}

fn to_locked(source: &Source, snapshot: &Snapshot) -> Result<LockedSource, TooLarge> {
    let exposed = snapshot.tools.iter();
    let exposed = exposed.filter(|tool| source.exposure.exposes(tool.name()));
    let bytes: u64 = exposed.map(ListedTool::parsed_bytes).sum();
    if bytes > MAX_EXPOSED_BYTES {
        let source = source.path.clone();
        return Err(TooLarge { source, bytes });
    }
    let mut locked = source.to_locked(snapshot);
    schemas::mark_unvalidated(source, &mut locked);
    Ok(locked)
}
