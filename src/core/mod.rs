//! The domain boundary: catalog, admission, call path, drift state. It is the only way to a server,
//! and it knows no transport: surfaces hand it an identity and raw arguments.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use broker_mcp::{Environment, Launch};
use broker_model::config::Config;
use broker_model::drift::Report;
use broker_model::{CallCode, Diagnostic};
use bytes::Bytes;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::catalog::{Catalog, Kind};

mod admission;
mod call;
mod drift_log;
mod error;
mod failure;
mod gate;
mod health;
mod identity;
mod lifecycle;
mod lookup;
mod render;
mod setup;
mod shutdown;
mod time;
mod upstream;
mod validate;
mod verdict;
mod view;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use error::{CoreError, ErrorMembers};
pub use health::{Health, SourceHealth};
pub use identity::Identity;

use render::Renderer;
use shutdown::InFlight;
use upstream::Link;
use validate::LazyValidator;
use verdict::Verdicts;
use view::View;

/// Entries that one `meta_desc` describes.
const MAX_DESCRIBED: usize = 50;
/// How deep `meta_tree` goes.
const MAX_DEPTH: u8 = 16;

/// What the library can do for whoever knows a path. Cheap to clone, safe to share.
#[derive(Clone)]
pub struct Core(Arc<Inner>);

struct Inner {
    catalog: &'static Catalog,
    heights: Box<[u8]>,
    /// By the catalog's tools.
    tools: Box<[ToolSlot]>,
    verdicts: Arc<Verdicts>,
    calls: InFlight,
    /// What is started; taken when it is.
    launches: Mutex<Vec<Launch>>,
    /// By the catalog's sources, once they are started.
    upstreams: OnceLock<Box<[Link]>>,
    tasks: TaskTracker,
    closing: AtomicBool,
    made: SystemTime,
}

/// What a call of one tool needs besides the catalog.
struct ToolSlot {
    timeout: Duration,
    validator: LazyValidator,
}

/// What a broker is made of.
#[derive(Debug)]
pub struct Setup<'a> {
    /// What was compiled in.
    pub catalog: &'static Catalog,
    /// The config it runs with; already found to fit the catalog. Tools that its filters do not admit
    /// are left out of everything.
    pub config: Config,
    /// Where variables are looked up.
    pub environment: &'a Environment,
    /// What relative paths resolve against.
    pub base: &'a Path,
    /// How it starts.
    pub mode: Mode,
}

/// How a broker starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is called before every required source was held against the lock, and any difference
    /// refuses the start.
    Plain,
    /// Each source is admitted at its own verdict; tools that do not match are withdrawn.
    Tolerant,
}

/// A successful answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// One JSON object.
    pub body: Bytes,
    /// Its entity tag, with quotes, where it has one.
    pub etag: Option<String>,
}

/// What is to be described.
#[derive(Clone, Copy, Debug)]
pub enum Describe<'a> {
    /// One entry; the reply is the entry.
    One(&'a str),
    /// At most 50 entries; the reply is `{"entries":[…]}` in this order.
    Many(&'a [String]),
}

/// One call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool.
    pub path: &'a str,
    /// One JSON object as the caller wrote it; `{}` where there was none.
    pub args: &'a [u8],
    /// The same, read strictly.
    pub args_value: &'a Value,
    /// For the log.
    pub request_id: &'a str,
}

/// What a path names, found without invoking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRef {
    /// Its path.
    pub path: &'static str,
    /// For a tool, the digest that was reviewed; `None` for a node.
    pub digest: Option<&'static str>,
    /// Whether it is a tool that was withdrawn.
    pub withdrawn: bool,
}

/// How a start went, once every required source was judged or failed.
#[derive(Clone, Debug)]
pub struct StartOutcome {
    /// Everything that differs, over all required sources.
    pub report: Report,
    /// Why it must be refused; never with [`Mode::Tolerant`].
    pub refuse: Option<RefuseExit>,
}

/// Why a start is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseExit {
    /// A source differs from the lock.
    Drift,
    /// A source could not be started or listed.
    Unchecked,
}

