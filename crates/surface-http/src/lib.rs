//! The surface over HTTP/1.1: the meta API and MCP on one listener. `listener` accepts connections and limits them,
//! `pipeline` has the checks of a request and the form of its reply, `routes` what a request asks for. The messages of
//! MCP clients are in `broker-surface-mcp`.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use axum::http::{HeaderName, HeaderValue};
use broker_core::{Broker, Drain, Identity};
use broker_metrics::ScrapedState;
use broker_model::redact::Secret;
use broker_observe::Observers;
use broker_surface::{RequestIds, Surface};
use broker_surface_mcp::http::McpEndpoint;
use tokio::net::TcpListener;

mod listener;
mod listener_role;
mod pipeline;
mod routes;

pub use listener::WANTED_FILES;
pub use pipeline::{
    BadEntry, BasePaths, CallerSettings, HostPolicy, HttpSettings, PageSettings, ProtectedResource,
};

use listener::Peers;
use listener_role::ListenerRole;
use pipeline::{Auth, CallerAccounts, DigestHeader, RefusedHosts, headers_of_callers};
use routes::jobs::OpenStreams;

/// The access of callers over HTTP.
#[derive(Debug, Default)]
pub struct HttpAccess {
    /// The secret that callers must send, if there is one.
    pub secret: Option<Secret>,
    /// A header for the secret, in addition to `Authorization` and `X-API-Key`.
    pub key_header: Option<HeaderName>,
    /// Whether MCP clients are served.
    pub mcp: bool,
    /// The observers whose state the surface shows.
    pub observers: Observers,
}

/// The HTTP surface; one for each listener.
pub struct HttpSurface<B> {
    broker: B,
    settings: ArcSwap<HttpSettings>,
    auth: Auth,
    accounts: CallerAccounts,
    /// Whether other machines can reach the listener.
    exposed: bool,
    /// `None` if it is turned off.
    mcp: Option<McpEndpoint<B>>,
    digest: DigestHeader,
    /// The names of the headers that identify callers.
    vary: HeaderValue,
    ids: RequestIds,
    drain: Drain,
    panics: AtomicU64,
    observers: Observers,
    refused_hosts: RefusedHosts,
    job_streams: Arc<OpenStreams>,
}

impl<B> fmt::Debug for HttpSurface<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSurface").finish_non_exhaustive()
    }
}

impl<B: Broker> HttpSurface<B> {
    /// A surface over `core` for a listener that is bound to `address`. If there is a secret, callers
    /// must send it.
    pub fn new(broker: B, settings: HttpSettings, access: HttpAccess, address: SocketAddr) -> Self {
        let HttpAccess {
            secret,
            key_header,
            mcp,
            observers,
        } = access;
        Self {
            digest: DigestHeader::new(broker.services().catalog_digest()),
            vary: headers_of_callers(key_header.as_ref()),
            drain: broker.services().drain().clone(),
            accounts: CallerAccounts::new(broker.services().memory().clone()),
            mcp: mcp.then(|| McpEndpoint::new(broker.clone())),
            broker,
            auth: Auth::new(secret, key_header, &settings.callers),
            exposed: !address.ip().to_canonical().is_loopback(),
            settings: ArcSwap::from_pointee(settings),
            ids: RequestIds::random(),
            panics: AtomicU64::new(0),
            observers,
            refused_hosts: RefusedHosts::default(),
            job_streams: Arc::default(),
        }
    }

    /// Returns the identity of the API key in force with this name.
    pub fn key_identity(&self, name: &str) -> Option<Identity> {
        let settings = self.settings.load();
        self.auth.key_identity(name, &settings.callers)
    }

    /// Serves one connection without a listener.
    pub async fn serve_stream(
        self: Arc<Self>,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    ) {
        listener::serve_stream(self, stream).await;
    }

    /// Serves a second listener, which has the route `/metrics` only, until the drain is finished.
    pub async fn serve_metrics(self: Arc<Self>, listener: TcpListener) {
        listener::serve(self, listener, ListenerRole::Metrics).await;
    }

    /// The peers of a listener of the surface.
    fn peers(&self) -> Peers {
        let has_credentials = self.auth.is_required() || self.broker.services().has_access_rules();
        Peers::new(self.broker.services().memory().clone(), has_credentials)
    }
}

impl<B: Broker> Surface for HttpSurface<B> {
    const NAME: &'static str = "the listener";

    type Listener = TcpListener;
    type Settings = HttpSettings;

    fn end_rights(&self, settings: &HttpSettings) {
        if let Some(audit) = &self.observers.audit {
            let before = self.settings.load();
            let changes = before
                .callers
                .identities
                .changes_to(&settings.callers.identities);
            if !changes.is_empty() {
                audit.keys_changed(changes.added, changes.removed);
            }
        }
        self.auth.apply(&settings.callers);
    }

    fn apply(&self, settings: HttpSettings) {
        self.auth.apply(&settings.callers);
        self.settings.store(Arc::new(settings));
    }

    fn scraped_state(&self) -> Option<ScrapedState> {
        Some(self.scraped_state())
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
            () = listener::serve(self, listener, ListenerRole::Broker) => {}
            () = sweep => {}
            () = surface.broker.services().keep_heap_trimmed() => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
