//! The core of the broker: catalog, admission, call path, drift state. It is the only way to a server,
//! and it names no transport of callers: surfaces give it an identity and raw arguments.
//!
//! A [`Core`] is built from a catalog that a build compiles in; [`catalog::NONE`] has no tools. Every operation takes the
//! [`Identity`] of its caller, and a call is a [`Request`] that owns its parts:
//!
//! ```
//! use broker_core::{
//!     Args, CallContext, Core, Identity, Operation, Request, RequestId, ResultForm, catalog,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let core = Core::builder(&catalog::NONE).build().expect("the config can be used");
//! core.start();
//! let caller = Identity::local();
//! let tree = core.list(&caller, "/", 1).expect("the root exists");
//! assert!(tree.body.starts_with(br#"{"path":"/""#));
//!
//! let request = Request {
//!     identity: caller,
//!     context: CallContext::new(
//!         RequestId::new(&["example-1"]),
//!         core.memory().whole_account(),
//!         ResultForm::Verbatim,
//!     ),
//!     path: "/util/hash_text".into(),
//!     operation: Operation::CallTool(Args::empty()),
//! };
//! let error = core.call(request).await.expect_err("the catalog has no tools");
//! assert_eq!(error.code.as_str(), "path_not_found");
//! core.close().await;
//! # }
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use broker_config::StartDefaults;
use broker_mcp::{AskedLogLevel, ConcurrencyLimits, SourceSpec};
use broker_model::CallCode;
use broker_model::json::estimate;
use broker_model::redact::Redactor;
use tokio_util::task::TaskTracker;

use crate::catalog::{Catalog, EntryKind};

mod admission;
mod builder;
mod call;
pub mod catalog;
mod clock;
mod drain;
mod errors;
mod generations;
mod heap_trim;
mod identity;
mod interface;
mod life_cycle;
mod listing;
mod sources;
mod types;

#[cfg(test)]
mod tests;

pub use admission::{Admission, HealthView};
pub use broker_mcp::{
    CallEvent, CallEvents, LogMessage, Progress, State as SourceState, WantedEvents,
};
pub use broker_memory::{
    Account, Charge, ChargeError, MemoryBudget, Owner, SMALL_BYTES, Size, UNCHARGED_BYTES, reserve,
};
pub use broker_model::item::ItemKind;
pub use broker_wire::LogLevel;
pub use builder::CoreBuilder;
pub use call::arguments::{Args, ParsedCharge, memory_error_for_request};
pub use call::context::{
    CallContext, CancelMode, Operation, Outcome, Request, ResultForm, ResultLimit,
};
#[doc(hidden)]
pub use call::cut::fuzzing;
pub use call::cut::{Cut, CutDetail};
pub use call::request_id::RequestId;
pub use clock::{Clock, SystemClock};
pub use drain::Drain;
pub use errors::error::{CoreError, ErrorMembers};
pub use errors::failure::memory_error_for_result;
pub use errors::json_error::json_invalid;
pub use errors::server_error::ServerError;
pub use identity::{Claims, Identity, Revocation, Subject};
pub use interface::{BrokerInterface, Restrict, ToolItem};
pub use listing::changes::ToolListChanges;
pub use listing::direct::{CallableTool, FlatTool, ToolPage};
pub use listing::items::{ListedItem, ReadForm, ReadableUri};
pub use listing::query_vector::QueryVector;
pub use listing::search::{FoundTool, FoundTools};
pub use listing::vendor::VendorLimits;
pub use sources::drift_log::DRIFT_LOG;
pub use sources::examine::{ExamResult, SourceExam, StartedSource, ToolComparison};
pub use sources::health::{
    BuiltFrom, Health, InstanceHealth, SourceCounters, SourceHealth, WithdrawnTool,
};
pub use sources::listing_notes::{ListingNotes, ShownLeftOut};
pub use sources::reload::{RefusedSource, ReloadError, ReloadSummary};
pub use sources::served::ServedCounts;
pub use sources::setup::PreparedConfig;
pub use types::{
    AreaRef, Describe, EntryRef, PartialStart, RefusalCause, Reply, SearchOptions, StaleSource,
    StartMode, StartOutcome,
};

use generations::Generations;
pub use generations::{ReplaceError, Replacement};

use admission::{Caller, Filters, Policy};

use call::arguments;
use call::validator::LazyValidator;
use call::waiting::WaitingCalls;
use call::work::WorkPool;
use identity::Subtree;
use listing::areas;
use listing::lookup;
use listing::query_vector::QueryVectors;
use listing::scope::Scope;
use listing::search::ToolSearch;
use listing::view::View;
use sources::drift_state::DriftState;
use sources::setup::ToolSettings;
use sources::slot::SourceSlot;
use sources::upstream::Upstream;

pub use broker_search::{DEFAULT_HITS, MAX_HITS, MAX_QUERY_CHARS};

