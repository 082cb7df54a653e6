//! The checks that requests of all routes have in common, in the order of `docs/api.md`, and the form of their replies.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use axum::http::request::Parts;
use broker_core::{Account, Broker, Identity, RequestId};
use broker_model::CallCode;

mod auth;
mod authority;
pub(crate) mod body;
mod caller_accounts;
mod client_address;
mod digest_header;
#[cfg(test)]
mod errors_page;
mod host_policy;
mod protected_resource;
pub(crate) mod respond;
mod settings;

pub(crate) use auth::{API_KEY, Auth, check_query, headers_of_callers};
pub(crate) use caller_accounts::CallerAccounts;
pub(crate) use client_address::client_address;
pub(crate) use digest_header::DigestHeader;
pub use host_policy::{BadEntry, HostPolicy};
pub use protected_resource::ProtectedResource;
pub(crate) use respond::{CommonHeaders, HttpReply, Refusal};
pub use settings::{CallerSettings, HttpSettings};

use crate::HttpSurface;
use crate::listener::Caller;

/// A caller that may be served now.
pub(crate) struct Admitted {
    pub(crate) identity: Identity,
    /// The account of the identity.
    pub(crate) account: Account,
    /// The address of the client; a trusted proxy may have named it.
    pub(crate) address: IpAddr,
}

impl<B: Broker> HttpSurface<B> {
    /// The identity of the caller of a request that needs one, if it may be served now.
    pub(crate) async fn admit(
        &self,
        parts: &Parts,
        caller: &Caller,
        callers: &CallerSettings,
    ) -> Result<Admitted, Refusal> {
        check_query(parts.uri.query())?;
        if caller.is_refused() {
            let refusal = Refusal::new(CallCode::Overloaded, "the broker has too many connections");
            return Err(refusal.retryable());
        }
        let headers = &parts.headers;
        let address = client_address(caller.address, headers, &callers.trusted_proxies);
        let identified = self
            .auth
            .identify(headers, address, self.broker.services(), callers);
        let identity = identified.await?;
        if self.drain.is_draining() {
            let refusal = Refusal::new(CallCode::ShuttingDown, "the broker is shutting down");
            return Err(refusal.retryable());
        }
        let account = self.accounts.of(&identity, caller, address);
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

    pub(crate) fn common_headers<'a>(&'a self, settings: &'a HttpSettings) -> CommonHeaders<'a> {
        let (digest, lists_may_differ) = self.broker.services().reply_facts();
        CommonHeaders {
            digest: self.digest.of(digest),
            vary: lists_may_differ.then_some(&self.vary),
            resource: settings.callers.resource.as_ref(),
        }
    }

    pub(crate) fn panicked(&self, request_id: RequestId) -> Refusal {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::error!(
            request_id = request_id.as_str(),
            panics,
            "a request panicked and was contained"
        );
        Refusal::new(
            CallCode::Internal,
            "the broker failed; its log has the request id",
        )
    }
}
