//! Changes of the tool list that one caller sees.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio::sync::watch;

use crate::identity::Identity;
use crate::listing::tools::lists_output;
use crate::services::Services;

/// The changes of one caller's tool list, from now on.
#[derive(Debug)]
pub struct ToolListChanges {
    changes: watch::Receiver<u64>,
    /// The caller; `None` if every change counts.
    caller: Option<(Services, Identity)>,
    /// The hash of the caller's list when it was last looked at; `None` if all callers see the same.
    known: Option<u64>,
}

impl From<watch::Receiver<u64>> for ToolListChanges {
    /// Returns every change of a list; `changes` counts them.
    fn from(mut changes: watch::Receiver<u64>) -> Self {
        changes.mark_unchanged();
        Self {
            changes,
            caller: None,
            known: None,
        }
    }
}

impl ToolListChanges {
    pub(crate) fn new(services: &Services, identity: &Identity) -> Self {
        let changes = Self::from(services.tool_changes());
        Self {
            known: own_list(services, identity),
            caller: Some((services.clone(), identity.clone())),
            ..changes
        }
    }

    /// Waits for the next change; `false` after the last one. Several changes may be one.
    pub async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let caller = self.caller.as_ref();
            let now = caller.and_then(|(services, identity)| own_list(services, identity));
            let before = std::mem::replace(&mut self.known, now);
            // A reload may bring the first rules.
            if now.is_none() || now != before {
                return true;
            }
        }
        false
    }
}

/// Returns the hash of a caller's list, if the lists of other callers may differ.
fn own_list(services: &Services, identity: &Identity) -> Option<u64> {
    services
        .lists_may_differ()
        .then(|| hash_of(services, identity))
}

/// Returns a hash of the tools that a caller sees, and of what a change of the config changes of them.
fn hash_of(services: &Services, identity: &Identity) -> u64 {
    let snapshot = services.snapshot(identity);
    let (scope, settings) = (snapshot.scope(), snapshot.inner.settings.load());
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
