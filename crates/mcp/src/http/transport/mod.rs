//! The HTTP client: requests of HTTP/1.1 to one origin, over connections that are used again.
//!
//! A call is one task. A client that drives its connections in separate tasks wakes two tasks for each request,
//! often on another core; here the task of the request drives the connection, until the answer has been read.

mod connect;
mod connection;
mod pool;
mod response;
#[cfg(test)]
mod tests;
mod tls;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use url::{Position, Url};

use connect::Connector;
use pool::Pool;

pub(in crate::http) use response::Response;
pub(in crate::http) use tls::{certificates, config as tls_config};

/// Maximum time to connect, with the handshake of TLS.
pub(in crate::http) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of headers in an answer.
const MAX_HEADERS: usize = 128;
/// Headers that the client adds to a request.
const OWN_HEADERS: usize = 5;
/// The name of the broker in requests.
static AGENT: HeaderValue =
    HeaderValue::from_static(concat!("mcp-broker/", env!("CARGO_PKG_VERSION")));
static ANY_MEDIA: HeaderValue = HeaderValue::from_static("*/*");
static GZIP: HeaderValue = HeaderValue::from_static("gzip");

type BoxError = Box<dyn Error + Send + Sync>;

/// Sends requests to one origin. Sends nothing twice, and follows no redirect.
#[derive(Debug)]
pub(in crate::http) struct HttpTransport {
    connector: Connector,
    pool: Arc<Pool>,
    host: HeaderValue,
    /// The credentials for a proxy that reads the requests.
    proxy_authorization: Option<HeaderValue>,
}

/// A URL, and how a request names it.
#[derive(Clone, Debug)]
pub(in crate::http) struct Target {
    pub(in crate::http) url: Url,
    in_request: Uri,
}

/// Why a request has no answer, or why its body broke off.
#[derive(Debug)]
pub(in crate::http) struct TransportError {
    /// Whether no connection was made, so that nothing was sent.
    pub(in crate::http) is_connect: bool,
    source: BoxError,
}

impl HttpTransport {
    /// A client for the origin of `url`, which uses the first of these proxies that is for this origin.
    pub(in crate::http) fn new(
        url: &Url,
        tls: ClientConfig,
        proxies: Option<&Matcher>,
    ) -> Result<Self, BoxError> {
        let connector = Connector::new(url, tls, proxies)?;
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort])?;
        Ok(Self {
            proxy_authorization: connector.proxy_authorization(),
            connector,
            pool: Arc::default(),
            host,
        })
    }

    /// A URL of the origin as the target of requests.
    pub(in crate::http) fn target(&self, url: Url) -> Result<Target, InvalidUri> {
        let from = match self.connector.asks_proxy() {
            true => Position::BeforeScheme,
            false => Position::BeforePath,
        };
        let in_request = Uri::try_from(&url[from..Position::AfterQuery])?;
        Ok(Target { url, in_request })
    }

    /// Sends a request and waits for the head of its answer. Dropping the future closes the connection.
    pub(in crate::http) async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, TransportError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.in_request.clone();
        *request.headers_mut() = self.with_own(headers);
        loop {
            let (connection, is_reused) = match self.pool.take() {
                Some(connection) => (connection, true),
                None => (self.connector.connect().await?, false),
            };
            match connection.send(request).await {
                Ok((answer, connection)) => {
                    return Ok(Response::new(answer, connection, &self.pool));
                }
                Err(mut error) => match error.take_message() {
                    // The server closed the connection while it was unused; nothing was written.
                    Some(unsent) if is_reused => request = unsent,
                    _ => return Err(TransportError::broken(error.into_error())),
                },
            }
        }
    }

    /// Adds the headers of the client, which replace none.
    fn with_own(&self, mut headers: HeaderMap) -> HeaderMap {
        headers.reserve(OWN_HEADERS);
        let own = [
            (HOST, &self.host),
            (USER_AGENT, &AGENT),
            (ACCEPT, &ANY_MEDIA),
            (ACCEPT_ENCODING, &GZIP),
        ];
        for (name, value) in own {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        if let Some(value) = &self.proxy_authorization {
            headers
                .entry(PROXY_AUTHORIZATION)
                .or_insert_with(|| value.clone());
        }
        headers
    }
}

impl TransportError {
    fn connect(source: impl Into<BoxError>) -> Self {
        Self {
            is_connect: true,
            source: source.into(),
        }
    }

    fn broken(source: impl Into<BoxError>) -> Self {
        Self {
            is_connect: false,
            source: source.into(),
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_connect {
            true => "no connection",
            false => "the connection broke",
        })
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
