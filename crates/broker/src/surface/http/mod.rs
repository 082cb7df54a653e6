//! The meta API over HTTP/1.1: makes all checks in the documented order, then calls core.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use broker_model::CallCode;
use broker_model::redact::Secret;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

mod auth;
mod authority;
mod body;
mod caller_accounts;
mod client_address;
mod connection_limits;
mod connection_shares;
mod connections;
mod digest_header;
#[cfg(test)]
mod errors_page;
mod health;
mod host_policy;
mod mcp;
mod peers;
mod resource_metadata;
mod respond;
mod routes;
mod websocket;
mod write_timeout;

pub(crate) use connection_limits::WANTED_FILES;
pub(crate) use host_policy::{BadEntry, HostPolicy};
pub(crate) use resource_metadata::ProtectedResource;

use super::mcp::http::McpEndpoint;
use super::meta::{self, BodyForm, MetaCaller, ReplyRoom, similar_names};
use super::request_id::RequestIds;
use super::stream_state::StreamState;
use super::{CallerSettings, Surface, SurfaceSettings};
use crate::contain::{CaughtPanic, contain};
use crate::core::{Account, Broker, Drain, Identity, RequestId};
use auth::Auth;
use caller_accounts::CallerAccounts;
use client_address::client_address;
use connection_limits::Phase;
use digest_header::DigestHeader;
use health::{DetailLevel, HealthRoute};
use peers::{Peer, Peers};
use respond::{CommonHeaders, HttpReply, Refusal};
use routes::{MetaTool, Route, Routes};

/// The access of callers over HTTP.
#[derive(Debug, Default)]
pub(crate) struct HttpAccess {
    /// The secret that callers must send, if there is one.
    pub(crate) secret: Option<Secret>,
    /// A header for the secret, in addition to `Authorization` and `X-API-Key`.
    pub(crate) key_header: Option<HeaderName>,
    /// Whether MCP clients are served.
    pub(crate) mcp: bool,
}

/// The HTTP surface; one for each listener.
pub(crate) struct HttpSurface<B> {
    broker: B,
    settings: ArcSwap<SurfaceSettings>,
    auth: Auth,
    accounts: CallerAccounts,
    /// Whether other machines can reach the listener.
    exposed: bool,
    routes: Routes,
    /// `None` if it is turned off.
    mcp: Option<McpEndpoint<B>>,
    digest: DigestHeader,
    /// The names of the headers that identify callers.
    vary: HeaderValue,
    ids: RequestIds,
    drain: Drain,
    panics: AtomicU64,
}

impl<B: Broker> HttpSurface<B> {
    /// A surface over `core` for a listener that is bound to `address`. If there is a secret, callers
    /// must send it.
    pub(crate) fn new(
        broker: B,
        settings: SurfaceSettings,
        access: HttpAccess,
        address: SocketAddr,
    ) -> Self {
        let HttpAccess {
            secret,
            key_header,
            mcp,
        } = access;
        Self {
            digest: DigestHeader::new(broker.services().catalog_digest()),
            vary: auth::headers_of_callers(key_header.as_ref()),
            drain: broker.services().drain().clone(),
            accounts: CallerAccounts::new(broker.services().memory().clone()),
            mcp: mcp.then(|| McpEndpoint::new(broker.clone())),
            broker,
            auth: Auth::new(secret, key_header, &settings.callers),
            exposed: !address.ip().to_canonical().is_loopback(),
            settings: ArcSwap::from_pointee(settings),
            routes: Routes::new(mcp),
            ids: RequestIds::new(),
            panics: AtomicU64::new(0),
        }
    }

    /// Serves one connection without a listener.
    #[cfg(feature = "scripted")]
    pub(crate) async fn serve_stream(
        self: Arc<Self>,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    ) {
        connections::serve_stream(self, stream).await;
    }

