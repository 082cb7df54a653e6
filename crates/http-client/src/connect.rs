//! Connects to an origin: directly, or through a proxy of the environment.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::USER_AGENT;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;
use url::{Position, Url};

use crate::connection::{Connection, Stream};
use crate::error::ThroughProxy;
use crate::identity::{ClientIdentity, NoIdentity};
use crate::proxy::{Proxy, ProxyKind};
use crate::socks::Socks;
use crate::{AGENT, BoxError, CONNECT_TIMEOUT, TransportError};

/// After this time without traffic the kernel asks whether the peer is still there, this often at most.
const KEEPALIVE_TIME: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;
/// Maximum time for the peer to acknowledge what was sent.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

type Direct = HttpsConnector<HttpConnector>;

/// Makes connections to one origin.
pub(crate) struct Connector {
    route: Route,
    /// The origin, or the proxy that reads the requests.
    destination: Uri,
    proxy: Option<Proxy>,
    /// The certificate of the client.
    identity: Option<ClientIdentity>,
}

#[derive(Clone)]
enum Route {
    /// To the server, or to a proxy that reads the requests.
    Direct(Direct),
    /// Through a proxy that sees only the connection.
    Tunnel(Box<HttpsConnector<Tunnel<Direct>>>),
    /// Through a SOCKS5 proxy.
    Socks(Box<HttpsConnector<Socks>>),
}

impl Connector {
    /// Makes a connector to the origin of `url`.
    pub(crate) fn new(
        url: &Url,
        tls: ClientConfig,
        proxy: Option<Proxy>,
        identity: Option<ClientIdentity>,
    ) -> Result<Self, BoxError> {
        let origin = Uri::try_from(format!("{}/", &url[..Position::AfterPort]))?;
        let (route, destination) = match &proxy {
            Some(proxy) if proxy.kind != ProxyKind::Http => {
                let socks = Socks::new(proxy.clone(), tcp());
                let socks = HttpsConnector::from((socks, tls));
                (Route::Socks(Box::new(socks)), origin)
            }
            Some(proxy) if origin.scheme() == Some(&Scheme::HTTPS) => {
                (Route::Tunnel(Box::new(tunnel(proxy, tls))), origin)
            }
            Some(proxy) => (Route::Direct(direct(tls)), proxy.uri.clone()),
            None => (Route::Direct(direct(tls)), origin),
        };
        Ok(Self {
            route,
            destination,
            proxy,
            identity,
        })
    }

    /// Whether requests go to a proxy that reads them.
    pub(crate) const fn asks_proxy(&self) -> bool {
        self.proxy.is_some() && matches!(self.route, Route::Direct(_))
    }

    /// Returns the credentials for a proxy that reads the requests. Another proxy gets them with the request for a
    /// tunnel.
    pub(crate) fn proxy_authorization(&self) -> Option<HeaderValue> {
        let proxy = self.proxy.as_ref().filter(|_| self.asks_proxy())?;
        proxy.basic_auth().cloned()
    }

    /// Opens a new connection.
    pub(crate) async fn connect(&self) -> Result<Box<Connection>, TransportError> {
        let connected = async { Connection::open(self.stream().await?).await };
        match timeout(CONNECT_TIMEOUT, connected).await {
            Ok(connected) => connected,
            Err(_) => {
                let message = "operation timed out";
                let error = io::Error::new(io::ErrorKind::TimedOut, message);
                Err(TransportError::connect(error))
            }
        }
    }

    async fn stream(&self) -> Result<Box<dyn Stream>, TransportError> {
        match &self.route {
            Route::Direct(direct) if self.identity.is_none() => {
                let connected = direct.clone().call(self.destination.clone()).await;
                Ok(match connected.map_err(|error| self.failed(error))? {
                    MaybeHttpsStream::Http(stream) => Box::new(stream),
                    stream @ MaybeHttpsStream::Https(_) => Box::new(stream),
                })
            }
            Route::Direct(_) | Route::Tunnel(_) | Route::Socks(_) => {
                Box::pin(self.rare_stream()).await
            }
        }
    }

    /// Opens a stream by a rare way. Its future is not part of the future of each call.
    async fn rare_stream(&self) -> Result<Box<dyn Stream>, TransportError> {
        if let Some(identity) = &self.identity {
            identity.refresh().await;
        }
        let destination = self.destination.clone();
        let connected: Result<Box<dyn Stream>, BoxError> = match &self.route {
            Route::Direct(direct) => match direct.clone().call(destination).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(error),
            },
            Route::Tunnel(tunnel) => match tunnel.clone().call(destination).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(error),
            },
            Route::Socks(socks) => match socks.clone().call(destination).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(error),
            },
        };
        connected.map_err(|error| self.failed(error))
    }

    /// Returns the error of a connection that was not made.
    fn failed(&self, error: BoxError) -> TransportError {
        match &self.proxy {
            Some(proxy) => TransportError::connect(ThroughProxy::new(proxy.variable, error)),
            None => TransportError::connect(error),
        }
    }
}

fn direct(tls: impl Into<Arc<ClientConfig>>) -> Direct {
    HttpsConnector::from((tcp(), tls))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE_TIME));
    tcp.set_keepalive_interval(Some(KEEPALIVE_TIME));
    tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    tcp
}

fn tunnel(proxy: &Proxy, tls: ClientConfig) -> HttpsConnector<Tunnel<Direct>> {
    let mut to_proxy = tls.clone();
    to_proxy.alpn_protocols.clear();
    // The certificate of the client is for the server.
    to_proxy.client_auth_cert_resolver = Arc::new(NoIdentity);
    let mut tunnel = Tunnel::new(proxy.uri.clone(), direct(to_proxy));
    if let Some(credentials) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(credentials.clone());
    }
    tunnel = tunnel.with_headers(HeaderMap::from_iter([(USER_AGENT, AGENT.clone())]));
    HttpsConnector::from((tunnel, tls))
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
