//! The end of a link whose credentials the server refused, and the reason for callers.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::text::shown_line;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Challenge;
use crate::failure::SourceFailure;
use crate::http::LinkState;
use crate::http::client::Client;

/// Maximum bytes of the document that names the authorization servers, and the maximum time to get it.
const MAX_METADATA_BYTES: usize = 64 << 10;
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum characters of the name of an authorization server.
const MAX_ISSUER_CHARS: usize = 200;

#[derive(Deserialize)]
struct ResourceMetadata<'a> {
    #[serde(borrow, default)]
    authorization_servers: Vec<&'a RawValue>,
}

impl Client {
    /// Returns the failure of a link whose credentials the server refused. Asks the server for its issuer.
    pub(in crate::http) async fn refusal(
        &self,
        status: StatusCode,
        challenge: &Challenge,
    ) -> SourceFailure {
        let issuer = timeout(METADATA_TIMEOUT, self.issuer(challenge)).await;
        self.refusal_by(status, challenge, issuer.ok().flatten())
    }

    /// Returns the same failure without a request to the server.
    pub(in crate::http) fn refusal_by(
        &self,
        status: StatusCode,
        challenge: &Challenge,
        issuer: Option<String>,
    ) -> SourceFailure {
        let issuer = issuer.map(|issuer| format!("names the authorization server `{issuer}`"));
        let asks = challenge.shown(&self.redactor());
        let asks = asks.map(|shown| format!("asks for `{shown}`"));
        let said: Vec<_> = asks.into_iter().chain(issuer).collect();
        let status = status.as_u16();
        let message = format!("the server refused the credentials (HTTP status {status})");
        SourceFailure {
            said: (!said.is_empty()).then(|| format!("it {}", said.join(" and ")).into()),
            http_status: NonZeroU16::new(status),
            ..SourceFailure::new(SourceCause::NeedsAuth, message)
        }
    }

    /// Returns the authorization server that the server names, redacted and printable.
    async fn issuer(&self, challenge: &Challenge) -> Option<String> {
        let url = challenge.metadata_url(self.url())?;
        let document = self.public_document(url, MAX_METADATA_BYTES).await?;
        let metadata: ResourceMetadata<'_> = serde_json::from_slice(&document).ok()?;
        let first = metadata.authorization_servers.first()?;
        let issuer: String = serde_json::from_str(first.get()).ok()?;
        let shown = shown_line(&self.redactor().redact(&issuer), MAX_ISSUER_CHARS);
        (!shown.is_empty()).then_some(shown)
    }
}

impl LinkState {
    /// Ends the link because the server refused the credentials, and waits for the end. Only the first refusal asks
    /// the server for its issuer, and a request that is cancelled meanwhile does not stop that.
    pub(in crate::http) async fn credentials_refused(
        self: &Arc<Self>,
        status: StatusCode,
        challenge: Challenge,
    ) {
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            let state = self.clone();
            self.tasks.spawn(async move {
                let refusal = state.client.refusal(status, &challenge);
                if let Some(failure) = state.ended.run_until_cancelled(refusal).await {
                    state.finish(failure);
                }
            });
        }
        self.ended.cancelled().await;
    }
}