    /// Makes the checks in the order of `docs/api.md`: host and origin, route, caller, body; then calls
    /// core.
    async fn answer(
        &self,
        route: Route,
        parts: &Parts,
        body: &mut Option<Body>,
        request_id: RequestId,
        caller: &Caller,
    ) -> Result<HttpReply, Refusal> {
        let settings = self.settings.load_full();
        settings.hosts.check(&parts.uri, &parts.headers)?;
        let tool = match route {
            Route::Meta(tool) => tool,
            Route::Health(report) => {
                auth::check_query(parts.uri.query())?;
                return self.health(report, parts, caller, &settings.callers).await;
            }
            Route::ResourceMetadata => {
                let resource = settings.callers.resource.as_ref();
                let document = resource.ok_or_else(|| {
                    let message = "the broker has no `public_url`, so that it is not the resource of an issuer of tokens";
                    Refusal::new(CallCode::RouteNotFound, message)
                })?;
                return Ok(HttpReply {
                    status: StatusCode::OK,
                    body: document.document().to_owned().into(),
                    etag: None,
                });
            }
            Route::WrongMethod(allow) => {
                let message = format!("the route allows {allow}");
                return Err(Refusal::new(CallCode::MethodNotAllowed, message).allow(allow));
            }
            // An MCP request has its own reply.
            Route::Unknown | Route::Mcp(_) | Route::WebSocket(_) | Route::Sse(_) => {
                let close = similar_names(parts.uri.path(), routes::paths(self.mcp.is_some()));
                let refusal = Refusal::new(CallCode::RouteNotFound, routes::MESSAGE);
                return Err(refusal.did_you_mean(close));
            }
        };
        let Admitted {
            identity, account, ..
        } = self.admit(parts, caller, &settings.callers).await?;
        let account = &account;
        body::check_type(&parts.headers)?;
        let bytes = body::read(body, settings.body_bytes, account).await?;
        let asker = MetaCaller {
            only: None,
            broker: &self.broker,
            identity: &identity,
            request_id,
            account,
            reply: ReplyRoom::default(),
            form: BodyForm::Http,
            meta: None,
            events: None,
        };
        let reply = match tool {
            MetaTool::List(listing) => match asker.list(listing, bytes).await {
                Ok(listed) => {
                    let reply = listed.into_reply(self.broker.services(), &identity);
                    meta::charged(reply, account)
                }
                Err(error) => Err(error),
            },
            MetaTool::Call => match asker.call(bytes).await {
                Ok(outcome) => meta::reply(&outcome, account),
                Err(error) => Err(error),
            },
        };
        let reply = reply.map_err(|error| Refusal::from(error).of(&identity))?;
        Ok(HttpReply {
            status: StatusCode::OK,
            body: reply.body,
            etag: reply.etag,
        })
    }

    /// The peers of a listener of the surface.
    fn peers(&self) -> Peers {
        let has_credentials = self.auth.is_required() || self.broker.services().has_access_rules();
        Peers::new(self.broker.services().memory().clone(), has_credentials)
    }

