//! The catalog as one caller sees it at one moment, kept for as long as a value of it is used.

use std::fmt;
use std::sync::Arc;

use crate::CallPath;
use crate::admission::{Caller, Policy};
use crate::identity::Identity;
use crate::listing::scope::Scope;
use crate::sources::tool_settings::ToolSettings;
use crate::view::View;

/// The part of a config that decides about calls. A reload replaces it as a whole.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Who may see and call what.
    pub(crate) policy: Arc<Policy>,
    /// By the catalog's tools.
    pub(crate) settings: Box<[ToolSettings]>,
}

/// The rules, settings and view that were current at one moment. A call reads them when it begins, and again right before
/// the call is sent.
pub(crate) struct InForce {
    pub(crate) terms: Arc<Terms>,
    pub(crate) view: Arc<View>,
}

/// The rules, settings and view that were current at one moment, and the rights of one caller under them.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) core: Arc<CallPath>,
    pub(crate) terms: Arc<Terms>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Caller,
}

impl Snapshot {
    /// Takes what is in force when a call or a listing begins.
    pub(crate) fn take(core: Arc<CallPath>, identity: &Identity) -> Self {
        let now = core.fleet.in_force();
        Self {
            caller: Caller::new(&core.fleet, &now.terms.policy, &now.view, identity),
            terms: now.terms,
            view: now.view,
            core,
        }
    }

    /// Returns the entries that exist for the caller.
    pub(crate) fn scope(&self) -> Scope<'_> {
        self.core.scope(&self.view, &self.caller)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("catalog_digest", &self.core.catalog.catalog_digest)
            .finish_non_exhaustive()
    }
}
