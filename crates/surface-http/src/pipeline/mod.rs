//! The checks that requests of all routes have in common, in the order of `docs/api.md`, and the form of their replies.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use axum::body::{Body, HttpBody as _};
use axum::http::request::Parts;
use broker_core::{Account, Broker, Identity, RequestId};
use broker_model::CallCode;
use broker_surface::{CaughtPanic, contain};

mod auth;
mod authority;
mod base_paths;
mod body;
mod caller_accounts;
mod client_address;
mod digest_header;
#[cfg(test)]
mod errors_page;
mod host_policy;
mod protected_resource;
mod refused_hosts;
pub(crate) mod respond;
mod settings;

use auth::check_query;
pub(crate) use auth::{API_KEY, Auth, headers_of_callers};
pub use base_paths::BasePaths;
pub(crate) use body::take;
pub(crate) use caller_accounts::CallerAccounts;
use client_address::client_address;
pub(crate) use digest_header::DigestHeader;
pub use host_policy::{BadEntry, HostPolicy};
pub use protected_resource::ProtectedResource;
pub(crate) use protected_resource::WELL_KNOWN;
pub(crate) use refused_hosts::RefusedHosts;
pub(crate) use respond::{CommonHeaders, HttpReply, JSON, Refusal, ReplyContent};
pub use settings::{CallerSettings, HttpSettings, PageSettings};

use crate::HttpSurface;
use crate::listener::Caller;

/// The use of the credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// It is not read.
    Ignored,
    /// Callers without a valid one are served too, as anonymous.
    Optional,
    /// As [`Self::Optional`], but under access rules an invalid one is refused: a client whose token has expired must
    /// learn it, so that it gets another one.
    ValidIfGiven,
    /// It is needed, unless the config serves callers without one.
    Needed,
}

/// A caller that may be served now.
pub(crate) struct Admitted {
    pub(crate) identity: Identity,
    /// The account of the identity.
    pub(crate) account: Account,
    /// The address of the client; a trusted proxy may have named it.
    pub(crate) address: IpAddr,
}

impl Admitted {
    /// Returns a caller whose requests are not charged.
    fn uncharged(caller: &Caller, identity: Identity) -> Self {
        Self {
            identity,
            account: caller.peer.anonymous_account().clone(),
            address: caller.address,
        }
    }
}

impl<B: Broker> HttpSurface<B> {
    /// Returns the caller of a request, if it may be served now.
    pub(crate) async fn admit(
        &self,
        credential: Credential,
        parts: &Parts,
        caller: &Caller,
        callers: &CallerSettings,
    ) -> Result<Admitted, Refusal> {
        if credential == Credential::Ignored {
            return Ok(Admitted::uncharged(caller, Identity::anonymous()));
        }
        check_query(parts.uri.query())?;
        if credential == Credential::Needed && caller.is_refused() {
            let refusal = Refusal::new(CallCode::Overloaded, "the broker has too many connections");
            return Err(refusal.retryable());
        }
        let headers = &parts.headers;
        let address = client_address(caller.address, headers, &callers.trusted_proxies);
        let identified = self
            .auth
            .identify(headers, address, self.broker.services(), callers);
        let identity = identified.await;
        // A request without a credential is a failure only where one is needed.
        if let Err(refusal) = &identity
            && let Some(audit) = &self.observers.audit
            && (credential == Credential::Needed || self.auth.is_given(headers))
        {
            audit.identify_failed(&address.to_string(), refusal.code().as_str());
        }
        let uncharged = |identity| Admitted::uncharged(caller, identity);
        let identity = match credential {
            Credential::Needed => identity?,
            Credential::ValidIfGiven
                if self.broker.services().has_access_rules() && self.auth.is_given(headers) =>
            {
                return identity.map(uncharged);
            }
            Credential::Ignored | Credential::Optional | Credential::ValidIfGiven => {
                let identity = identity.unwrap_or_else(|_| Identity::anonymous());
                return Ok(uncharged(identity));
            }
        };
        if self.drain.is_draining() {
            let refusal = Refusal::new(CallCode::ShuttingDown, "the broker is shutting down");
            return Err(refusal.retryable());
        }
        let account = self.accounts.find_or_add(&identity, caller, address);
        if let Some(phase) = &caller.phase
            && !phase.claim(account.owner())
        {
            let message =
                "this caller has too many connections, and few places are left for others";
            return Err(Refusal::new(CallCode::Overloaded, message).retryable());
        }
        Ok(Admitted {
            identity,
            account,
            address,
        })
    }

    /// Checks `Host` and `Origin` of a request.
    #[inline]
    pub(crate) fn check_hosts(
        &self,
        settings: &HttpSettings,
        parts: &Parts,
    ) -> Result<(), Refusal> {
        let checked = settings.hosts.check(&parts.uri, &parts.headers);
        if let Err(refusal) = &checked {
            self.refused_hosts.note(refusal, &parts.headers);
            self.count_refused(refusal);
        }
        checked
    }

    /// Counts a request that was refused before it was a call; calls are counted where they end.
    pub(crate) fn count_refused(&self, refusal: &Refusal) {
        if let Some(meter) = &self.observers.meter {
            meter.refused(refusal.code());
        }
    }

    pub(crate) fn common_headers<'a>(&'a self, settings: &'a HttpSettings) -> CommonHeaders<'a> {
        let (digest, lists_may_differ) = self.broker.services().reply_facts();
        CommonHeaders {
            digest: self.digest.render(digest),
            vary: lists_may_differ.then_some(&self.vary),
            resource: settings.callers.resource.as_ref(),
        }
    }

    /// Runs the answer to a request in place. A panic is contained: it refuses the request.
    pub(crate) async fn contain<T>(
        &self,
        request_id: RequestId,
        answer: Pin<&mut impl Future<Output = Result<T, Refusal>>>,
    ) -> Result<T, Refusal> {
        let outcome = contain(answer).await.unwrap_or_else(|CaughtPanic| {
            let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::error!(
                request_id = request_id.as_str(),
                panics,
                "a request panicked and was contained"
            );
            let message = "the broker failed; its log has the request id";
            Err(Refusal::new(CallCode::Internal, message))
        });
        if let Err(refusal) = &outcome {
            let code = refusal.code().as_str();
            tracing::debug!(request_id = request_id.as_str(), code, "refused");
        }
        outcome
    }

    /// Whether the connection is closed behind the reply. The unread rest of a body would be read as the next request.
    pub(crate) fn must_close(&self, body: Option<Body>, caller: &Caller) -> bool {
        let unread = body.filter(|body| !body.is_end_stream());
        let must_close = unread.is_some() || caller.is_refused() || self.drain.is_draining();
        if let Some(unread) = unread {
            body::linger(unread);
        }
        must_close
    }
}
