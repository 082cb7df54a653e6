//! Changes of the tool list that one caller sees.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio::sync::watch;

use crate::listing::tools::lists_output;
use crate::snapshot::Snapshot;

/// Returns the hash of a caller's list now; `None` if all callers see the same.
type OwnList = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// The changes of one caller's tool list, from now on.
pub struct ToolListChanges {
    changes: watch::Receiver<u64>,
    /// The list of the caller; `None` if every change counts.
    own_list: Option<OwnList>,
    /// The hash of the caller's list when it was last looked at.
    known: Option<u64>,
}

impl fmt::Debug for ToolListChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolListChanges")
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

impl From<watch::Receiver<u64>> for ToolListChanges {
    /// Returns every change of a list; `changes` counts them.
    fn from(mut changes: watch::Receiver<u64>) -> Self {
        changes.mark_unchanged();
        Self {
            changes,
            own_list: None,
            known: None,
        }
    }
}

impl ToolListChanges {
    pub(crate) fn new(
        changes: watch::Receiver<u64>,
        own_list: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            known: own_list(),
            own_list: Some(Box::new(own_list)),
            ..Self::from(changes)
        }
    }

    /// Waits for the next change; `false` after the last one. Several changes may be one.
    pub async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let now = self.own_list.as_ref().and_then(|own_list| own_list());
            let before = std::mem::replace(&mut self.known, now);
            // A reload may bring the first rules.
            if now.is_none() || now != before {
                return true;
            }
        }
        false
    }
}

/// Returns a hash of the tools that a caller sees, and of what a change of the config changes of them.
pub(crate) fn hash_of(snapshot: &Snapshot) -> u64 {
    let (scope, settings) = (snapshot.scope(), &snapshot.terms.settings);
    let mut hasher = DefaultHasher::new();
    for (tool, at) in scope.catalog.items.iter().zip(0..) {
        if scope.view.is_served(at) && scope.admits(tool.entry) {
            at.hash(&mut hasher);
            lists_output(&settings[at as usize]).hash(&mut hasher);
            let schema = scope.catalog.text(tool.args_schema);
            let narrowed = scope
                .caller
                .narrowed(at)
                .map(|narrowed| narrowed.apply(schema));
            narrowed.hash(&mut hasher);
        }
    }
    hasher.finish()
}
