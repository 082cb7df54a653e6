//! The common part of both kinds of start: its inputs, its settings and its core.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use broker_config::{Embedder, PublicUrl, StartDefaults, StartDrift, Unreachable};
use broker_jobs::Keeper;
use broker_mcp::Environment;
use broker_metrics::Transport;
use broker_model::Diagnostic;
use broker_observe::{ListChangedExec, Observers};
use broker_process::guard::{ReloadSignals, Signals};
use broker_surface_http::{BasePaths, CallerSettings, HttpSettings, PageSettings};
use broker_surface_mcp::stdio::StdioSettings;

use super::beside;
use super::callers;
use super::catalog_origin::CatalogOrigin;
use super::failure::{Failure, unless_refused};
use super::jobs;
use super::list_changed_exec;
use super::mcp::McpVariables;
use super::mcp_view::ViewVariables;
use super::names;
use super::observation;
use super::openness::Openness;
use super::settings::LoadedConfig;
use super::stack::{Stack, stack};
use super::{ReadCatalog, warn};
use crate::catalog::Catalog;
use crate::cli::Cli;
use crate::core::{Broker, Core, CoreBuilder, PartialStart, StartMode};
use crate::logging::LogOutput;

/// The inputs of a start.
pub(super) struct Startup<'a> {
    /// The catalog in force. A start with a lock replaces it when the lock changes.
    pub(super) catalog: Cell<&'static Catalog>,
    /// The files that the catalog was made of.
    pub(super) files: Vec<PathBuf>,
    /// Reads the catalog again.
    pub(super) reread: ReadCatalog<'a>,
    /// The sources that the start may leave out.
    pub(super) partial: PartialStart,
    pub(super) origin: CatalogOrigin,
    pub(super) cli: &'a Cli,
    /// The variables for MCP clients.
    pub(super) mcp: McpVariables,
    pub(super) view: ViewVariables,
    /// Over HTTP, who may call without a credential.
    pub(super) openness: OnceCell<Openness>,
    /// The command for changed lists. Only the first config of a start sets it.
    pub(super) list_changed_exec: OnceLock<Option<Arc<ListChangedExec>>>,
    /// The observers, which only the first config of a start sets.
    pub(super) observers: OnceLock<Observers>,
    /// The keeper of jobs. Only the first config of a start sets it.
    pub(super) jobs: OnceLock<Arc<Keeper>>,
    pub(super) environment: Environment,
    pub(super) output: &'a LogOutput,
}

/// The signals of a running broker.
pub(super) struct SignalReceivers {
    pub(super) signals: Signals,
    pub(super) reload_signals: ReloadSignals,
}

/// The part of a config for a surface.
pub(super) trait FromConfig: Sized {
    /// Reads the settings; entries that cannot be used are added to `problems`.
    fn from_config(
        startup: &Startup<'_>,
        loaded: &LoadedConfig,
        problems: &mut Vec<Diagnostic>,
    ) -> Self;

    /// Returns the settings for recognising callers, if the surface has several.
    fn callers(&self) -> Option<&CallerSettings> {
        None
    }
}

impl FromConfig for HttpSettings {
    fn from_config(
        startup: &Startup<'_>,
        loaded: &LoadedConfig,
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let (options, environment) = (&startup.cli.options, &startup.environment);
        Self {
            hosts: loaded.host_policy(&options.allow_host, environment, problems),
            body_bytes: loaded.config.limits.body_bytes,
            mcp: startup.mcp.settings(
                &loaded.config,
                startup.view.view(&loaded.config, options),
                startup.list_changed_exec(loaded, problems),
                options.base_path.as_deref(),
            ),
            callers: callers::settings(loaded, environment, problems),
            idle_timeout: loaded.config.limits.idle_timeout,
            base_paths: BasePaths::new(
                [
                    loaded.config.public_url.as_ref().map(PublicUrl::base_path),
                    options.base_path.as_deref(),
                ]
                .into_iter()
                .flatten()
                .map(str::to_owned),
            ),
            page: PageSettings {
                served: loaded.config.surfaces.web,
                calls: loaded.config.surfaces.web_calls,
            },
        }
    }

    fn callers(&self) -> Option<&CallerSettings> {
        Some(&self.callers)
    }
}

