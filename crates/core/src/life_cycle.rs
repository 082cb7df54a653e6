//! The life of a core: its start, the configs that it takes over while it runs, and its end.

use std::path::Path;
use std::time::Duration;

use broker_config::Config;
use broker_mcp::Environment;
use broker_model::Diagnostic;

use crate::sources::fleet::STOP_TIMEOUT;
use crate::sources::setup;
use crate::{Core, PreparedConfig, ReloadError, ReloadSummary, ServedCounts};

impl Core {
    /// Limits the stop of each source to `grace` after its input is closed, and to `grace` again after
    /// SIGTERM. Applies to the sources that [`Core::start`] starts.
    pub fn shorten_stop(&self, grace: Duration) {
        self.0.generations().shorten_stop(grace);
    }

    /// Starts all sources concurrently. Must be called once, within a runtime.
    pub fn start(&self) {
        self.0.call_path().fleet.start_sources();
    }

    /// Prepares a config for [`Core::reload`] and reports all problems. The current config stays in force.
    pub fn prepare(
        &self,
        config: &Config,
        environment: &Environment,
        base: &Path,
    ) -> Result<PreparedConfig, Vec<Diagnostic>> {
        let fleet = &self.0.call_path().fleet;
        setup::prepare(
            fleet.catalog,
            config,
            environment,
            base,
            &fleet.partial,
            fleet.start_defaults,
            &fleet.shared,
        )
    }

    /// Applies a config completely or not at all. Sources whose command line, variables or bounds changed are started
    /// next to the running ones and replace them after the comparison with the lock; the others keep their process. No
    /// call is dropped. Call it after [`first_verdict`](crate::Services::first_verdict); concurrent reloads run one after
    /// the other.
    pub async fn reload(&self, prepared: PreparedConfig) -> Result<ReloadSummary, ReloadError> {
        self.0.call_path().fleet.reload(prepared).await
    }

    /// Returns the number of sources and tools that are served, once
    /// [`first_verdict`](crate::Services::first_verdict) has an outcome.
    pub fn served(&self) -> ServedCounts {
        ServedCounts::new(&self.0.call_path().fleet)
    }

    /// Stops all sources after a refused start, in which no call was sent. Calls fail with
    /// `start_refused` until [`Broker::close`](crate::Broker::close).
    pub async fn stop_after_refusal(&self) {
        self.0.call_path().fleet.stop_upstreams(STOP_TIMEOUT).await;
    }

    /// Fails the remaining calls with `shutting_down` and stops all sources concurrently, within about `time`: servers
    /// get less time to end by themselves. Idempotent.
    /// Also shortens a close that is in progress.
    pub async fn close_within(&self, time: Duration) {
        self.0.generations().stop_sources(time).await;
    }
}
