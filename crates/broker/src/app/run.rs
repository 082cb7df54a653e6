//! Serves a start until its end, with the reloads of its config and its lock.

use std::sync::Arc;
use std::time::Duration;

use broker_jobs::Keeper;
use broker_model::exit::Exit;
use broker_observe::{Audit, Export};
use broker_surface::Surface;

use super::catalog_origin::CatalogOrigin;
use super::failure::Failure;
use super::lifecycle::Running;
use super::reload::Reloader;
use super::startup::{FromConfig, SignalReceivers, Startup};
use super::telemetry::export_metrics;
use crate::core::{Broker as _, Core};

/// Maximum time to write the last lines of the audit log.
const AUDIT_CLOSE_TIMEOUT: Duration = Duration::from_millis(400);
/// Maximum time to store the ends of the last jobs.
const JOBS_CLOSE_TIMEOUT: Duration = Duration::from_millis(400);
/// Maximum time to export what waits.
const EXPORT_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

impl Startup<'_> {
    /// Serves until the broker ends. At the end, calls in flight have `drain_timeout` to finish; without it, they have the time
    /// that the config gives.
    pub(super) async fn run<S: Surface<Settings: FromConfig>>(
        self,
        core: Core,
        surface: Arc<S>,
        listener: S::Listener,
        drain_timeout: Option<Duration>,
        signal_receivers: SignalReceivers,
    ) -> Result<Exit, Failure> {
        let output = self.output;
        let served_config = match self.origin {
            CatalogOrigin::Compiled => None,
            CatalogOrigin::Lock => self.cli.config.as_deref(),
        };
        let observers = self.observers.get().cloned().unwrap_or_default();
        let jobs = self.jobs.get().cloned();
        let of_surface = Arc::downgrade(&surface);
        export_metrics(&observers, core.services(), move || {
            of_surface.upgrade()?.scraped_state()
        });
        let reloader = Reloader::new(self, core.clone(), Arc::clone(&surface));
        let running = Running::start(core, surface, listener, drain_timeout);
        let reloads = reloader.run(signal_receivers.reload_signals);
        let outcome = running
            .until_end(signal_receivers.signals, reloads, served_config, output)
            .await;
        if let Some(jobs) = jobs {
            close_jobs(&jobs).await;
        }
        if let Some(audit) = observers.audit {
            close_audit(audit).await;
        }
        // After the audit log, whose last lines are exported too.
        if let Some(export) = observers.export {
            close_export(export).await;
        }
        outcome
    }
}

/// Stores the ends of the last jobs. The audit log is closed later, since it has lines about these calls.
async fn close_jobs(keeper: &Keeper) {
    if tokio::time::timeout(JOBS_CLOSE_TIMEOUT, keeper.close())
        .await
        .is_err()
    {
        tracing::error!(
            "the ends of the last jobs were not stored in time; the next start ends them"
        );
    }
}

/// Exports what waits.
async fn close_export(export: Arc<dyn Export>) {
    let closed = tokio::task::spawn_blocking(move || export.close());
    if tokio::time::timeout(EXPORT_CLOSE_TIMEOUT, closed)
        .await
        .is_err()
    {
        tracing::warn!("the last spans and metrics were not exported in time");
    }
}

/// Writes the last lines of the audit log.
async fn close_audit(audit: Arc<Audit>) {
    let closed = tokio::task::spawn_blocking(move || audit.close());
    if tokio::time::timeout(AUDIT_CLOSE_TIMEOUT, closed)
        .await
        .is_err()
    {
        tracing::error!("the last lines of the audit log were not written in time");
    }
}
