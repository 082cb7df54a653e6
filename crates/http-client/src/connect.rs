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
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service;
use url::{Position, Url};

use crate::connection::{Connection, Stream};
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
    proxy: Option<Intercept>,
}

#[derive(Clone)]
enum Route {
    /// To the server, or to a proxy that reads the requests.
    Direct(Direct),
    /// Through a proxy that sees only the connection.
    Tunnel(Box<HttpsConnector<Tunnel<Direct>>>),
}

impl Connector {
    /// Makes a connector to the origin of `url`.
    pub(crate) fn new(
        url: &Url,
        tls: ClientConfig,
        proxies: Option<&Matcher>,
    ) -> Result<Self, BoxError> {
        let origin = Uri::try_from(format!("{}/", &url[..Position::AfterPort]))?;
        let proxy = proxies.and_then(|proxies| proxies.intercept(&origin));
        let (route, destination) = match &proxy {
            Some(proxy) if origin.scheme() == Some(&Scheme::HTTPS) => {
                (Route::Tunnel(Box::new(tunnel(proxy, tls))), origin)
            }
            Some(proxy) => (Route::Direct(direct(tls)), proxy.uri().clone()),
            None => (Route::Direct(direct(tls)), origin),
        };
        Ok(Self {
            route,
            destination,
            proxy,
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
        let destination = self.destination.clone();
        match self.route.clone() {
            Route::Direct(mut direct) => {
                let connected = direct.call(destination).await;
                Ok(match connected.map_err(TransportError::connect)? {
                    MaybeHttpsStream::Http(stream) => Box::new(stream),
                    stream @ MaybeHttpsStream::Https(_) => Box::new(stream),
                })
            }
            Route::Tunnel(mut tunnel) => {
                let connected = tunnel.call(destination).await;
                Ok(Box::new(connected.map_err(TransportError::connect)?))
            }
        }
    }
}

fn direct(tls: impl Into<Arc<ClientConfig>>) -> Direct {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE_TIME));
    tcp.set_keepalive_interval(Some(KEEPALIVE_TIME));
    tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    HttpsConnector::from((tcp, tls))
}

fn tunnel(proxy: &Intercept, tls: ClientConfig) -> HttpsConnector<Tunnel<Direct>> {
    let mut to_proxy = tls.clone();
    to_proxy.alpn_protocols.clear();
    let mut tunnel = Tunnel::new(proxy.uri().clone(), direct(to_proxy));
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
