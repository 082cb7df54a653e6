//! The common part of both kinds of start: creates the core from the settings, then serves, reloads and
//! stops, the same for every surface.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use broker_mcp::Environment;
use broker_model::Diagnostic;
use broker_model::config::Unreachable;
use broker_model::exit::Exit;
use broker_process::guard::{ReloadSignals, Signals};

use super::callers;
use super::failure::{Failure, unless_refused};
use super::lifecycle::Running;
use super::list_changed_exec;
use super::mcp::McpVariables;
use super::mcp_view::ViewVariables;
use super::reload::Reloader;
use super::settings::LoadedConfig;
use crate::catalog::Catalog;
use crate::cli::Cli;
use crate::core::{Core, StartMode};
use crate::list_changed_exec::ListChangedExec;
use crate::logging::LogOutput;
use crate::surface::http::HostPolicy;
use crate::surface::{self, CallerSettings, Surface};

/// The origin of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatalogOrigin {
    /// The build compiled it in.
    Compiled,
    /// It was made of a lock at the start, so that only this machine may use it.
    Lock,
}

/// The inputs of a start.
pub(super) struct Startup<'a> {
    pub(super) catalog: &'static Catalog,
    pub(super) origin: CatalogOrigin,
    pub(super) cli: &'a Cli,
    /// The variables for MCP clients.
    pub(super) mcp: McpVariables,
    pub(super) view: ViewVariables,
    /// The command for changed lists, which only the first config of a start sets.
    pub(super) list_changed_exec: OnceLock<Option<Arc<ListChangedExec>>>,
    pub(super) environment: Environment,
    pub(super) output: &'a LogOutput,
}

/// The signals of a running broker.
pub(super) struct SignalReceivers {
    pub(super) signals: Signals,
    pub(super) reload_signals: ReloadSignals,
}

impl<'a> Startup<'a> {
    /// Logs the catalog and the origin of one that was not compiled in.
    pub(super) fn announce(&self) {
        if self.origin == CatalogOrigin::Lock {
            let config = self.cli.config.as_deref().unwrap_or(Path::new(""));
            tracing::info!(
                catalog = %self.catalog.catalog_digest,
                config = %config.display(),
                "reads the lock at start: a process that can write the file decides which tools are served"
            );
        }
    }

    /// The config of the command line, or the compiled-in one.
    pub(super) fn settings(&self) -> Result<LoadedConfig, Failure> {
        let loaded = LoadedConfig::load(self.catalog, self.cli.config.as_deref());
        loaded.map_err(|failure| match self.origin {
            CatalogOrigin::Compiled => failure,
            CatalogOrigin::Lock => failure.without_build(),
        })
    }

    /// The part of `settings` for the surface; entries that cannot be used are added to `problems`.
    /// Over stdio requests have neither `Host` nor `Origin`, so the variables of those lists need not
    /// be set.
    pub(super) fn for_surface(
        &self,
        settings: &LoadedConfig,
        problems: &mut Vec<Diagnostic>,
    ) -> surface::SurfaceSettings {
        surface::SurfaceSettings {
            hosts: if self.cli.is_stdio() {
                HostPolicy::default()
            } else {
                settings.host_policy(&self.cli.options.allow_host, &self.environment, problems)
            },
            body_bytes: settings.config.limits.body_bytes,
            mcp: self.mcp.settings(
                &settings.config,
                self.view.view(&settings.config, &self.cli.options),
                self.list_changed_exec(settings, problems),
            ),
            callers: if self.cli.is_stdio() {
                CallerSettings::default()
            } else {
                callers::settings(settings, &self.environment, problems)
            },
        }
    }

    /// The command that runs after the list of a session has changed: the same after each reload.
    fn list_changed_exec(
        &self,
        settings: &LoadedConfig,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Arc<ListChangedExec>> {
        let make = || {
            let made = list_changed_exec::make(settings, &self.environment);
            let process = made.unwrap_or_else(|found| {
                problems.extend(found);
                None
            })?;
            self.output.mask(&process.redactor);
            Some(Arc::new(ListChangedExec::new(process)))
        };
        self.list_changed_exec.get_or_init(make).clone()
    }

    /// Creates a core without starting its sources. Its problems are reported together with earlier
    /// ones.
    pub(super) fn core(
        &self,
        settings: &LoadedConfig,
        problems: Vec<Diagnostic>,
    ) -> Result<Core, Failure> {
        let mode = match self.cli.options.ignore_broken_tool {
            true => StartMode::Tolerant,
            false => StartMode::Plain,
        };
        let core = Core::builder(self.catalog)
            .config(&settings.config, &settings.base)
            .environment(&self.environment)
            .mode(mode)
            .unreachable(unreachable_default(self.cli.is_stdio()))
            .embedder(self.view.embedder)
            .build();
        let core = unless_refused(core, problems)?;
        self.output.mask(&core.redactor());
        Ok(core)
    }

    /// Serves until the end of the broker. Calls in flight get `drain_timeout` to end.
    pub(super) async fn run<S: Surface>(
        self,
        core: Core,
        surface: S,
        listener: S::Listener,
        drain_timeout: Duration,
        signal_receivers: SignalReceivers,
    ) -> Result<Exit, Failure> {
        let (surface, output) = (Arc::new(surface), self.output);
        let served_config = match self.origin {
            CatalogOrigin::Compiled => None,
            CatalogOrigin::Lock => self.cli.config.as_deref(),
        };
        let reloader = Reloader::new(self, core.clone(), Arc::clone(&surface));
        let running = Running::start(core, surface, listener, drain_timeout);
        let reloads = reloader.run(signal_receivers.reload_signals);
        running
            .until_end(signal_receivers.signals, reloads, served_config, output)
            .await
    }
}

/// The `on_unreachable` of a start whose config sets none. The client that starts a broker over stdio shows
/// its user no report of a refused start; elsewhere an operator watches the start.
pub(super) const fn unreachable_default(is_stdio: bool) -> Unreachable {
    if is_stdio {
        Unreachable::Serve
    } else {
        Unreachable::Refuse
    }
}
