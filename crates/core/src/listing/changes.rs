//! Changes of the tool list that one caller sees.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio::sync::watch;

use crate::Core;
use crate::identity::Identity;
use crate::listing::direct::lists_output;

/// The changes of one caller's tool list, from now on.
#[derive(Debug)]
pub struct ToolListChanges {
    changes: watch::Receiver<u64>,
    /// The caller; `None` if every change counts.
    caller: Option<(Core, Identity)>,
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
    pub(crate) fn new(core: &Core, identity: &Identity) -> Self {
        let changes = Self::from(core.tool_changes());
        Self {
            known: own_list(core, identity),
            caller: Some((core.clone(), identity.clone())),
            ..changes
        }
    }

    /// Waits for the next change; `false` after the last one. Several changes may be one.
    pub async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let caller = self.caller.as_ref();
            let now = caller.and_then(|(core, identity)| own_list(core, identity));
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
fn own_list(core: &Core, identity: &Identity) -> Option<u64> {
    core.lists_may_differ().then(|| hash_of(core, identity))
}

/// Returns a hash of the tools that a caller sees, and of what a change of the config changes of them.
fn hash_of(core: &Core, identity: &Identity) -> u64 {
    let inner = core.inner();
    let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
    let caller = inner.caller(identity);
    let scope = inner.scope(&view, &caller);
    let mut hasher = DefaultHasher::new();
    for (tool, at) in inner.catalog.items.iter().zip(0..) {
        if view.is_served(at) && scope.admits(tool.entry) {
            at.hash(&mut hasher);
            lists_output(&settings[at as usize]).hash(&mut hasher);
            let schema = inner.catalog.text(tool.args_schema);
            let narrowed = caller.narrowed(at).map(|narrowed| narrowed.apply(schema));
            narrowed.hash(&mut hasher);
        }
    }
    hasher.finish()
}
