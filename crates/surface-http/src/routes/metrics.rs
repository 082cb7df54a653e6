//! The metrics for a Prometheus server: the counters of calls, and the state of the broker at the scrape.

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use broker_core::Broker;
use broker_metrics::{Format, ScrapedState};
use broker_model::CallCode;
use broker_surface_mcp::http::McpEndpoint;

use crate::HttpSurface;
use crate::pipeline::{Admitted, HttpReply, Refusal};

impl<B: Broker> HttpSurface<B> {
    /// Answers `/metrics`. Callers who see the state of the sources see the metrics.
    /// Those of many items are rendered off the runtime's threads.
    pub(super) async fn metrics(
        &self,
        parts: &Parts,
        admitted: &Admitted,
    ) -> Result<HttpReply, Refusal> {
        let identity = &admitted.identity;
        let Some(meter) = &self.observers.meter else {
            let message = "the metrics are turned off: `telemetry.metrics` is `false`";
            return Err(Refusal::new(CallCode::RouteNotFound, message));
        };
        if self.is_limited() && !identity.is_authenticated() {
            let message = "the metrics are shown to callers with a credential only";
            return Err(Refusal::new(CallCode::Unauthorized, message));
        }
        if !self.broker.services().is_operator(identity) {
            let message = "the metrics are shown to `access.operators` only";
            return Err(Refusal::new(CallCode::Forbidden, message).for_caller(identity));
        }
        let accept = parts.headers.get(header::ACCEPT);
        let accept = accept.and_then(|value| value.to_str().ok());
        let format = Format::from_accept(accept.unwrap_or_default());
        let state = self.scraped_state();
        let text = match meter.is_long_render() {
            false => meter.render(format, state),
            true => {
                let (services, meter) = (self.broker.services(), Arc::clone(meter));
                let render = move || meter.render(format, state);
                services.shape_long(&admitted.account, render).await
            }
        };
        let text =
            text.map_err(|_| Refusal::new(CallCode::Internal, "the metrics could not be written"))?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: text.into(),
            etag: None,
            media: HeaderValue::from_static(format.content_type()),
        })
    }

    /// Returns the state for a scrape.
    pub(crate) fn scraped_state(&self) -> ScrapedState {
        ScrapedState {
            sessions: self.mcp.as_ref().map_or(0, McpEndpoint::session_count) as u64,
            streams: (self.mcp.as_ref().map_or(0, McpEndpoint::stream_count)
                + self.job_streams.count()) as u64,
            key_expiry: self.auth.next_key_expiry().and_then(unix_seconds),
            ..self.observers.scraped_state(self.broker.services())
        }
    }
}

/// Returns a time in seconds since 1970; `None` for a time before.
fn unix_seconds(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}