impl Core {
    /// Resolves every source's command and variables; starts nothing. All problems are reported.
    pub fn new(setup: Setup<'_>) -> Result<Self, Vec<Diagnostic>> {
        setup::build(setup).map(|inner| Self(Arc::new(inner)))
    }

    /// Starts every source, side by side. Must be called within a runtime, once.
    pub fn start(&self) {
        self.0.start_sources();
    }

    /// Waits until every required source was judged, or failed to start, once.
    pub async fn first_verdict(&self) -> StartOutcome {
        self.0.verdicts.gate.outcome().await
    }

    /// The tree below `path`, `depth` levels deep (1 to 16).
    pub fn list(
        &self,
        identity: &Identity,
        path: &str,
        depth: u8,
    ) -> Result<Reply, Box<CoreError>> {
        if !(1..=MAX_DEPTH).contains(&depth) {
            let message = format!("`depth` is {depth}, and 1 to {MAX_DEPTH} is allowed");
            return Err(Box::new(CoreError::new(CallCode::FieldInvalid, message)));
        }
        let view = self.0.verdicts.view.load();
        let at = lookup::resolve(self.0.catalog, &view, identity, path)?;
        let entry = self.0.catalog.entry(at);
        match entry.kind {
            Kind::Tool(_) => Err(lookup::is_tool(entry.path)),
            Kind::Node { .. } => Ok(self.0.renderer(&view, identity).tree(at, depth)),
        }
    }

    /// One entry, or several. Of several, each that cannot be described has its error in its place.
    pub fn describe(
        &self,
        identity: &Identity,
        what: Describe<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let view = self.0.verdicts.view.load();
        let renderer = self.0.renderer(&view, identity);
        match what {
            Describe::One(path) => {
                let at = lookup::resolve(self.0.catalog, &view, identity, path)?;
                Ok(renderer.description(at))
            }
            Describe::Many(paths) if paths.len() > MAX_DESCRIBED => {
                let message = format!(
                    "`paths` has {} items, and at most {MAX_DESCRIBED} are allowed",
                    paths.len()
                );
                Err(Box::new(CoreError::new(CallCode::FieldInvalid, message)))
            }
            Describe::Many(paths) => {
                let found = paths
                    .iter()
                    .map(|path| lookup::resolve(self.0.catalog, &view, identity, path));
                Ok(renderer.descriptions(paths, found))
            }
        }
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub async fn call(&self, identity: &Identity, call: Call<'_>) -> Result<Reply, Box<CoreError>> {
        self.0.call(identity, call).await
    }

    /// What a path names, without invoking it.
    pub fn lookup(&self, identity: &Identity, path: &str) -> Result<EntryRef, Box<CoreError>> {
        let view = self.0.verdicts.view.load();
        let at = lookup::resolve(self.0.catalog, &view, identity, path)?;
        let entry = self.0.catalog.entry(at);
        let (digest, withdrawn) = match entry.kind {
            Kind::Node { .. } => (None, false),
            Kind::Tool(tool) => (
                Some(self.0.catalog.tool(tool).digest),
                view.withdrawn(tool).is_some(),
            ),
        };
        Ok(EntryRef {
            path: entry.path,
            digest,
            withdrawn,
        })
    }

    /// Whether it is ready, and every source's state.
    pub fn health(&self) -> Health {
        self.0.health()
    }

    /// New calls are answered `shutting_down` from now on.
    pub fn begin_shutdown(&self) {
        self.0.calls.stop();
    }

    /// Waits until [`Core::begin_shutdown`] was said and no call is in flight.
    pub async fn drained(&self) {
        self.0.calls.drained().await;
    }

    /// Fails what is left with `shutting_down` and stops every source, side by side. Idempotent.
    pub async fn close(&self) {
        self.0.stop_sources().await;
    }

    /// The digest of the catalog it serves.
    pub fn catalog_digest(&self) -> &'static str {
        self.0.catalog.catalog_digest
    }
}

impl Inner {
    fn renderer<'a>(&'a self, view: &'a View, identity: &'a Identity) -> Renderer<'a> {
        Renderer {
            catalog: self.catalog,
            heights: &self.heights,
            view,
            identity,
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