    /// The identity of the caller of a request that needs one, if it may be served now.
    async fn admit(
        &self,
        parts: &Parts,
        caller: &Caller,
        callers: &CallerSettings,
    ) -> Result<Admitted, Refusal> {
        auth::check_query(parts.uri.query())?;
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

    async fn health(
        &self,
        report: HealthRoute,
        parts: &Parts,
        caller: &Caller,
        callers: &CallerSettings,
    ) -> Result<HttpReply, Refusal> {
        let headers = &parts.headers;
        let address = client_address(caller.address, headers, &callers.trusted_proxies);
        let identified = self
            .auth
            .identify(headers, address, self.broker.services(), callers);
        let identity = match identified.await {
            // A client whose token has expired must learn it, so that it gets another one.
            Err(refusal)
                if report == HealthRoute::Sources
                    && self.broker.services().has_access_rules()
                    && self.auth.is_given(headers) =>
            {
                return Err(refusal);
            }
            identified => identified.unwrap_or_else(|_| Identity::anonymous()),
        };
        let is_operator = self.broker.services().is_operator(&identity);
        // A proxy in front of a loopback address makes these routes public.
        let limited =
            self.exposed || self.auth.is_required() || self.broker.services().has_access_rules();
        let view = match report {
            _ if limited && !identity.is_authenticated() => DetailLevel::StateOnly,
            HealthRoute::Ready if !is_operator => DetailLevel::StateOnly,
            _ => DetailLevel::Full,
        };
        if report == HealthRoute::Sources && !is_operator {
            let message = "the state of the sources is shown to `access.operators` only";
            return Err(Refusal::new(CallCode::Forbidden, message).of(&identity));
        }
        let sessions = self.mcp.as_ref().map(McpEndpoint::session_count);
        let draining = self.drain.is_draining();
        Ok(health::answer(
            report,
            view,
            self.broker.services().health(),
            draining,
            sessions,
        ))
    }

    fn common_headers<'a>(&'a self, settings: &'a SurfaceSettings) -> CommonHeaders<'a> {
        let (digest, lists_may_differ) = self.broker.services().reply_facts();
        CommonHeaders {
            digest: self.digest.of(digest),
            vary: lists_may_differ.then_some(&self.vary),
            resource: settings.callers.resource.as_ref(),
        }
    }

    fn panicked(&self, request_id: RequestId) -> Refusal {
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

impl<B: Broker> Surface for HttpSurface<B> {
    const NAME: &'static str = "the listener";

    type Listener = TcpListener;

    fn end_rights(&self, callers: &CallerSettings) {
        self.auth.apply(callers);
    }

    fn apply(&self, settings: SurfaceSettings) {
        self.auth.apply(&settings.callers);
        self.settings.store(Arc::new(settings));
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        let surface = Arc::clone(&self);
        let sweep = async {
            if let Some(mcp) = &surface.mcp {
                mcp.keep_swept(|| surface.settings.load().mcp.session_idle)
                    .await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = connections::serve(self, listener) => {}
            () = sweep => {}
            () = surface.broker.services().keep_heap_trimmed() => {}
        }
        Ok(())
    }
}

/// The caller of a request.
#[derive(Clone, Debug)]
struct Caller {
    /// The connection on loopback, otherwise the peer's address.
    peer: Arc<Peer>,
    /// The phase of the connection.
    phase: Option<Arc<Phase>>,
    /// The address of the peer.
    address: IpAddr,
    /// The task that serves the connection once it is upgraded to another protocol.
    upgrades: TaskTracker,
}

impl Caller {
    /// A caller on a connection that is not over the limit.
    fn new(peer: Arc<Peer>, address: IpAddr) -> Self {
        Self {
            peer,
            phase: None,
            address,
            upgrades: TaskTracker::new(),
        }
    }

    /// Whether the connection is over a limit, so that it is closed behind the reply.
    fn is_refused(&self) -> bool {
        self.phase.as_ref().is_some_and(|phase| phase.is_refused())
    }

    /// The state of the stream that the connection may become.
    fn stream(&self) -> Option<Arc<StreamState>> {
        Some(Arc::clone(self.phase.as_ref()?.stream()))
    }
}

/// A caller that may be served now.
struct Admitted {
    identity: Identity,
    /// The account of the identity.
    account: Account,
    /// The address of the client; a trusted proxy may have named it.
    address: IpAddr,
}

/// Handles one request, on a connection that may be over the limit. Dropped, with its call, when the
/// caller disconnects.
async fn handle(
    surface: Arc<HttpSurface<impl Broker>>,
    request: Request,
    caller: Caller,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let route = surface.routes.find(&parts).await;
    if let Route::Mcp(_) | Route::WebSocket(_) | Route::Sse(_) = route {
        let request = Request::from_parts(parts, body);
        // Boxed, so that the other routes have no room for it.
        return Box::pin(mcp::handle(&surface, route, request, &caller)).await;
    }
    let request_id = surface.ids.next();
    let mut body = Some(body);
    let outcome = {
        let answer = surface.answer(route, &parts, &mut body, request_id, &caller);
        match contain(pin!(answer)).await {
            Ok(outcome) => outcome,
            Err(CaughtPanic) => Err(surface.panicked(request_id)),
        }
    };
    if let Err(refusal) = &outcome {
        tracing::debug!(
            request_id = request_id.as_str(),
            code = refusal.code().as_str(),
            "refused"
        );
    }
    // The unread rest of a body would be read as the next request, so the connection is closed.
    let unread = body.filter(|body| !body.is_end_stream());
    let close = unread.is_some() || caller.is_refused() || surface.drain.is_draining();
    if let Some(unread) = unread {
        body::linger(unread);
    }
    let settings = surface.settings.load();
    let common = surface.common_headers(&settings);
    respond::respond(outcome, &common, request_id, close)
}

#[cfg(test)]
mod tests;
