//! The entries directly below the topmost one that a caller sees, for texts that introduce the tree.

use std::borrow::Cow;

use serde::Deserialize;

use crate::catalog::EntryKind;
use crate::listing::scope::Scope;
use crate::types::AreaRef;

/// The summary in the head of an entry.
#[derive(Deserialize)]
struct Head {
    summary: String,
}

/// The areas of a caller, in the order of a listing.
pub(crate) fn areas(scope: Scope<'_>) -> Vec<AreaRef> {
    let catalog = scope.catalog;
    let Some(subtree) = scope.caller.subtree() else {
        let areas = catalog.areas.iter();
        return areas
            .filter(|area| scope.admits(area.entry))
            .map(|area| AreaRef {
                path: catalog.entry(area.entry).path,
                summary: Cow::Borrowed(area.summary),
            })
            .collect();
    };
    let own = [subtree.root];
    let entries: &[u32] = match catalog.entry(subtree.root).kind {
        EntryKind::Node { children, .. } => children,
        EntryKind::Tool(_) => &own,
    };
    let entries = entries.iter().filter(|at| scope.admits(**at));
    entries
        .map(|at| AreaRef {
            path: catalog.entry(*at).path,
            summary: summary(scope, *at).into(),
        })
        .collect()
}

/// The summary of an entry as plain text, which the catalog has only for the children of the root.
fn summary(scope: Scope<'_>, at: u32) -> String {
    let head = scope.catalog.text(scope.catalog.entry(at).head);
    let head: Option<Head> = serde_json::from_str(&format!("{head}}}")).ok();
    head.map(|head| head.summary).unwrap_or_default()
}
