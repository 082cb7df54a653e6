//! What a call or a listing needs: the catalog with what is computed from it, the pools, and the sources behind it.
//! It does not change while it is served; the fleet has what changes.

use std::sync::Arc;
use std::time::Duration;

use broker_memory::Account;
use broker_model::redact::Redactor;
use tokio::time::timeout;

use crate::CallPath;
use crate::admission::Caller;
use crate::call::arguments::{overloaded, unsent};
use crate::errors::error::CoreError;
use crate::errors::failure;
use crate::identity::Identity;
use crate::listing::query_vector::QueryVector;
use crate::listing::scope::Scope;
use crate::snapshot::Snapshot;
use crate::view::View;

/// The time that a long body of a listing request may wait for the pool.
const LISTING_TIMEOUT: Duration = Duration::from_secs(30);

impl CallPath {
    /// Returns the entries that exist for a caller.
    pub(crate) fn scope<'a>(&'a self, view: &'a View, caller: &'a Caller) -> Scope<'a> {
        Scope {
            catalog: self.catalog,
            heights: &self.heights,
            named: &self.named,
            view,
            caller,
            drift_state: &self.fleet.drift_state,
        }
    }

    /// Returns the error of every call after a refused start. Names only sources with an entry that exists for the
    /// caller.
    pub(crate) fn start_refusal(self: &Arc<Self>, identity: &Identity) -> Option<Box<CoreError>> {
        if let Some(failure) = &self.failure {
            return Some(failure.clone());
        }
        let refusal = self.fleet.drift_state.gate.refusal()?;
        let snapshot = Snapshot::take(self.clone(), identity);
        Some(refusal.error(self.catalog, |entry| snapshot.scope().admits(entry)))
    }

    /// Runs a long job before the tool is known, within the longest time that a call may take.
    pub(crate) async fn read_long<T: Send + 'static>(
        &self,
        account: &Account,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<CoreError>> {
        let time = self.fleet.longest_timeout().unwrap_or(LISTING_TIMEOUT);
        match timeout(time, self.work.run(account.owner(), move |_| read())).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(busy)) => Err(Box::new(overloaded(busy))),
            Err(_) => Err(failure::from_call(unsent(time), "", "")),
        }
    }

    /// Returns the vector of a query by the models of the catalog; empty without models. It is kept for the next search
    /// of callers with the same rights.
    ///
    /// A query has at most 400 characters. If a model gives no vector within `search.timeout`, the search uses words,
    /// and its answer says so.
    pub(crate) async fn query_vector(
        self: &Arc<Self>,
        identity: &Identity,
        query: &str,
    ) -> QueryVector {
        match &self.query_vectors {
            Some(vectors) if broker_search::is_query(query) => {
                let caller = Snapshot::take(self.clone(), identity).caller;
                let class = caller.class().clone();
                vectors.get(class, query, || self.redactor()).await
            }
            _ => QueryVector::default(),
        }
    }

    /// Returns a redactor that knows the secrets of every source, and the key of an endpoint for embeddings.
    pub(crate) fn redactor(&self) -> Redactor {
        let sources = self.fleet.drift_state.redactor();
        match &self.query_vectors {
            Some(vectors) => sources.merge(&vectors.redactor()),
            None => sources,
        }
    }
}
