//! Changes of the list of tools that one caller sees.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio::sync::watch;

use crate::Core;
use crate::identity::Identity;
use crate::listing::direct::lists_output;

/// The changes of the list of tools of one caller, from now on.
#[derive(Debug)]
pub struct ToolListChanges {
    changes: watch::Receiver<u64>,
    /// `None` if every caller sees the same list.
    own: Option<OwnList>,
}

/// The list of a caller under rules of access.
#[derive(Debug)]
struct OwnList {
    core: Core,
    identity: Identity,
    /// The hash of the list when it was last looked at.
    known: u64,
}

impl From<watch::Receiver<u64>> for ToolListChanges {
    /// The changes of a list that every caller sees, which a counter counts.
    fn from(mut changes: watch::Receiver<u64>) -> Self {
        changes.mark_unchanged();
        Self { changes, own: None }
    }
}

impl ToolListChanges {
    pub(crate) fn new(core: &Core, identity: &Identity) -> Self {
        Self {
            own: core.has_access_rules().then(|| OwnList {
                known: hash_of(core, identity),
                core: core.clone(),
                identity: identity.clone(),
            }),
            ..core.tool_changes().into()
        }
    }

    /// Waits for the next change; `false` once there can be none. Several changes may be one.
    pub async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let Some(own) = &mut self.own else {
                return true;
            };
            let now = hash_of(&own.core, &own.identity);
            if std::mem::replace(&mut own.known, now) != now {
                return true;
            }
        }
        false
    }
}

/// A hash of the tools that a caller sees, and of what a change of the config changes of them.
fn hash_of(core: &Core, identity: &Identity) -> u64 {
    let inner = &core.0;
    let (view, settings) = (inner.drift_state.view.load(), inner.settings.load());
    let caller = inner.caller(identity);
    let scope = inner.scope(&view, &caller);
    let mut hasher = DefaultHasher::new();
    for (tool, at) in inner.catalog.tools.iter().zip(0..) {
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
