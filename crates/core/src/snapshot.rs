//! The catalog as one caller sees it at one moment, kept for as long as a value of it is used.

use std::fmt;
use std::sync::Arc;

use crate::Inner;
use crate::admission::Caller;
use crate::identity::Identity;
use crate::listing::scope::Scope;
use crate::view::View;

/// The view and the rights of one caller at one moment.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) inner: Arc<Inner>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Caller,
}

impl Snapshot {
    /// Takes the view in force, then the rights of the caller.
    pub(crate) fn take(inner: Arc<Inner>, identity: &Identity) -> Self {
        Self {
            view: inner.drift_state.view.load_full(),
            caller: inner.caller(identity),
            inner,
        }
    }

    /// Returns the entries that exist for the caller.
    pub(crate) fn scope(&self) -> Scope<'_> {
        self.inner.scope(&self.view, &self.caller)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("catalog_digest", &self.inner.catalog.catalog_digest)
            .finish_non_exhaustive()
    }
}
