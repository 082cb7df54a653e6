//! Opens a core for a program of its own: config, environment, start, and the way out. What the
//! command line does on top, listener, secret and signals, is not here.

use std::path::{Path, PathBuf};

use broker_mcp::Environment;

use super::failure::Failure;
use super::http::DRAIN_TIMEOUT;
use super::lifecycle::drain;
use super::settings::Settings;
use crate::catalog::{self, Catalog};
use crate::core::{Core, Mode, Setup, StartOutcome};
use crate::typed::OpenError;

/// How a broker is opened inside a program. The default is what the command line does: the config that
/// was compiled in, this process's environment, a plain start.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    config: Option<PathBuf>,
    environment: Option<Environment>,
    mode: Mode,
}

impl OpenOptions {
    /// The default.
    pub const fn new() -> Self {
        Self {
            config: None,
            environment: None,
            mode: Mode::Plain,
        }
    }

    /// The same with the config at `file` instead of the one compiled in. It may only take away from that
    /// one; relative paths in it resolve against its folder.
    #[must_use]
    pub fn config(mut self, file: impl AsRef<Path>) -> Self {
        self.config = Some(file.as_ref().to_owned());
        self
    }

    /// The same with variables looked up in `environment`, and children inheriting from it.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// The same, starting in another mode.
    #[must_use]
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A core whose sources are started and, after a plain start, judged.
pub(crate) async fn open(
    catalog: &'static Catalog,
    options: OpenOptions,
) -> Result<Core, OpenError> {
    if catalog.format != catalog::FORMAT {
        return Err(OpenError::Catalog {
            found: catalog.format,
        });
    }
    let environment = options.environment.unwrap_or_else(Environment::capture);
    let settings = Settings::load(catalog, options.config.as_deref())?;
    settings.warnings.iter().for_each(super::warn);
    let core = Core::new(Setup {
        catalog,
        config: &settings.config,
        environment: &environment,
        base: &settings.base,
        mode: options.mode,
    })
    .map_err(OpenError::Diagnostics)?;
    core.start();
    if options.mode == Mode::Tolerant {
        return Ok(core);
    }
    let StartOutcome { report, refuse } = core.first_verdict().await;
    match refuse {
        None => Ok(core),
        Some(reason) => {
            core.close().await;
            Err(OpenError::Refused {
                reason,
                report: Box::new(report),
            })
        }
    }
}

/// Refuses what is new, lets run what runs for a while, and stops the sources.
pub(crate) async fn close(core: &Core) {
    drain(core, DRAIN_TIMEOUT).await;
    core.close().await;
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Diagnostics(diagnostics) => Self::Diagnostics(diagnostics),
            Failure::Catalog { found } => Self::Catalog { found },
            Failure::Usage(message) | Failure::Internal(message) => Self::Internal(message),
            Failure::Bind { address, reason } => {
                Self::Internal(format!("cannot listen on `{address}`: {reason}"))
            }
        }
    }
}
