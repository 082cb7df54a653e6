//! The entries directly below the topmost one that a caller sees, for texts that introduce the tree.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Core;
use crate::catalog::EntryKind;
use crate::identity::Identity;
use crate::listing::scope::Scope;
use crate::types::AreaRef;

/// The summary in the head of an entry.
#[derive(Deserialize)]
struct Head {
    summary: String,
}

impl Core {
    /// Returns the paths of at most `max` withdrawn tools that exist for the caller, in the order of the catalog, and
    /// the number of all.
    pub fn withdrawn_paths(&self, identity: &Identity, max: usize) -> (Vec<&'static str>, usize) {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        let tools = (0u32..).zip(scope.catalog.items.iter());
        let withdrawn =
            tools.filter(|(at, tool)| view.withdrawn(*at).is_some() && scope.admits(tool.entry));
        let (mut paths, mut count) = (Vec::new(), 0);
        for (_, tool) in withdrawn {
            if count < max {
                paths.push(scope.catalog.entry(tool.entry).path);
            }
            count += 1;
        }
        (paths, count)
    }
}

/// Returns the areas of a caller, in the order of a listing.
pub(crate) fn areas(scope: Scope<'_>) -> Vec<AreaRef> {
    let catalog = scope.catalog;
    let area = |at: u32, summary: Cow<'static, str>| AreaRef {
        path: catalog.entry(at).path,
        summary,
        is_node: matches!(catalog.entry(at).kind, EntryKind::Node { .. }),
    };
    let Some(subtree) = scope.caller.subtree() else {
        let areas = catalog.areas.iter();
        return areas
            .filter(|area| scope.admits(area.entry))
            .map(|compiled| match scope.own_summary(compiled.entry) {
                None => area(compiled.entry, Cow::Borrowed(compiled.summary)),
                Some(summary) => area(compiled.entry, summary.into()),
            })
            .collect();
    };
    let Some(root) = subtree.entry() else {
        return Vec::new();
    };
    let own = [root];
    let entries: &[u32] = match catalog.entry(root).kind {
        EntryKind::Node { children, .. } => children,
        EntryKind::Item(_) => &own,
    };
    let entries = entries.iter().filter(|at| scope.admits(**at));
    entries
        .map(|at| area(*at, summary(scope, *at).into()))
        .collect()
}

/// Returns the summary of an entry as plain text. The catalog has it only for the children of the root.
fn summary(scope: Scope<'_>, at: u32) -> String {
    let head: Option<Head> = serde_json::from_str(&format!("{}}}", scope.head(at))).ok();
    head.map(|head| head.summary).unwrap_or_default()
}
