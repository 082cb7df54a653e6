//! Step 2: finds the item at the path, if it exists for the caller.

use super::record::CallRecord;
use crate::admission::NarrowedArgs;
use crate::catalog::{EntryKind, Item};
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::listing::paths;
use crate::snapshot::Snapshot;
use crate::view::Withdrawal;
use broker_mcp::CallFailure;
use broker_model::path;
use broker_model::{CallCode, SourceCause};

/// The entry that a call names.
#[derive(Clone)]
pub(super) struct Target {
    /// Its index in the catalog's tools.
    pub(super) at: u32,
    pub(super) item: &'static Item,
    pub(super) path: &'static str,
    /// The path of its source.
    pub(super) source: &'static str,
    /// The schemas that narrow the arguments for the caller.
    pub(super) narrowed: Option<NarrowedArgs>,
    /// The number of the policy that admits the call.
    pub(super) policy: u64,
}

/// Finds the item at a path, as the call begins.
pub(super) fn target(
    begun: &Snapshot,
    path: &str,
    record: Option<&CallRecord>,
) -> Result<Target, Box<CoreError>> {
    let (scope, caller) = (begun.scope(), &begun.caller);
    if let Some(record) = record {
        record.begin(begun);
    }
    let found = match paths::resolve(scope, path) {
        Ok(found) => found,
        Err(error) => {
            if let Some(record) = record {
                record.deny(begun, path);
            }
            return Err(stale_source_above(begun, path).unwrap_or(error));
        }
    };
    let entry = scope.catalog.entry(found);
    let EntryKind::Item(at) = entry.kind else {
        return Err(paths::is_node(scope, found));
    };
    let item = scope.catalog.item(at);
    let target = Target {
        at,
        item,
        path: entry.path,
        source: scope.catalog.sources[item.source as usize].path,
        narrowed: caller.narrowed(at),
        policy: caller.policy_number(),
    };
    if let Some(record) = record {
        record.resolve(begun, target.at);
    }
    Ok(target)
}

/// Returns the error for a path that the lock does not have, below a source whose part of the lock is stale: the
/// next lock may have it.
fn stale_source_above(begun: &Snapshot, path: &str) -> Option<Box<CoreError>> {
    path::check(path).ok()?;
    let is_above = |node: &str| {
        path.strip_prefix(node)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let scope = begun.scope();
    let sources = scope.catalog.sources.iter().enumerate();
    let (at, source) = sources
        .filter(|(_, source)| is_above(source.path))
        .max_by_key(|(_, source)| source.path.len())?;
    if !scope.admits(scope.catalog.find(source.path)?) {
        return None;
    }
    let failure = begun.core.fleet.source_failure(at)?;
    let is_stale = failure.cause == SourceCause::LockStale;
    let unavailable = CallFailure::Unavailable {
        failure,
        retry_after: None,
    };
    is_stale.then(|| failure::from_call(unavailable, path, source.path))
}

/// Returns the error for a tool that is withdrawn.
pub(super) fn out_of_service(target: &Target, withdrawn: &Withdrawal) -> Box<CoreError> {
    let details = serde_json::json!({
        "class": withdrawn.class.as_str(),
        "rules": withdrawn.rules,
        "expected": target.item.digest,
        "found": withdrawn.found,
        "since": withdrawn.since,
    });
    let message = format!(
        "`{}` is withdrawn: {}",
        target.path, withdrawn.reason.public
    );
    let error = CoreError::new(CallCode::ToolWithdrawn, message).path(target.path);
    Box::new(error.details(details).maybe_executed(false))
}