/// The maximum number of entries in one `meta_desc`.
pub const MAX_DESCRIBED: usize = 50;
/// The maximum depth of `meta_tree`.
pub const MAX_DEPTH: u8 = 16;

/// The domain: lists, describes and calls tools by their paths. Cheap to clone, safe to share.
#[derive(Clone)]
pub struct Core(Arc<Generations>);

struct Inner {
    catalog: &'static Catalog,
    heights: Box<[u8]>,
    search: ToolSearch,
    /// Models that make the vectors of queries; `None` if words answer alone.
    query_vectors: Option<QueryVectors>,
    /// The nodes whose compiled summary is the names of their tools.
    named: BTreeSet<u32>,
    /// Who may see and call what; a reload replaces it.
    policy: ArcSwap<Policy>,
    /// Filters of the program, in addition to the policy.
    filters: Filters,
    clock: Arc<dyn Clock>,
    /// By the catalog's tools.
    validators: Arc<[LazyValidator]>,
    /// By the catalog's tools; a reload replaces them.
    settings: ArcSwap<Box<[ToolSettings]>>,
    drift_state: Arc<DriftState>,
    memory: MemoryBudget,
    /// Limits that all sources share, also those that a reload starts.
    concurrency: ConcurrencyLimits,
    /// The level of log messages that callers asked for; all sources share it.
    log_level: AskedLogLevel,
    /// The pool for long jobs before a call is sent,
    work: WorkPool,
    /// and the pool for long results.
    verifying: WorkPool,
    shaping: WorkPool,
    drain: Drain,
    start_defaults: StartDefaults,
    /// The calls that wait for their sources to start.
    waiting: WaitingCalls,
    /// The sources to start; taken when they are started.
    specs: Mutex<Vec<SourceSpec>>,
    /// The slots of the catalog's sources, once they are started.
    slots: OnceLock<Box<[SourceSlot]>>,
    /// Sources outside the slots: candidates, and retired ones with calls in flight. They stop with the
    /// others.
    extra_upstreams: Mutex<Vec<Upstream>>,
    /// Held while a reload is under way.
    reloading: tokio::sync::Mutex<()>,
    tasks: TaskTracker,
    /// The calls of this catalog. The catalog may be replaced while they run.
    active: TaskTracker,
    created: SystemTime,
    /// The error of every call of a broker that could not be started.
    failure: Option<Box<CoreError>>,
    partial: PartialStart,
}

