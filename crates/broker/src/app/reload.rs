//! Reloads the config while the broker runs: on SIGHUP, and with `--reload` whenever the file changes. A broker that
//! reads its lock takes a new one as well: on SIGHUP, and whenever config or lock is replaced. A config that cannot be
//! applied is reported as at a start, and has no effect.

use std::convert::Infallible;
use std::sync::Arc;

use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_surface::Surface;

use super::catalog_origin::CatalogOrigin;
use super::failure::{Failure, unless_refused};
use super::names;
use super::startup::{FromConfig, Startup};
use super::watch::{Content, Stamps, Watch};
use super::{ServedCatalog, StaleSources, warn};
use crate::cli::Cli;
use crate::core::{
    Broker, Core, PartialStart, ReloadError, ReloadSummary, ReplaceError, Replacement,
};
use broker_process::guard::ReloadSignals;

/// The result of a reload.
enum Reloaded {
    /// Another catalog is served.
    Catalog(Replacement),
    /// Another config is in force.
    Config(ReloadSummary),
}

/// Reloads one broker's config, and the lock of one that reads it.
pub(super) struct Reloader<'a, S> {
    startup: Startup<'a>,
    core: Core,
    surface: Arc<S>,
}

impl<'a, S: Surface<Settings: FromConfig>> Reloader<'a, S> {
    /// A reloader for the config in the command line, if there is one.
    pub(super) const fn new(startup: Startup<'a>, core: Core, surface: Arc<S>) -> Self {
        Self {
            startup,
            core,
            surface,
        }
    }

    /// Handles reload signals and watches the file, once the start has succeeded.
    pub(super) async fn run(self, mut reload_signals: ReloadSignals) -> Infallible {
        let cli = self.startup.cli;
        let watched = cli.config.as_deref().filter(|_| cli.options.reload);
        let mut watch = match (self.startup.origin, watched) {
            (CatalogOrigin::Lock, _) => Watch::Stamps(Stamps::new(&self.startup.files)),
            (CatalogOrigin::Compiled, Some(file)) => Watch::Content(Content::new(file)),
            (CatalogOrigin::Compiled, None) => Watch::Nothing,
        };
        if self.core.services().first_verdict().await.refuse.is_some() {
            return std::future::pending().await;
        }
        loop {
            tokio::select! {
                () = reload_signals.next() => {}
                () = watch.changed() => {}
            }
            self.reload().await;
        }
    }

    /// Whether anything can differ from the start: the config, or the file of keys that the compiled-in one names.
    fn reads_a_file(&self) -> bool {
        self.startup.cli.config.is_some()
            || self
                .startup
                .settings()
                .is_ok_and(|settings| settings.config.identities.keys_file.is_some())
    }

    async fn reload(&self) {
        let audit = self.startup.observers.get();
        let audit = audit.and_then(|all| all.audit.as_ref());
        if let Some(audit) = audit {
            audit.reopen();
        }
        if !self.reads_a_file() {
            tracing::warn!(
                "nothing to reload: the broker runs with the config that was compiled in"
            );
            return;
        }
        let outcome = self.try_reload().await;
        if let Some(audit) = audit {
            let refused = outcome.as_ref().err().map(Failure::code);
            audit.reloaded(self.core.services().reviewed(), refused);
        }
        match outcome {
            Ok(Reloaded::Catalog(replacement)) => tracing::info!(
                catalog = replacement.catalog_digest,
                before = replacement.before,
                "took the new lock"
            ),
            Ok(Reloaded::Config(ReloadSummary { replaced })) if replaced.is_empty() => {
                tracing::info!("reloaded; every source keeps its process");
            }
            Ok(Reloaded::Config(ReloadSummary { replaced })) => {
                tracing::info!(replaced = replaced.join(" "), "reloaded");
            }
            Err(failure) => {
                failure.report(self.startup.output);
                match self.startup.origin {
                    CatalogOrigin::Compiled => {
                        tracing::error!("not reloaded; the broker keeps its previous config");
                    }
                    CatalogOrigin::Lock => tracing::error!(
                        "not reloaded; the broker keeps its previous config and lock"
                    ),
                }
            }
        }
    }

    async fn try_reload(&self) -> Result<Reloaded, Failure> {
        if self.startup.origin == CatalogOrigin::Lock {
            match (self.startup.reread)(StaleSources::Refused) {
                Ok(read) if !std::ptr::eq(read.catalog, self.startup.catalog.get()) => {
                    return self.replace(read).await.map(Reloaded::Catalog);
                }
                Ok(_) => {}
                Err(problems) if self.only_config_changed(&problems) => {}
                Err(problems) => return Err(Failure::Diagnostics(problems)),
            }
        }
        self.reload_config().await.map(Reloaded::Config)
    }

