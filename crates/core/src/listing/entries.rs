//! Listings and descriptions of entries by their paths.

use broker_model::CallCode;

use crate::catalog::EntryKind;
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::listing::lookup;
use crate::listing::nearest::{Budget, MAX_UNKNOWN};
use crate::types::{Describe, Reply};
use crate::{Core, MAX_DEPTH, MAX_DESCRIBED};

/// Entries that are compared with unknown paths on a thread of the runtime.
const MAX_INLINE_LOOKUPS: usize = 5_000;

impl Core {
    /// Returns the tree below `path`, `depth` levels deep (1 to 16).
    pub fn list(
        &self,
        identity: &Identity,
        path: &str,
        depth: u8,
    ) -> Result<Reply, Box<CoreError>> {
        let inner = self.inner();
        if !(1..=MAX_DEPTH).contains(&depth) {
            let message = format!("`depth` is {depth}, but must be from 1 to {MAX_DEPTH}");
            return Err(Box::new(CoreError::new(CallCode::FieldInvalid, message)));
        }
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        let at = lookup::resolve(scope, path)?;
        let entry = inner.catalog.entry(at);
        match entry.kind {
            EntryKind::Item(_) => Err(lookup::is_tool(entry.path)),
            EntryKind::Node { .. } => Ok(scope.tree(at, depth)),
        }
    }

    /// Whether the catalog is so large that a lookup may take long.
    pub fn has_long_lookups(&self) -> bool {
        MAX_UNKNOWN * self.inner().catalog.entries.len() > MAX_INLINE_LOOKUPS
    }

    /// Whether suggestions for the unknown ones of these paths take long, so that they are searched off the runtime's
    /// threads.
    pub fn is_long_lookup<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> bool {
        let catalog = self.inner().catalog;
        let is_unknown = |path: &&str| catalog.find(path).is_none();
        let unknown = paths.into_iter().filter(is_unknown).take(MAX_UNKNOWN);
        unknown.count() * catalog.entries.len() > MAX_INLINE_LOOKUPS
    }

    /// Describes one entry or several. In a list, an entry that cannot be described is replaced by its
    /// error.
    pub fn describe(
        &self,
        identity: &Identity,
        what: Describe<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        match what {
            Describe::One(path) => {
                let at = lookup::resolve(scope, path)?;
                Ok(scope.description(at))
            }
            Describe::Many(paths) if paths.len() > MAX_DESCRIBED => {
                let message = format!(
                    "`paths` has {} items, at most {MAX_DESCRIBED} are allowed",
                    paths.len()
                );
                Err(Box::new(CoreError::new(CallCode::FieldInvalid, message)))
            }
            Describe::Many(paths) => {
                let mut budget = Budget::default();
                let found = paths
                    .iter()
                    .map(|path| lookup::resolve_within(scope, path, &mut budget));
                Ok(scope.descriptions(paths, found))
            }
        }
    }
}