impl Core {
    /// Returns a builder of a core that serves this catalog.
    pub fn builder<'a>(catalog: &'static Catalog) -> CoreBuilder<'a> {
        CoreBuilder::new(catalog)
    }

    /// Makes a call. [`CancelMode`] says what cancels it.
    ///
    /// # Errors
    ///
    /// Every code of the call path. The call was not sent unless `maybe_executed` is true.
    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` would have room for the request twice"
    )]
    pub fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        async move {
            let (inner, _active) = self.0.enter();
            let (identity, context) = (&request.identity, &request.context);
            inner
                .call(identity, context, &request.path, request.operation)
                .await
        }
    }

    /// Returns the catalog's own copy of a path, if it has an entry there. This does not depend on access rights.
    pub fn known_path(&self, path: &str) -> Option<&'static str> {
        let catalog = self.inner().catalog;
        catalog.find(path).map(|at| catalog.entry(at).path)
    }

    /// Asks all sources for log messages of this level or a higher one. Legacy servers with the capability get
    /// the lowest level that any caller asked for; it is never raised. A modern server gets the level of
    /// each call with the call.
    pub fn ask_for_logs(&self, level: LogLevel) {
        let inner = self.inner();
        inner.log_level.ask(level);
    }

    /// Returns the entries directly below [`Core::root`] that exist for the caller, in the order of a listing. If the
    /// caller is restricted to a tool, this tool.
    pub fn areas(&self, identity: &Identity) -> Vec<AreaRef> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        areas::areas(inner.scope(&view, &caller))
    }

    /// Returns the path of the topmost entry that the caller sees: `/` unless it is restricted.
    pub fn root(&self, identity: &Identity) -> &'static str {
        identity.root()
    }

    /// Returns the same identity, restricted to the entry at `path` and what is below it: for it, the other entries do
    /// not exist. Paths and flat names are the same as in the whole tree.
    pub fn within(&self, identity: &Identity, path: &str) -> Result<Identity, Box<CoreError>> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let at = lookup::resolve(inner.scope(&view, &caller), path)?;
        if inner.catalog.entry(at).path == "/" {
            return Ok(identity.clone());
        }
        Ok(identity.restricted_to(Subtree::of(inner.catalog, at)))
    }

    /// Records a change of the filters. The program calls it when the filters of [`CoreBuilder::admission`] change
    /// their answers, so that callers are informed of other lists. Changes of health are noticed without it.
    pub fn note_filter_change(&self) {
        let inner = self.inner();
        inner.drift_state.count_tool_change();
    }

    /// Returns a counter that grows when [`Core::direct_tools`] lists other tools for some caller, or the same with
    /// other members. Several changes may be counted as one.
    pub fn tool_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        let inner = self.inner();
        inner.drift_state.tool_changes()
    }

    /// Returns the changes of the tool list that a caller sees, from now on.
    pub fn tool_list_changes(&self, identity: &Identity) -> ToolListChanges {
        ToolListChanges::new(self, identity)
    }

    /// Charges the memory of a long body other than a call, once parsed.
    pub fn charge_parsed(
        &self,
        account: &Account,
        body: &[u8],
    ) -> Result<ParsedCharge, Box<CoreError>> {
        arguments::charge_parsed(account, body.len(), estimate(body))
    }

    /// Returns the memory budget for callers' requests and results.
    pub fn memory(&self) -> &MemoryBudget {
        self.0.memory()
    }

    /// Finds the entry at a path, without invoking it.
    pub fn lookup(&self, identity: &Identity, path: &str) -> Result<EntryRef, Box<CoreError>> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let at = lookup::resolve(inner.scope(&view, &caller), path)?;
        let entry = inner.catalog.entry(at);
        let (digest, withdrawn) = match entry.kind {
            EntryKind::Node { .. } => (None, false),
            EntryKind::Item(tool) => (
                Some(inner.catalog.item(tool).digest),
                view.withdrawn(tool).is_some(),
            ),
        };
        Ok(EntryRef {
            path: entry.path,
            digest,
            withdrawn,
        })
    }

    /// Whether the broker is ready, and the state of every source.
    pub fn health(&self) -> Health {
        let inner = self.inner();
        inner.health()
    }

    /// Returns a redactor that knows the secrets of every source, and the key of an endpoint for embeddings.
    pub fn redactor(&self) -> Redactor {
        let inner = self.inner();
        let sources = inner.drift_state.redactor();
        match &inner.query_vectors {
            Some(vectors) => sources.merge(&vectors.redactor()),
            None => sources,
        }
    }

    /// Returns the error for an operation on tools at a node that exists for the caller.
    fn is_node(&self, identity: &Identity, path: &str) -> Box<CoreError> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        match inner.catalog.find(path) {
            Some(at) => lookup::is_node(scope, at),
            None => Box::new(CoreError::new(
                CallCode::PathNotFound,
                "no entry is at this path",
            )),
        }
    }

    /// Whether the config has access rules.
    pub fn has_access_rules(&self) -> bool {
        let inner = self.inner();
        inner.policy.load().has_rules()
    }

    /// Whether callers may see different entries: by access rules, or by filters of the program.
    pub fn lists_may_differ(&self) -> bool {
        self.inner().lists_may_differ()
    }

    /// Returns when the right of the caller to call was withdrawn, or its credential has expired. Waits forever
    /// for a caller whose right does not end.
    pub async fn right_ended(&self, identity: &Identity) {
        let inner = self.inner();
        identity.right_ended(&*inner.clock).await;
    }

    /// Whether the caller sees the state of the sources.
    pub fn is_operator(&self, identity: &Identity) -> bool {
        let inner = self.inner();
        let policy = inner.policy.load();
        policy.is_operator(identity, !self.lists_may_differ())
    }

    /// Whether callers without a credential belong to a group; `None` if the config has no access rules.
    pub fn anonymous_has_groups(&self) -> Option<bool> {
        let inner = self.inner();
        inner.policy.load().anonymous_has_groups()
    }

    /// Returns the facts for the headers of a reply: the digest of the catalog that is served, and whether callers may
    /// see different entries.
    pub fn reply_facts(&self) -> (&'static str, bool) {
        let inner = self.inner();
        (inner.catalog.catalog_digest, inner.lists_may_differ())
    }

    /// Returns the digest of the catalog it serves.
    pub fn catalog_digest(&self) -> &'static str {
        let inner = self.inner();
        inner.catalog.catalog_digest
    }
}

impl Core {
    /// Returns the catalog that is served now, with everything that belongs to it.
    fn inner(&self) -> Arc<Inner> {
        self.0.current()
    }
}

impl Inner {
    fn lists_may_differ(&self) -> bool {
        self.policy.load().has_rules() || self.filters.are_set()
    }

    fn caller(&self, identity: &Identity) -> Caller {
        Caller::new(self, identity)
    }

    fn scope<'a>(&'a self, view: &'a View, caller: &'a Caller) -> Scope<'a> {
        Scope {
            catalog: self.catalog,
            heights: &self.heights,
            named: &self.named,
            view,
            caller,
            drift_state: &self.drift_state,
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("catalog_digest", &self.catalog_digest())
            .finish_non_exhaustive()
    }
}