    /// Whether the config was edited and its lock was not. Such a config may narrow what is served, as beside a
    /// compiled-in catalog; the reload of it says why another one is refused.
    fn only_config_changed(&self, problems: &[Diagnostic]) -> bool {
        let is_stale = |problem: &Diagnostic| problem.code == DiagnosticCode::LockStale;
        let locked = self.startup.catalog.get().config_digest;
        problems.iter().all(is_stale)
            && !self
                .startup
                .settings()
                .is_ok_and(|settings| settings.config.digest().as_str() == locked)
    }

    /// Serves another catalog with the config beside it.
    async fn replace(&self, read: ServedCatalog) -> Result<Replacement, Failure> {
        let startup = &self.startup;
        read.warnings.iter().for_each(warn);
        let settings = startup.settings_for(read.catalog)?;
        settings.warnings.iter().for_each(warn);
        let mut problems = Vec::new();
        let for_surface = S::Settings::from_config(startup, &settings, &mut problems);
        startup.check_openness(
            read.catalog,
            &settings,
            for_surface.callers(),
            &mut problems,
        );
        unless_refused(Ok(()), problems)?;
        let partial = PartialStart {
            stale: read.stale,
            ..startup.partial.clone()
        };
        let builder = startup.builder(read.catalog, &settings, partial);
        self.surface.end_rights(&for_surface);
        // Before any source is started with these secrets.
        let mask = |redactor: &Redactor| startup.output.mask(redactor);
        let shown = names::collect_later(read.catalog, &settings.config);
        startup.output.show_names(shown);
        let replaced = self.core.replace(builder, &mask).await;
        let replacement = replaced.map_err(|error| self.replace_failure(error))?;
        startup.catalog.set(read.catalog);
        startup.note_callers(for_surface.callers());
        self.surface.apply(for_surface);
        Ok(replacement)
    }

    fn replace_failure(&self, error: ReplaceError) -> Failure {
        match error {
            ReplaceError::Unusable(problems) => Failure::Diagnostics(problems),
            ReplaceError::Refused(outcome) => {
                let report = outcome.report;
                let output = self.startup.output;
                output.drift_report(&text!("{}", broker_doctor::report_text(&report)), &report);
                let message = "the sources do not match the new lock, or cannot be reached";
                let problem = Diagnostic::error(DiagnosticCode::SourceFailed, message);
                Failure::Diagnostics(vec![
                    problem.help("Read the report above; correct the sources or the lock."),
                ])
            }
            ReplaceError::Busy => {
                let message = "calls of earlier locks are still running";
                let problem = Diagnostic::error(DiagnosticCode::SourceFailed, message);
                Failure::Diagnostics(vec![problem.help("Send SIGHUP when they have ended.")])
            }
            ReplaceError::NotRunning => Failure::Internal("the broker is not running".to_owned()),
        }
    }

    async fn reload_config(&self) -> Result<ReloadSummary, Failure> {
        let settings = self.startup.settings()?;
        settings.warnings.iter().for_each(warn);
        self.startup.warn_of_mismatch();
        let mut problems = Vec::new();
        let startup = &self.startup;
        let for_surface = S::Settings::from_config(startup, &settings, &mut problems);
        let catalog = startup.catalog.get();
        startup.check_openness(catalog, &settings, for_surface.callers(), &mut problems);
        let environment = &self.startup.environment;
        let prepared = self
            .core
            .prepare(&settings.config, environment, &settings.base);
        let prepared = unless_refused(prepared, problems)?;
        // Before any source is started with these secrets.
        startup.output.mask(&prepared.redactor());
        let shown = names::collect_later(catalog, &settings.config);
        startup.output.show_names(shown);
        // Sources that changed may take long to start, and rights must end at once.
        self.surface.end_rights(&for_surface);
        let reloaded = self.core.reload(prepared).await?;
        startup.note_callers(for_surface.callers());
        self.surface.apply(for_surface);
        Ok(reloaded)
    }
}

/// Refuses `--reload` without a config file.
pub(super) fn check(cli: &Cli) -> Result<(), Failure> {
    if cli.options.reload && cli.config.is_none() {
        let message = "`--reload` watches CONFIG, which is missing: name the file after ADDR";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

impl From<ReloadError> for Failure {
    fn from(error: ReloadError) -> Self {
        match error {
            ReloadError::Refused(sources) => {
                let problems = sources.into_iter().map(|refused| {
                    let message = format!(
                        "`{}` cannot be replaced: {}: {}",
                        refused.source, refused.cause, refused.message
                    );
                    Diagnostic::error(DiagnosticCode::SourceFailed, message)
                        .help(refused.cause.remedy())
                });
                Self::Diagnostics(problems.collect())
            }
            ReloadError::NotRunning => Self::Internal(error.to_string()),
        }
    }
}
