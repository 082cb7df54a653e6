//! The tools that a search ranks for a class of callers.

use std::collections::BTreeSet;
use std::sync::Arc;

use broker_model::access::Decision;
use broker_search::{Index, SearchScope};

use super::Caller;
use super::class::AdmissionClass;
use super::recent::Recent;
use crate::catalog::Catalog;
use crate::identity::Subtree;
use crate::view::View;

/// The scopes of the classes that searched last. Only the first search of a class counts the tools of each term.
pub(super) type SearchScopes = Recent<SearchScopeKey, SearchScope>;

/// The state that determines a caller's tool set. A reload that hides other tools brings another set of hidden tools.
#[derive(Debug)]
pub(super) struct SearchScopeKey {
    class: AdmissionClass,
    hidden: Arc<BTreeSet<u32>>,
    subtree: Option<Subtree>,
}

impl PartialEq for SearchScopeKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hidden, &other.hidden)
            && self.class == other.class
            && self.subtree == other.subtree
    }
}

impl Caller {
    /// Returns the tools that exist for the caller, withdrawn ones among them.
    pub(crate) fn search_scope(
        &self,
        view: &View,
        catalog: &Catalog,
        index: &Index<'_>,
    ) -> Arc<SearchScope> {
        let key = SearchScopeKey {
            class: self.class.clone(),
            hidden: Arc::clone(view.hidden()),
            subtree: self.subtree,
        };
        let exists = |tool: u32| {
            let entry = catalog.item(tool).entry;
            self.decide(view, catalog, entry) != Decision::Absent
        };
        let make = || SearchScope::new(index, exists);
        self.policy.search_scopes().get(key, make)
    }
}
