//! Reloads the config while the broker runs: on SIGHUP, and with `--reload` whenever the file changes.
//! A config that cannot be applied is reported as at a start, and changes nothing.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use broker_model::config::MAX_BYTES;
use broker_model::{Diagnostic, DiagnosticCode};

use super::failure::{Failure, unless_refused};
use super::startup::Startup;
use super::warn;
use crate::cli::Cli;
use crate::core::{Core, ReloadError, ReloadSummary};
use crate::surface::Surface;
use broker_process::guard::ReloadSignals;

/// The interval of checks of a watched file. It counts as changed when two checks found the same new
/// content.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Reloads one broker's config.
pub(super) struct Reloader<'a, S> {
    startup: Startup<'a>,
    core: Core,
    surface: Arc<S>,
}

impl<'a, S: Surface> Reloader<'a, S> {
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
        let mut watch = watched.map(Watch::new);
        if self.core.first_verdict().await.refuse.is_some() {
            return std::future::pending().await;
        }
        loop {
            tokio::select! {
                () = reload_signals.next() => {}
                () = changed(&mut watch) => {}
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
        if !self.reads_a_file() {
            tracing::warn!(
                "nothing to reload: the broker runs with the config that was compiled in"
            );
            return;
        }
        match self.try_reload().await {
            Ok(ReloadSummary { replaced }) if replaced.is_empty() => {
                tracing::info!("reloaded; every source keeps its process");
            }
            Ok(ReloadSummary { replaced }) => {
                tracing::info!(replaced = replaced.join(" "), "reloaded");
            }
            Err(failure) => {
                failure.report(self.startup.output);
                tracing::error!("not reloaded; the broker keeps its previous config");
            }
        }
    }

    async fn try_reload(&self) -> Result<ReloadSummary, Failure> {
        let settings = self.startup.settings()?;
        settings.warnings.iter().for_each(warn);
        let mut problems = Vec::new();
        let for_surface = self.startup.for_surface(&settings, &mut problems);
        let environment = &self.startup.environment;
        let prepared = self
            .core
            .prepare(&settings.config, environment, &settings.base);
        let prepared = unless_refused(prepared, problems)?;
        // Before any source is started with these secrets.
        self.startup.output.mask(&prepared.redactor());
        // Sources that changed may take long to start, and rights must end at once.
        self.surface.end_rights(&for_surface.callers);
        let reloaded = self.core.reload(prepared).await?;
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

/// A file, and its content when it was last applied.
#[derive(Debug)]
struct Watch {
    file: PathBuf,
    known: Option<Vec<u8>>,
    /// The different content that the last check found.
    other: Option<Vec<u8>>,
}

impl Watch {
    fn new(file: &Path) -> Self {
        Self {
            known: broker_files::read(file, MAX_BYTES).ok(),
            file: file.to_owned(),
            other: None,
        }
    }

    /// Checks the file once. Returns whether its content is new and complete. A file that cannot be
    /// read or is too large counts as being replaced.
    fn look(&mut self) -> bool {
        let Ok(now) = broker_files::read(&self.file, MAX_BYTES) else {
            return false;
        };
        if self.known.as_ref() == Some(&now) {
            self.other = None;
            return false;
        }
        if self.other.as_ref() == Some(&now) {
            self.known = self.other.take();
            return true;
        }
        self.other = Some(now);
        false
    }
}

/// Waits until a watched file changed.
async fn changed(watch: &mut Option<Watch>) {
    let Some(watch) = watch else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        if watch.look() {
            return;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_watch_reports_a_complete_change_once() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("c.json");
        std::fs::write(&file, "1").unwrap();
        let mut watch = Watch::new(&file);
        assert!(!watch.look() && !watch.look(), "as it was");
        std::fs::write(&file, "2").unwrap();
        assert!(!watch.look(), "it may still be written to");
        std::fs::write(&file, "22").unwrap();
        assert!(!watch.look(), "it was");
        assert!(watch.look());
        assert!(!watch.look(), "reported once");
        std::fs::remove_file(&file).unwrap();
        assert!(!watch.look() && !watch.look(), "not there for a moment");
        std::fs::write(&file, "22").unwrap();
        assert!(!watch.look() && !watch.look(), "back as it was");
    }
}
