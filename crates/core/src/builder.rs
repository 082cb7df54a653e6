//! Builds a core: the catalog and, where a program sets them, the config, the environment, and the filters that decide
//! in addition to the access rules.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use broker_config::{Config, Embedder, StartDefaults};
use broker_mcp::{AskedLogLevel, ConcurrencyLimits, Environment, LinkFactory};
use broker_memory::MemoryBudget;
use broker_model::Diagnostic;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::admission::{Admission, Filters, HealthView};
use crate::catalog::Catalog;
use crate::clock::{Clock, SystemClock};
use crate::drain::Drain;
use crate::errors::error::CoreError;
use crate::sources::change_observer::ChangeObserver;
use crate::types::{PartialStart, StartMode};

/// The parts of a core that does not exist yet. Every part but the catalog has a default.
pub struct CoreBuilder<'a> {
    pub(crate) catalog: &'static Catalog,
    pub(crate) config: Option<&'a Config>,
    pub(crate) environment: Option<&'a Environment>,
    pub(crate) base: &'a Path,
    pub(crate) mode: StartMode,
    pub(crate) start_defaults: StartDefaults,
    pub(crate) embedder: Option<(Embedder, &'static str)>,
    pub(crate) failure: Option<Box<CoreError>>,
    pub(crate) partial: PartialStart,
    /// The parts of a running broker whose catalog this one replaces.
    pub(crate) shared: Option<SharedParts>,
    pub(crate) links: LinkFactory,
    pub(crate) observer: Option<Arc<dyn ChangeObserver>>,
    pub(crate) filters: Filters,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The parts of a broker that a new catalog takes over.
#[derive(Clone, Debug)]
pub(crate) struct SharedParts {
    pub(crate) memory: MemoryBudget,
    /// Limits that all sources share, also those that a reload starts.
    pub(crate) concurrency: ConcurrencyLimits,
    /// The level of log messages that callers asked for.
    pub(crate) log_level: AskedLogLevel,
    pub(crate) links: LinkFactory,
    pub(crate) drain: Drain,
    pub(crate) tasks: TaskTracker,
    pub(crate) tool_changes: watch::Sender<u64>,
    pub(crate) observer: Option<Arc<dyn ChangeObserver>>,
}

impl<'a> CoreBuilder<'a> {
    pub(crate) fn new(catalog: &'static Catalog) -> Self {
        Self {
            catalog,
            config: None,
            environment: None,
            base: Path::new("."),
            mode: StartMode::Plain,
            start_defaults: StartDefaults::default(),
            embedder: None,
            failure: None,
            shared: None,
            partial: PartialStart::default(),
            links: LinkFactory::default(),
            observer: None,
            filters: Filters::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets a config that fits the catalog, and the folder for its relative paths. Tools that its filters do not admit
    /// are hidden. Default: the config that was compiled in, and the working folder.
    #[must_use]
    pub const fn config(mut self, config: &'a Config, base: &'a Path) -> Self {
        self.config = Some(config);
        self.base = base;
        self
    }

    /// Sets the environment variables that the config may read. Default: the variables of this process.
    #[must_use]
    pub const fn environment(mut self, environment: &'a Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets the mode of the start. Default: [`StartMode::Plain`].
    #[must_use]
    pub const fn mode(mut self, mode: StartMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the settings of the start that the config leaves out. Default: the settings of a broker over HTTP.
    #[must_use]
    pub const fn start_defaults(mut self, defaults: StartDefaults) -> Self {
        self.start_defaults = defaults;
        self
    }

    /// Sets the source of the vectors of queries: the embedder of the catalog's build, or [`Embedder::Bm25`]. Default:
    /// the former. The text names the setting that chose it, for an error.
    #[must_use]
    pub const fn embedder(mut self, embedder: Option<(Embedder, &'static str)>) -> Self {
        self.embedder = embedder;
        self
    }

    /// Sets what makes the links to sources that tasks serve instead of processes. A catalog that replaces this one keeps
    /// it. Default: every source is a process.
    #[must_use]
    pub fn link_factory(mut self, links: LinkFactory) -> Self {
        self.links = links;
        self
    }

    /// Sets what learns of changes of items and sources. A catalog that replaces this one keeps it. By default, only the
    /// log has them.
    #[must_use]
    pub fn observer(mut self, observer: Option<Arc<dyn ChangeObserver>>) -> Self {
        self.observer = observer;
        self
    }

    /// Sets the error of every call, for a broker that could not be started and still has a client to answer. By
    /// default, calls are served.
    #[must_use]
    pub fn failure(mut self, failure: CoreError) -> Self {
        self.failure = Some(Box::new(failure));
        self
    }

    /// Sets the sources that may be left out. By default, every source is required.
    #[must_use]
    pub fn partial(mut self, partial: PartialStart) -> Self {
        self.partial = partial;
        self
    }

    /// Adds a filter that removes tools for callers, in addition to the access rules. By default, only the rules
    /// decide.
    #[must_use]
    pub fn admission(mut self, admission: impl Admission + 'static) -> Self {
        self.filters.admission = Some(Arc::new(admission));
        self
    }

    /// Adds a filter that removes the tools of sources by their health. Default: health removes no tool.
    #[must_use]
    pub fn health_view(mut self, view: impl HealthView + 'static) -> Self {
        self.filters.health = Some(Arc::new(view));
        self
    }

    /// Sets the clock. It dates withdrawals and ends the streams of a credential that expires. Default: the system
    /// clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns the parts that the catalog takes over, or new ones.
    pub(crate) fn shared_parts(&mut self, memory_bytes: usize) -> SharedParts {
        self.shared.take().unwrap_or_else(|| SharedParts {
            memory: MemoryBudget::new(memory_bytes),
            concurrency: ConcurrencyLimits::new(),
            log_level: AskedLogLevel::new(),
            links: self.links.clone(),
            drain: Drain::default(),
            tasks: TaskTracker::new(),
            tool_changes: watch::Sender::new(0),
            observer: self.observer.clone(),
        })
    }

    /// Reads the config from the catalog, unless it was given.
    pub(crate) fn read_config(&self) -> Result<Cow<'a, Config>, Vec<Diagnostic>> {
        match self.config {
            Some(config) => Ok(Cow::Borrowed(config)),
            None => {
                let text = self.catalog.config.as_bytes();
                let mut config = Config::parse(self.catalog.config_name, text)?.config;
                self.catalog.use_word_lists(&mut config);
                Ok(Cow::Owned(config))
            }
        }
    }

    pub(crate) fn read_environment(&self) -> Cow<'a, Environment> {
        let captured = || Cow::Owned(Environment::capture());
        self.environment.map_or_else(captured, Cow::Borrowed)
    }
}

impl fmt::Debug for CoreBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreBuilder")
            .field("catalog_digest", &self.catalog.catalog_digest)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
