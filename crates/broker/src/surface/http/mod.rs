//! The meta API over HTTP/1.1: one handler that makes every check in one stated order, then asks
//! core. It holds no catalog and no source, and takes no command from anybody.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode};
use broker_model::CallCode;
use broker_model::redact::Secret;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

mod ask;
mod auth;
mod authority;
mod body;
mod connections;
mod contain;
mod envelope;
#[cfg(test)]
mod errors_page;
mod fields;
mod health;
mod origin;
mod peers;
mod places;
mod reader;
mod request_id;
mod respond;
mod route;

/// What the meta-tools take is the same on every surface.
pub(super) use self::{
    ask::{Asker, Listing},
    fields::alike,
    request_id::RequestIds,
};
pub(crate) use origin::{BadEntry, Gate};

use crate::core::{Account, Core};
use auth::{Auth, Presented};
use health::View;
use respond::{Answer, Refusal};
use route::Route;

/// What the config says about this surface; a reload may say something else.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Which `Host` and `Origin` may be named.
    pub(crate) gate: Gate,
    /// `limits.body_bytes`.
    pub(crate) body_bytes: usize,
}

/// The HTTP surface. Cheap to share; one for each listener.
pub(crate) struct Surface {
    core: Core,
    policy: ArcSwap<Policy>,
    auth: Auth,
    /// Whether other machines can reach the listener.
    exposed: bool,
    digest: HeaderValue,
    ids: RequestIds,
    closing: AtomicBool,
    panics: AtomicU64,
}

impl Surface {
    /// A surface over `core` for a listener that is bound to `address`. With a secret, callers must
    /// present it.
    pub(crate) fn new(
        core: Core,
        policy: Policy,
        secret: Option<Secret>,
        address: SocketAddr,
    ) -> Arc<Self> {
        Arc::new(Self {
            digest: HeaderValue::from_static(core.catalog_digest()),
            core,
            policy: ArcSwap::from_pointee(policy),
            auth: Auth::new(secret),
            exposed: !address.ip().to_canonical().is_loopback(),
            ids: RequestIds::new(),
            closing: AtomicBool::new(false),
            panics: AtomicU64::new(0),
        })
    }

    /// What counts for requests from here on.
    pub(crate) fn set_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Serves until `stop`, then until every reply that is under way is sent.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        connections::serve(self, listener, stop).await;
    }

    /// From here on every call is refused with `shutting_down`, and connections close.
    pub(crate) fn begin_shutdown(&self) {
        self.closing.store(true, Ordering::Release);
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The checks, in the order that `docs/api.md` states: who may talk to us at all, what is asked
    /// for, who asks, what was sent; and then core.
    async fn answer(
        &self,
        parts: &Parts,
        body: &mut Option<Body>,
        request_id: &str,
        caller: &Caller,
    ) -> Result<Answer, Refusal> {
        let policy = self.policy.load_full();
        policy.gate.check(&parts.uri, &parts.headers)?;
        let route = find_route(parts)?;
        auth::check_query(parts.uri.query())?;
        if route.is_health() {
            return Ok(self.health(route, parts));
        }
        if caller.crowded {
            let refusal = Refusal::new(CallCode::Overloaded, "the broker has too many connections");
            return Err(refusal.retryable());
        }
        let identity = self.auth.identify(&parts.headers)?;
        if self.is_closing() {
            let refusal = Refusal::new(CallCode::ShuttingDown, "the broker is going down");
            return Err(refusal.retryable());
        }
        body::check_type(&parts.headers)?;
        let account = &caller.account;
        let bytes = body::read(body, policy.body_bytes, account).await?;
        let asker = Asker {
            core: &self.core,
            identity: &identity,
            request_id,
            account,
        };
        let reply = match route {
            Route::Tree => asker.list(Listing::Tree, bytes).await?,
            Route::Desc => asker.list(Listing::Desc, bytes).await?,
            Route::Call | Route::Health | Route::Ready | Route::Sources => {
                asker.call(bytes).await?
            }
        };
        Ok(Answer {
            status: StatusCode::OK,
            body: reply.body,
            etag: reply.etag,
        })
    }

    fn health(&self, route: Route, parts: &Parts) -> Answer {
        // A proxy in front of a loopback address shows these routes to strangers, too.
        let limited = self.exposed || self.auth.has_secret();
        let view = if limited && self.auth.presented(&parts.headers) != Presented::Right {
            View::StateOnly
        } else {
            View::Whole
        };
        health::answer(route, view, self.core.health(), self.is_closing())
    }

    fn panicked(&self, request_id: &str) -> Refusal {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::error!(request_id, panics, "a request panicked and was contained");
        Refusal::new(
            CallCode::Internal,
            "the broker failed; its log has the request id",
        )
    }
}

fn find_route(parts: &Parts) -> Result<Route, Refusal> {
    let path = parts.uri.path();
    let Some(route) = Route::find(path) else {
        return Err(Refusal::new(CallCode::RouteNotFound, route::ROUTES)
            .did_you_mean(fields::alike(path, &Route::paths())));
    };
    if !route.takes(&parts.method) {
        let message = format!("the route takes {}", route.allow());
        return Err(Refusal::new(CallCode::MethodNotAllowed, message).allow(route.allow()));
    }
    Ok(route)
}

/// The caller of a request.
#[derive(Clone, Debug)]
struct Caller {
    /// The caller's memory account: that of the connection on loopback, otherwise that of the peer
    /// address. Once callers have keys, the account of the key's subject takes its place.
    account: Account,
    /// Whether the connection exceeds the limit on connections.
    crowded: bool,
}

/// One request, on a connection that may be one too many. Dropped when its caller goes away, and the
/// call with it.
async fn handle(surface: Arc<Surface>, request: Request, caller: Caller) -> Response<Body> {
    let request_id = surface.ids.next();
    let (parts, body) = request.into_parts();
    let mut body = Some(body);
    let outcome =
        match contain::contain(surface.answer(&parts, &mut body, &request_id, &caller)).await {
            Ok(outcome) => outcome,
            Err(contain::Panicked) => Err(surface.panicked(&request_id)),
        };
    if let Err(refusal) = &outcome {
        tracing::debug!(request_id, code = refusal.code().as_str(), "refused");
    }
    // A body that nobody read would be taken for the next request: the connection ends with it.
    let unread = body.filter(|body| !body.is_end_stream());
    let close = unread.is_some() || caller.crowded || surface.is_closing();
    if let Some(unread) = unread {
        body::linger(unread);
    }
    respond::respond(outcome, &surface.digest, request_id, close)
}

#[cfg(test)]
mod tests;
