//! Opens a core inside another program: config, environment, start and shutdown, without the listener,
//! the secret and the signals of the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use broker_mcp::Environment;
use broker_metrics::Transport;
use broker_observe::{Observers, RecordSink, Sinks};

use super::failure::Failure;
use super::lifecycle::{drain, warn_of_cut_calls};
use super::observation;
use super::settings::LoadedConfig;
use super::stack::{Stack, stack};
use super::telemetry::export_metrics;
use crate::catalog::{self, Catalog};
use crate::core::{Broker, Core, LinkFactory, StartMode, StartOutcome};
use crate::typed::error::OpenError;

/// The options of a broker inside a program. The defaults are the same as on the command line: the compiled-in config,
/// this process's environment, a plain start.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    config: Option<PathBuf>,
    environment: Option<Environment>,
    mode: StartMode,
    links: LinkFactory,
    sinks: Sinks,
}

impl OpenOptions {
    /// The default.
    pub fn new() -> Self {
        Self {
            config: None,
            environment: None,
            mode: StartMode::Plain,
            links: LinkFactory::default(),
            sinks: Sinks::default(),
        }
    }

    /// Uses the config at `file` instead of the compiled-in one. It may only restrict that one; its
    /// relative paths resolve against its folder.
    #[must_use]
    pub fn config(mut self, file: impl AsRef<Path>) -> Self {
        self.config = Some(file.as_ref().to_owned());
        self
    }

    /// Uses `environment` for variables and for what children inherit.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Serves sources by tasks of this program instead of processes.
    #[must_use]
    pub fn link_factory(mut self, links: LinkFactory) -> Self {
        self.links = links;
        self
    }

    /// Adds a sink that takes the record of each call, next to the log.
    #[must_use]
    pub fn sink(mut self, sink: impl RecordSink) -> Self {
        self.sinks = self.sinks.with(sink);
        self
    }

    /// Sets the start mode.
    #[must_use]
    pub fn mode(mut self, mode: StartMode) -> Self {
        self.mode = mode;
        self
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Opens a core and starts its sources; a plain start waits until they are checked.
pub(crate) async fn open(
    catalog: &'static Catalog,
    options: OpenOptions,
) -> Result<(Core, Stack), OpenError> {
    if catalog.format != catalog::FORMAT {
        return Err(OpenError::Catalog {
            found: catalog.format,
        });
    }
    let environment = options.environment.unwrap_or_else(Environment::capture);
    let settings = LoadedConfig::load(catalog, options.config.as_deref())?;
    settings.warnings.iter().for_each(super::warn);
    let observers = observation::open(catalog, &settings, &environment, Transport::InProcess);
    let observers = Observers {
        sinks: options.sinks,
        ..observers.map_err(OpenError::Diagnostics)?
    };
    let core = Core::builder(catalog)
        .observer(Some(Arc::new(observers.clone())))
        .config(&settings.config, &settings.base)
        .environment(&environment)
        .mode(options.mode)
        .link_factory(options.links)
        .build()
        .map_err(OpenError::Diagnostics)?;
    export_metrics(&observers, core.services(), || None);
    core.start();
    let stack = stack(core.clone(), observers, None);
    if options.mode == StartMode::Tolerant {
        return Ok((core, stack));
    }
    let StartOutcome { report, refuse } = core.services().first_verdict().await;
    match refuse {
        None => Ok((core, stack)),
        Some(reason) => {
            core.close().await;
            Err(OpenError::Refused {
                reason,
                report: Box::new(report),
            })
        }
    }
}

/// Refuses new calls, waits for calls in flight up to a limit, and stops the sources.
pub(crate) async fn close(core: &Core) {
    let time = core.services().drain().time();
    drain(core, time).await;
    core.close().await;
    warn_of_cut_calls(core, time).await;
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Diagnostics(diagnostics) => Self::Diagnostics(diagnostics),
            Failure::Catalog { found } => Self::Catalog { found },
            Failure::Usage(message) | Failure::Variable(message) | Failure::Internal(message) => {
                Self::Internal(message)
            }
            Failure::Bind { address, reason } => {
                Self::Internal(format!("cannot listen on `{address}`: {reason}"))
            }
        }
    }
}
