//! Serves a start until its end, with the reloads of its config and its lock.

use std::sync::Arc;
use std::time::Duration;

use broker_model::exit::Exit;
use broker_observe::Audit;
use broker_surface::Surface;

use super::catalog_origin::CatalogOrigin;
use super::failure::Failure;
use super::lifecycle::Running;
use super::reload::Reloader;
use super::startup::{FromConfig, SignalReceivers, Startup};
use crate::core::Core;

/// Maximum time to write the last lines of the audit log.
const AUDIT_CLOSE_TIMEOUT: Duration = Duration::from_millis(400);

impl Startup<'_> {
    /// Serves until the end of the broker. Calls in flight get `drain_timeout` to end.
    pub(super) async fn run<S: Surface<Settings: FromConfig>>(
        self,
        core: Core,
        surface: Arc<S>,
        listener: S::Listener,
        drain_timeout: Duration,
        signal_receivers: SignalReceivers,
    ) -> Result<Exit, Failure> {
        let output = self.output;
        let served_config = match self.origin {
            CatalogOrigin::Compiled => None,
            CatalogOrigin::Lock => self.cli.config.as_deref(),
        };
        let audit = self.observers.get().and_then(|all| all.audit.clone());
        let reloader = Reloader::new(self, core.clone(), Arc::clone(&surface));
        let running = Running::start(core, surface, listener, drain_timeout);
        let reloads = reloader.run(signal_receivers.reload_signals);
        let outcome = running
            .until_end(signal_receivers.signals, reloads, served_config, output)
            .await;
        if let Some(audit) = audit {
            close_audit(audit).await;
        }
        outcome
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
