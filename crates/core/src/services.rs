//! What every layer of a broker shares with the core below it: memory, threads, the phases of the program, the rights of
//! identities, and facts of the catalog that do not depend on a layer.

use std::sync::Arc;

use broker_memory::{Account, MemoryBudget, Owner};
use broker_model::json::estimate;
use broker_model::redact::Redactor;
use broker_wire::LogLevel;
use tokio::sync::watch;

use crate::CallPath;
use crate::admission::AccessOverview;
use crate::call::arguments::{self, ParsedCharge, overloaded};
use crate::call::record::ReviewedVersions;
use crate::catalog::Catalog;
use crate::drain::Drain;
use crate::errors::error::CoreError;
use crate::generations::Generations;
use crate::identity::{Identity, Subtree};
use crate::listing::changes::{self, ToolListChanges};
use crate::listing::description::{Described, Description, is_long_lookup};
use crate::listing::paths;
use crate::listing::query_vector::QueryVectors;
use crate::listing::search::{self, FoundTools};
use crate::snapshot::Snapshot;
use crate::sources::differences::Differences;
use crate::sources::health::Health;
use crate::sources::server_output::ServerOutput;
use crate::types::{SearchQuery, StartOutcome};

/// The services of a core for the layers and surfaces above it. Cheap to clone.
#[derive(Clone)]
pub struct Services(Arc<Generations>);

impl Services {
    pub(crate) fn new(call_path: CallPath) -> Self {
        Self(Arc::new(Generations::new(call_path)))
    }

    #[inline]
    pub(crate) const fn generations(&self) -> &Arc<Generations> {
        &self.0
    }

    /// Returns the catalog that is served now, with everything that belongs to it.
    pub(crate) fn call_path(&self) -> Arc<CallPath> {
        self.0.current()
    }

    /// Returns the catalog as the caller sees it now.
    pub(crate) fn snapshot(&self, identity: &Identity) -> Snapshot {
        Snapshot::take(self.call_path(), identity)
    }

