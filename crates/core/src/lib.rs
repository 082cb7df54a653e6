//! The core of the broker: catalog, admission, call path, drift state. It is the only way to a server,
//! and it names no transport of callers: surfaces give it an identity and raw arguments.
//!
//! A [`Core`] is built from a catalog that a build compiles in; [`catalog::NONE`] has no tools. Every operation takes the
//! [`Identity`] of its caller, and a call is a [`Request`] that owns its parts:
//!
//! ```
//! use broker_core::{
//!     Args, Broker, CallContext, Core, Identity, Operation, Request, RequestId, ResultForm, catalog,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let core = Core::builder(&catalog::NONE).build().expect("the config can be used");
//! core.start();
//! let caller = Identity::local();
//! let tree = core.list(&caller, "/", 1).expect("the root exists").tree();
//! assert_eq!((tree.path, tree.children), ("/", Some(Vec::new())));
//!
//! let request = Request {
//!     identity: caller,
//!     context: CallContext::new(
//!         RequestId::new(&["example-1"]),
//!         core.services().memory().whole_account(),
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
use broker_mcp::SourceSpec;
use broker_model::Diagnostic;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;

mod admission;
mod broker;
mod builder;
mod call;
mod call_path;
pub mod catalog;
mod clock;
mod drain;
mod errors;
mod generations;
mod heap_trim;
mod identity;
mod item;
mod jobs;
mod life_cycle;
mod listing;
mod services;
mod snapshot;
mod sources;
mod types;
mod view;

#[cfg(test)]
mod tests;

pub use admission::{AccessOfItem, AccessOverview, Admission, HealthView};
pub use broker::{Broker, DynBroker, Restrict, areas};
pub use broker_drift::Class as DriftClass;
pub use broker_mcp::{
    BAGGAGE, CallEvent, CallEvents, LinkFactory, LogMessage, Pipes, Progress, ReceivedEvents,
    RemoteTask, ServerTask, State as SourceState, StderrLine, TRACEPARENT, TRACESTATE,
    TraceHeaders, WantedEvents, note_cancel_reason,
};
pub use broker_memory::{
    Account, Charge, ChargeError, MemoryBudget, Owner, SMALL_BYTES, Size, UNCHARGED_BYTES, reserve,
};
pub use broker_model::item::ItemKind;
pub use broker_model::job_state::JobState;
pub use broker_model::{CallCode, RequestId};
pub use broker_wire::LogLevel;
pub use broker_wire::write::{AnswerReader, Receipt};
pub use builder::CoreBuilder;
pub use call::arguments::{Args, ParsedCharge, memory_error_for_request};
pub use call::context::{
    CallContext, CallTrace, CancelMode, Operation, Outcome, Request, ResultForm, ResultLimit,
};
#[doc(hidden)]
pub use call::cut::fuzzing;
pub use call::cut::{Cut, CutDetail, MAX_KEPT_BYTES};
pub use call::record::{CallRecord, RecordedItem, ReviewedVersions, ShownArgs};
pub use call::send_gate::{AddedGate, Reserving, SendGate, SendGates, UnsentCall};
pub use clock::{Clock, SystemClock};
pub use drain::{CutCalls, Drain};
pub use errors::error::{CoreError, ErrorMembers};
pub use errors::failure::memory_error_for_result;
pub use errors::json_error::json_invalid;
pub use errors::server_error::ServerError;
pub use identity::{Claims, Identity, Origin, Revocation, Subject, Via};
pub use item::ToolItem;
pub use jobs::{
    AcceptedJob, CallMode, DeskAnswer, JobDesk, JobEnding, JobEvent, JobEventKind, JobEvents,
    JobObserver, JobPage, JobQuery, JobRequest, JobResult, JobRun, JobStep, JobView, JobsTrouble,
};
pub use listing::changes::ToolListChanges;
pub use listing::description::{Described, Description};
pub use listing::entry::{EntryType, ListedEntry, WithdrawalNote};
pub use listing::items::{ListedItem, ReadForm};
pub use listing::json::descriptions_json;
pub use listing::look_up::{FlatTool, FoundItem, Name};
pub use listing::search::{FoundTool, FoundTools};
pub use listing::tools::{CallableTool, ListedTool, ToolPage, ToolQuery};
pub use listing::tree::Listing;
pub use services::Services;
pub use sources::change_observer::{Change, ChangeObserver, ChangedItem};
pub use sources::differences::{Differences, DifferingEntry, ShownFinding};
pub use sources::drift_log::DRIFT_LOG;
pub use sources::examine::{ExamResult, SourceExam, StartedSource, ToolComparison};
pub use sources::health::{
    BuiltFrom, Health, InstanceHealth, SourceCounters, SourceHealth, WithdrawnTool,
};
pub use sources::listing_notes::{ListingNotes, ShownLeftOut};
pub use sources::reload::{RefusedSource, ReloadError, ReloadSummary};
pub use sources::served::ServedCounts;
pub use sources::server_output::{ProcessOutput, ServerOutput};
pub use sources::setup::PreparedConfig;
pub use types::{
    Detail, PartialStart, RefusalCause, Reply, SearchQuery, StaleSource, StartMode, StartOutcome,
};

pub use generations::{ReplaceError, Replacement};