/// Requests over stdio have neither `Host` nor `Origin`, so the variables of those lists need not be set.
impl FromConfig for StdioSettings {
    fn from_config(
        startup: &Startup<'_>,
        loaded: &LoadedConfig,
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            view: startup.view.view(&loaded.config, &startup.cli.options),
            list_changed_exec: startup.list_changed_exec(loaded, problems),
            line_bytes: loaded.config.limits.body_bytes,
            answer_bytes: loaded.config.limits.stdio_line_bytes,
        }
    }
}

impl<'a> Startup<'a> {
    /// Logs the catalog and the origin of one that was not compiled in, and whether another config or lock is beside one that
    /// was.
    pub(super) fn announce(&self) {
        self.warn_of_mismatch();
        if self.origin == CatalogOrigin::Lock {
            let config = self.cli.config.as_deref().unwrap_or(Path::new(""));
            tracing::info!(
                catalog = %self.catalog.get().catalog_digest,
                config = %config.display(),
                "reads the lock at start: a process that can write the file decides which tools are served"
            );
        }
    }

    /// Warns if config and lock on this machine are not the compiled-in ones.
    pub(super) fn warn_of_mismatch(&self) {
        if self.origin == CatalogOrigin::Compiled {
            let found = beside::mismatch(self.catalog.get(), self.cli.config.as_deref());
            found.iter().for_each(warn);
        }
    }

    /// The config of the command line, or the compiled-in one.
    pub(super) fn settings(&self) -> Result<LoadedConfig, Failure> {
        self.settings_for(self.catalog.get())
    }

    /// The same beside another catalog.
    pub(super) fn settings_for(&self, catalog: &Catalog) -> Result<LoadedConfig, Failure> {
        let loaded = LoadedConfig::load(catalog, self.cli.config.as_deref());
        loaded.map_err(|failure| match self.origin {
            CatalogOrigin::Compiled => failure,
            CatalogOrigin::Lock => failure.without_build(),
        })
    }

    /// Adds the problems of callers without a credential, who exist over HTTP alone.
    pub(super) fn check_openness(
        &self,
        catalog: &Catalog,
        settings: &LoadedConfig,
        callers: Option<&CallerSettings>,
        problems: &mut Vec<Diagnostic>,
    ) {
        if let (Some(openness), Some(callers)) = (self.openness.get(), callers) {
            let catalog = (catalog, self.origin);
            let found = openness.problems(catalog, &settings.config, callers);
            let found = Failure::Diagnostics(found);
            let found = match self.origin {
                CatalogOrigin::Compiled => found,
                CatalogOrigin::Lock => found.without_build(),
            };
            if let Failure::Diagnostics(found) = found {
                problems.extend(found);
            }
        }
    }

    /// Notes the callers of a config that is in force now.
    pub(super) fn note_callers(&self, callers: Option<&CallerSettings>) {
        if let (Some(openness), Some(callers)) = (self.openness.get(), callers) {
            let had_identities = openness.had_identities.get();
            openness
                .had_identities
                .set(had_identities || callers.has_identities);
        }
    }