    /// Returns the memory budget for callers' requests and results.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.shared.memory
    }

    /// Returns the phases of the shutdown. From draining on, new calls fail with `shutting_down`.
    pub fn drain(&self) -> &Drain {
        &self.0.shared.drain
    }

    /// Charges the memory of a long body other than a call, once parsed.
    pub fn charge_parsed(
        &self,
        account: &Account,
        body: &[u8],
    ) -> Result<ParsedCharge, Box<CoreError>> {
        arguments::charge_parsed(account, body.len(), estimate(body))
    }

    /// Runs a long job of a request whose tool is not known yet, off the runtime's own threads. Callers take turns, by
    /// account.
    pub async fn read_long<T: Send + 'static>(
        &self,
        account: &Account,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<CoreError>> {
        let core = self.call_path();
        core.read_long(account, read).await
    }

    /// Verifies a signature on threads for signatures only, so that it never waits for arguments of other callers.
    pub async fn verify_long<T: Send + 'static>(
        &self,
        verify: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<CoreError>> {
        let core = self.call_path();
        let verified = core.verifying.run(Owner::BROKER, |_| verify());
        verified.await.map_err(|busy| Box::new(overloaded(busy)))
    }

    /// Runs a long job on a result, off the runtime's own threads; waits for a thread without a limit.
    pub async fn shape_long<T: Send + 'static>(
        &self,
        account: &Account,
        shape: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let core = self.call_path();
        core.shaping.run_bounded(account.owner(), shape).await
    }

    /// Returns the catalog's own copy of a path, if it has an entry there. This does not depend on access rights.
    pub fn known_path(&self, path: &str) -> Option<&'static str> {
        let catalog = self.call_path().catalog;
        catalog.find(path).map(|at| catalog.entry(at).path)
    }

    /// Returns the same identity, restricted to the entry at `path` and what is below it: for it, the other entries do
    /// not exist. Paths and flat names are the same as in the whole tree.
    pub fn within(&self, identity: &Identity, path: &str) -> Result<Identity, Box<CoreError>> {
        let snapshot = self.snapshot(identity);
        let at = paths::resolve(snapshot.scope(), path)?;
        let catalog = snapshot.core.catalog;
        if catalog.entry(at).path == "/" {
            return Ok(identity.clone());
        }
        Ok(identity.restricted_to(Subtree::new(catalog, at)))
    }

    /// Asks all sources for log messages of this level or a higher one. Legacy servers with the capability get
    /// the lowest level that any caller asked for; it is never raised. A modern server gets the level of
    /// each call with the call.
    pub fn ask_for_logs(&self, level: LogLevel) {
        self.0.shared.log_level.ask(level);
    }

    /// Records a change of the filters. The program calls it when the filters of
    /// [`CoreBuilder::admission`](crate::CoreBuilder::admission) change their answers, so that callers are informed of
    /// other lists. Changes of health are noticed without it.
    pub fn note_filter_change(&self) {
        self.call_path().fleet.drift_state.count_tool_change();
    }

    /// Returns a counter that grows when the tool list of some caller changes. Several changes may be counted as one.
    pub fn tool_changes(&self) -> watch::Receiver<u64> {
        self.call_path().fleet.drift_state.tool_changes()
    }

    /// Returns the changes of the tool list that a caller sees, from now on.
    pub fn tool_list_changes(&self, identity: &Identity) -> ToolListChanges {
        let (services, identity) = (self.clone(), identity.clone());
        let own_list = move || {
            let snapshot = services.snapshot(&identity);
            let may_differ = snapshot.core.fleet.lists_may_differ();
            may_differ.then(|| changes::hash_of(&snapshot))
        };
        ToolListChanges::new(self.tool_changes(), own_list)
    }

    /// Whether a source whose resources the caller may read has not been compared yet at this start, so that its
    /// resources are not known.
    pub fn awaits_resources(&self, identity: &Identity) -> bool {
        self.snapshot(identity).awaits_resources()
    }

    /// Returns the entity tag of a text that was made for the caller. Where callers may see different entries, callers
    /// of other admission classes get other tags for the same text.
    pub fn entity_tag(&self, identity: &Identity, text: &[u8]) -> String {
        let snapshot = self.snapshot(identity);
        let tag = broker_model::digest::etag(text);
        snapshot.scope().etag_of(tag)
    }

    /// Waits until no source is awaited any longer: each required one was checked, failed to start, or,
    /// if the start can go on without it, was not reached in time.
    pub async fn first_verdict(&self) -> StartOutcome {
        let core = self.call_path();
        core.fleet.drift_state.gate.outcome().await
    }

    /// Returns the error of every call after a refused start; `None` unless the start was refused.
    pub fn start_refusal(&self, identity: &Identity) -> Option<Box<CoreError>> {
        self.call_path().start_refusal(identity)
    }

    /// Returns a redactor that knows the secrets of every source, and the key of an endpoint for embeddings.
    pub fn redactor(&self) -> Redactor {
        self.call_path().redactor()
    }

    /// Finds the tools that fit a query best. Equals the answer of a catalog that has only the tools that exist for the
    /// caller. A long search runs off the runtime's threads.
    pub(crate) async fn search(
        &self,
        identity: &Identity,
        what: SearchQuery<'_>,
    ) -> Result<FoundTools, Box<CoreError>> {
        let vector = self.call_path().query_vector(identity, what.query).await;
        let snapshot = self.snapshot(identity);
        let root = identity.root();
        if !vector.is_long_search(snapshot.core.catalog) {
            return search::found(&snapshot, root, &what, &vector);
        }
        let (query, path) = (what.query.to_owned(), what.path.map(str::to_owned));
        let (account, limit, detail) = (what.account.clone(), what.limit, what.detail);
        let search = move || {
            let what = SearchQuery {
                query: &query,
                path: path.as_deref(),
                limit,
                detail,
                account: &account,
            };
            search::found(&snapshot, root, &what, &vector)
        };
        self.read_long(what.account, search).await?
    }

    /// Describes entries, each for itself. Suggestions for many unknown paths are searched off the runtime's threads.
    pub(crate) async fn describe(
        &self,
        identity: &Identity,
        paths: &[&str],
        account: &Account,
    ) -> Result<Vec<Described>, Box<CoreError>> {
        let snapshot = self.snapshot(identity);
        if !is_long_lookup(snapshot.core.catalog, paths) {
            return Description::all(snapshot, paths);
        }
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let describe = move || Description::all(snapshot, &paths);
        self.read_long(account, describe).await?
    }

    /// Returns whether the broker is ready, and the state of every source.
    pub fn health(&self) -> Health {
        Health::new(&self.call_path().fleet)
    }

    /// Returns the differences between the sources and the lock.
    pub fn differences(&self) -> Differences {
        Differences::new(&self.call_path().fleet)
    }

    /// Returns who may call what by the access rules.
    pub fn access_overview(&self) -> AccessOverview {
        AccessOverview::new(&self.call_path().fleet)
    }

    /// Returns the last stderr lines of a source, by its path or one below it; `None` if no source has the path.
    pub fn server_output(&self, path: &str) -> Option<ServerOutput> {
        ServerOutput::find(&self.call_path().fleet, path)
    }

    /// Whether words answer searches because the embedder gave no vector for the last query; `None` without an embedder.
    pub fn is_search_degraded(&self) -> Option<bool> {
        let core = self.call_path();
        let vectors = core.query_vectors.as_ref();
        vectors.map(QueryVectors::is_failing)
    }

    /// Whether the config has access rules.
    pub fn has_access_rules(&self) -> bool {
        self.call_path().fleet.policy().has_rules()
    }

    /// Whether callers may see different entries: by access rules, or by filters of the program.
    pub fn lists_may_differ(&self) -> bool {
        self.call_path().fleet.lists_may_differ()
    }

    /// Returns when the right of the caller to call was withdrawn, or its credential has expired. Waits forever
    /// for a caller whose right does not end.
    pub async fn right_ended(&self, identity: &Identity) {
        let core = self.call_path();
        identity.right_ended(&*core.clock).await;
    }

    /// Whether the caller sees the state of the sources.
    pub fn is_operator(&self, identity: &Identity) -> bool {
        let core = self.call_path();
        let policy = core.fleet.policy();
        policy.is_operator(identity, !core.fleet.lists_may_differ())
    }

    /// Whether callers without a credential belong to a group; `None` if the config has no access rules.
    pub fn anonymous_has_groups(&self) -> Option<bool> {
        self.call_path().fleet.policy().anonymous_has_groups()
    }

    /// Returns the facts for the headers of a reply: the digest of the catalog that is served, and whether callers may
    /// see different entries.
    pub fn reply_facts(&self) -> (&'static str, bool) {
        let core = self.call_path();
        (core.catalog.catalog_digest, core.fleet.lists_may_differ())
    }

    /// Returns the versions that are in force now.
    pub fn reviewed(&self) -> ReviewedVersions {
        let core = self.call_path();
        ReviewedVersions {
            catalog: core.catalog.catalog_digest,
            lock: core.catalog.root_digest,
            policy: core.fleet.in_force().terms.policy.digest().clone(),
        }
    }

    /// Returns the catalog that is served now.
    pub fn catalog(&self) -> &'static Catalog {
        self.call_path().catalog
    }

    /// Returns the digest of the catalog it serves.
    pub fn catalog_digest(&self) -> &'static str {
        self.call_path().catalog.catalog_digest
    }
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services")
            .field("catalog_digest", &self.catalog_digest())
            .finish_non_exhaustive()
    }
}