use admission::Filters;
use builder::SharedParts;
use call::validator::LazyValidator;
use call::waiting::WaitingCalls;
use call::work::WorkPool;
use listing::query_vector::QueryVectors;
use listing::search::ToolSearch;
use listing::{items, tools};
use snapshot::Terms;
use sources::drift_state::DriftState;
use sources::fleet::STOP_TIMEOUT;
use sources::setup;
use sources::slot::SourceSlot;
use sources::upstream::Upstream;

pub use broker_search::{DEFAULT_HITS, MAX_HITS, MAX_QUERY_CHARS};

/// The maximum number of entries in one `meta_desc`.
pub const MAX_DESCRIBED: usize = 50;
/// The maximum depth of `meta_tree`.
pub const MAX_DEPTH: u8 = 16;

/// The innermost broker: lists, describes and calls the items of a catalog. Cheap to clone, safe to share.
#[derive(Clone)]
pub struct Core(Services);

/// A catalog that is served, with everything that calls and listings of it need.
struct CallPath {
    catalog: &'static Catalog,
    heights: Box<[u8]>,
    search: ToolSearch,
    /// Models that make the vectors of queries; `None` if words answer alone.
    query_vectors: Option<QueryVectors>,
    /// The nodes whose compiled summary is the names of their tools.
    named: BTreeSet<u32>,
    clock: Arc<dyn Clock>,
    /// By the catalog's tools.
    validators: Box<[LazyValidator]>,
    /// The pool for long jobs before a call is sent,
    work: WorkPool,
    /// and the pool for long results.
    verifying: WorkPool,
    shaping: WorkPool,
    /// The calls that wait for their sources to start.
    waiting: WaitingCalls,
    /// The calls of this catalog. The catalog may be replaced while they run.
    active: TaskTracker,
    /// The error of every call of a broker that could not be started.
    failure: Option<Box<CoreError>>,
    /// The sources of the catalog.
    fleet: Arc<Fleet>,
}

/// The sources of a catalog, and what verdicts and reloads change.
struct Fleet {
    catalog: &'static Catalog,
    drift_state: Arc<DriftState>,
    /// A reload replaces them.
    terms: ArcSwap<Terms>,
    /// Filters of the program, in addition to the policy.
    filters: Filters,
    shared: SharedParts,
    start_defaults: StartDefaults,
    partial: PartialStart,
    /// The sources to start; taken when they are started.
    specs: Mutex<Vec<SourceSpec>>,
    /// The slots of the catalog's sources, once they are started.
    slots: OnceLock<Box<[SourceSlot]>>,
    /// Sources outside the slots: candidates, and retired ones with calls in flight. They stop with the
    /// others.
    extra_upstreams: Mutex<Vec<Upstream>>,
    /// Held while a reload is under way.
    reloading: tokio::sync::Mutex<()>,
    created: SystemTime,
}

impl Core {
    /// Returns a builder of a core that serves this catalog.
    pub fn builder<'a>(catalog: &'static Catalog) -> CoreBuilder<'a> {
        CoreBuilder::new(catalog)
    }
}

impl CoreBuilder<'_> {
    /// Resolves the command and the variables of every source, without starting them.
    ///
    /// # Errors
    ///
    /// All problems of the catalog, the config and the variables together.
    pub fn build(self) -> Result<Core, Vec<Diagnostic>> {
        setup::build(self).map(|call_path| Core(Services::new(call_path)))
    }
}

impl Broker for Core {
    fn services(&self) -> &Services {
        &self.0
    }

    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>> {
        Listing::new(self.0.snapshot(identity), path, depth)
    }

    async fn describe(
        &self,
        identity: &Identity,
        paths: &[&str],
        account: &Account,
    ) -> Result<Vec<Described>, Box<CoreError>> {
        self.0.describe(identity, paths, account).await
    }

    async fn search(
        &self,
        identity: &Identity,
        what: SearchQuery<'_>,
    ) -> Result<FoundTools, Box<CoreError>> {
        self.0.search(identity, what).await
    }

    fn look_up(&self, identity: &Identity, name: Name<'_>) -> Result<FoundItem, Box<CoreError>> {
        self.0.snapshot(identity).look_up(name)
    }

    fn items(&self, identity: &Identity) -> Vec<ToolItem> {
        self.0.snapshot(identity).items()
    }

    fn tools(&self, identity: &Identity, what: &ToolQuery<'_>) -> Option<ToolPage> {
        tools::page(&self.0.snapshot(identity), what)
    }

    fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool> {
        tools::all_callable(self.0.snapshot(identity).scope())
    }

    fn listed_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem> {
        items::list(&self.0.snapshot(identity), kind)
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` would have room for the request twice"
    )]
    #[inline]
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        async move {
            let (call_path, _active) = self.0.generations().enter();
            let (identity, context) = (&request.identity, &request.context);
            call_path
                .call(identity, context, &request.path, request.operation)
                .await
        }
    }

    fn health(&self, identity: &Identity) -> Health {
        let mut health = self.0.health();
        if !self.0.is_operator(identity) {
            health.sources.clear();
        }
        health
    }

    async fn close(&self) {
        self.close_within(STOP_TIMEOUT).await;
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("catalog_digest", &self.0.catalog_digest())
            .finish_non_exhaustive()
    }
}