    /// Names the broker for MCP clients as the config does. A reload changes no name.
    pub(super) fn set_server_name(settings: &LoadedConfig) {
        if let Some(name) = &settings.config.mcp.name {
            broker_surface_mcp::set_server_name(name);
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

    /// Returns the observers. The first call opens them.
    pub(super) fn observers(
        &self,
        settings: &LoadedConfig,
        problems: &mut Vec<Diagnostic>,
    ) -> Observers {
        let open = || {
            let surface = match self.cli.is_stdio() {
                true => Transport::Pipe,
                false => Transport::Tcp,
            };
            let opened =
                observation::open(self.catalog.get(), settings, &self.environment, surface);
            opened.unwrap_or_else(|found| {
                problems.extend(found);
                Observers::default()
            })
        };
        self.observers.get_or_init(open).clone()
    }

    /// Returns the layers around a core, with the jobs that the config asks for.
    pub(super) async fn stack(
        &self,
        core: &Core,
        settings: &LoadedConfig,
    ) -> Result<Stack, Failure> {
        let observers = self.observers.get().cloned().unwrap_or_default();
        let opened = jobs::open(core, &observers, settings, &self.environment).await;
        let opened = opened.map_err(Failure::Diagnostics)?;
        if let Some(keeper) = &opened {
            self.jobs.get_or_init(|| keeper.clone());
        }
        Ok(stack(core.clone(), observers, opened))
    }

    /// Creates a core without starting its sources. Its problems are reported together with earlier
    /// ones.
    pub(super) fn core(
        &self,
        settings: &LoadedConfig,
        mut problems: Vec<Diagnostic>,
    ) -> Result<Core, Failure> {
        self.observers(settings, &mut problems);
        let builder = self.builder(self.catalog.get(), settings, self.partial.clone());
        let core = builder.build();
        let core = unless_refused(core, problems)?;
        self.output.mask(&core.services().redactor());
        let shown = names::collect_later(self.catalog.get(), &settings.config);
        self.output.show_names(shown);
        Ok(core)
    }

    /// The parts of a core with this catalog and config.
    pub(super) fn builder<'b>(
        &'b self,
        catalog: &'static Catalog,
        settings: &'b LoadedConfig,
        partial: PartialStart,
    ) -> CoreBuilder<'b> {
        let built = catalog.search.embedder.map(|table| table.embedder);
        let built = built.unwrap_or(Embedder::Bm25);
        let mode = match self.cli.options.ignore_broken_tool {
            true => StartMode::Tolerant,
            false => StartMode::Plain,
        };
        Core::builder(catalog)
            .config(&settings.config, &settings.base)
            .environment(&self.environment)
            .mode(mode)
            .partial(partial)
            .observer(self.observers.get().map(|all| Arc::new(all.clone()) as _))
            .start_defaults(start_defaults(
                self.cli.is_stdio(),
                self.origin,
                settings.config.audits_required > 0,
            ))
            .embedder(self.view.embedder(built))
    }
}

/// Maximum time that a call over stdio waits for its source to start: less than the timeouts of clients, whose
/// first call follows the start of the broker at once.
const STDIO_START_WAIT: Duration = Duration::from_secs(45);

/// The settings of a start that the config leaves out. The person who starts a broker over stdio or with
/// `broker-gen serve` works with it, so it serves what matches the lock; a config that requires audits refuses
/// drift. Over stdio, no report of a refused start is shown to a user; an operator watches other starts.
fn start_defaults(is_stdio: bool, origin: CatalogOrigin, audits_required: bool) -> StartDefaults {
    let is_local = match origin {
        CatalogOrigin::Lock => true,
        CatalogOrigin::Compiled => is_stdio,
    };
    let withdraws = is_local && !audits_required;
    let other = StartDefaults::default();
    StartDefaults {
        drift: if withdraws {
            StartDrift::Withdraw
        } else {
            other.drift
        },
        unreachable: if withdraws || is_stdio {
            Unreachable::Serve
        } else {
            other.unreachable
        },
        wait: if is_stdio {
            STDIO_START_WAIT
        } else {
            other.wait
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_defaults_withdraw_for_a_local_user_without_audits() {
        use CatalogOrigin::{Compiled, Lock};
        let of = |is_stdio, origin, audits| {
            let defaults = start_defaults(is_stdio, origin, audits);
            (
                defaults.drift,
                defaults.unreachable,
                defaults.wait.as_secs(),
            )
        };
        let (refuse, withdraw) = (StartDrift::Refuse, StartDrift::Withdraw);
        for (is_stdio, origin, audits, expected) in [
            (false, Compiled, false, (refuse, Unreachable::Refuse, 10)),
            (false, Compiled, true, (refuse, Unreachable::Refuse, 10)),
            (false, Lock, false, (withdraw, Unreachable::Serve, 10)),
            (false, Lock, true, (refuse, Unreachable::Refuse, 10)),
            (true, Compiled, false, (withdraw, Unreachable::Serve, 45)),
            (true, Compiled, true, (refuse, Unreachable::Serve, 45)),
            (true, Lock, false, (withdraw, Unreachable::Serve, 45)),
            (true, Lock, true, (refuse, Unreachable::Serve, 45)),
        ] {
            assert_eq!(
                of(is_stdio, origin, audits),
                expected,
                "{is_stdio} {origin:?} {audits}"
            );
        }
    }
}
