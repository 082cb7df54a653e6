//! The listener of `telemetry.metrics_bind`, which has the route `/metrics` only.

use std::net::SocketAddr;
use std::sync::Arc;

use broker_surface_http::HttpSurface;
use tokio::net::TcpListener;

use super::failure::Failure;
use super::listen;
use super::settings::LoadedConfig;
use crate::core::Broker;

/// The address of the listener.
pub(super) struct MetricsAddress {
    /// As the config names it.
    text: String,
    /// The addresses of this machine that it names.
    pub(super) addresses: Vec<SocketAddr>,
}

impl MetricsAddress {
    /// Resolves the address of a config; `None` without one, and without metrics.
    pub(super) async fn resolve(settings: &LoadedConfig) -> Result<Option<Self>, Failure> {
        let telemetry = &settings.config.telemetry;
        let Some(text) = telemetry.metrics_bind.clone().filter(|_| telemetry.metrics) else {
            return Ok(None);
        };
        let addresses = listen::resolve(&text, &[]).await?;
        Ok(Some(Self { text, addresses }))
    }

    /// Opens the listener.
    pub(super) async fn bind(&self) -> Result<TcpListener, Failure> {
        let listener = listen::bind(&self.text, &self.addresses).await?;
        let local = listener.local_addr();
        let local = local.map_err(|error| Failure::bind(&self.text, &error))?;
        tracing::info!("metrics on http://{local}/metrics");
        Ok(listener)
    }

    /// Returns the address as the config names it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Serves the metrics beside the surface of the broker, until the drain is finished.
pub(super) fn serve<B: Broker>(surface: &Arc<HttpSurface<B>>, listener: Option<TcpListener>) {
    if let Some(listener) = listener {
        tokio::spawn(Arc::clone(surface).serve_metrics(listener));
    }
}
