//! The HTTP client: requests of HTTP/1.1 to one origin, over connections that are used again.
//!
//! An [`HttpTransport`] sends requests to the origin of one URL; [`HttpTransport::target`] makes targets of the URLs of
//! this origin. A request gives a [`Response`] with status and headers as soon as they have arrived; its body is read in
//! chunks, and is decompressed if the server sent it as gzip.
//!
//! - **No duplicates**: a request is sent again only if its connection was closed before any byte of it was written. No
//!   redirect is followed; the program decides what an answer means.
//! - **Connections**: an answer that was read gives its connection back for the next request. A connection that is unused
//!   for 4 s is closed; so are all unused ones if the client is dropped, and the connection of a request that is
//!   dropped before its answer.
//! - **TLS**: the authorities of the system are trusted, and the authorities that the program adds; so is a certificate
//!   that the server signed itself, if the program adds exactly it. The provider of cryptography is the process's
//!   provider, or `ring`; the client does not install one. A server that asks for a certificate of the client gets the
//!   one of the program's [`IdentityFiles`].
//! - **Proxies**: the proxies of the environment, if the program wants them ([`Proxies`]): HTTP and SOCKS5. A variable that
//!   names none that can be used is an error ([`ProxyError`]).
//! - **Limits**: the time to connect, the number of headers, and what a server sends before the head of its answer is
//!   complete: 256 KiB with at most 16 interim responses. The program limits the time of a request and the size of a
//!   body: it stops reading.
//!
//! A call is one task. A client that drives its connections in separate tasks wakes two tasks for each request,
//! often on another core; here the task of the request drives the connection, until the answer has been read.
//! Everything needs a runtime of tokio.

#![forbid(unsafe_code)]

mod certificate;
mod connect;
mod connection;
mod error;
mod expiry;
mod head_limit;
mod identity;
mod pool;
mod proxy;
mod response;
mod socks;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use url::{Position, Url};

use connect::Connector;
use identity::ClientIdentity;
use pool::Pool;
use proxy::ProxyRules;

pub use certificate::{Certificate, certificates};
pub use error::{BoxError, TransportError, root_message};
pub use expiry::CertificateExpiry;
pub use identity::{IdentityFiles, IdentityPem};
pub use proxy::ProxyError;
pub use response::Response;

/// Maximum time to connect, with the handshake of TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of headers in an answer.
const MAX_HEADERS: usize = 128;
/// Headers that the client adds to a request.
const OWN_HEADERS: usize = 5;
/// The name of the broker in requests.
static AGENT: HeaderValue =
    HeaderValue::from_static(concat!("mcp-broker/", env!("CARGO_PKG_VERSION")));
static ANY_MEDIA: HeaderValue = HeaderValue::from_static("*/*");
static GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Sends requests to one origin. Does not send a request twice, and does not follow redirects.
#[derive(Debug)]
pub struct HttpTransport {
    connector: Connector,
    pool: Arc<Pool>,
    host: HeaderValue,
    /// The credentials for a proxy that reads the requests.
    proxy_authorization: Option<HeaderValue>,
    expiry: CertificateExpiry,
}

/// A URL, and how a request names it.
#[derive(Clone, Debug)]
pub struct Target {
    url: Url,
    in_request: Uri,
}

/// The proxies for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// Without a proxy: the client connects to the server itself.
    None,
    /// The proxies of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or of the system.
    Environment,
}

impl HttpTransport {
    /// Makes a client for the origin of `url` that trusts the certificates of the system and `certificates`. Does not
    /// send a request.
    ///
    /// May read files, so that it is not for a thread of the runtime. Without TLS the certificates of the system are
    /// not read, and no certificate is trusted.
    pub fn new(
        url: &Url,
        certificates: Vec<Certificate>,
        proxies: Proxies,
    ) -> Result<Self, BoxError> {
        Self::with_identity(url, certificates, proxies, None)
    }

    /// Makes a client like [`Self::new`] that presents a certificate to a server that asks for one. Without TLS the
    /// files are not read.
    pub fn with_identity(
        url: &Url,
        certificates: Vec<Certificate>,
        proxies: Proxies,
        identity: Option<Arc<dyn IdentityFiles>>,
    ) -> Result<Self, BoxError> {
        let rules = match proxies {
            Proxies::None => None,
            Proxies::Environment => Some(ProxyRules::from_environment()),
        };
        Self::with_rules(url, certificates, rules.as_ref(), identity)
    }

    /// Makes a client that uses the proxy of these rules for its origin.
    fn with_rules(
        url: &Url,
        certificates: Vec<Certificate>,
        rules: Option<&ProxyRules>,
        identity: Option<Arc<dyn IdentityFiles>>,
    ) -> Result<Self, BoxError> {
        let proxy = rules.map(|rules| rules.find(url)).transpose()?.flatten();
        let expiry = CertificateExpiry::new(&certificates);
        let is_tls = url.scheme() == "https";
        let more = is_tls.then_some(certificates);
        let identity = identity.filter(|_| is_tls);
        let identity =
            identity.map(|files| ClientIdentity::read(files, tls::provider(), expiry.clone()));
        let identity = identity.transpose()?;
        let tls = tls::config(more, &expiry, identity.as_ref())?;
        let connector = Connector::new(url, tls, proxy, identity)?;
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort])?;
        Ok(Self {
            proxy_authorization: connector.proxy_authorization(),
            connector,
            pool: Arc::default(),
            host,
            expiry,
        })
    }

    /// Returns when the certificates of the origin expire.
    pub fn certificate_expiry(&self) -> CertificateExpiry {
        self.expiry.clone()
    }

    /// Returns a URL of the origin as the target of requests.
    pub fn target(&self, url: Url) -> Result<Target, InvalidUri> {
        let from = match self.connector.asks_proxy() {
            true => Position::BeforeScheme,
            false => Position::BeforePath,
        };
        let in_request = Uri::try_from(&url[from..Position::AfterQuery])?;
        Ok(Target { url, in_request })
    }

    /// Sends a request and waits for the head of its answer. Dropping the future closes the connection.
    pub async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, TransportError> {
        self.send_if(method, target, headers, body, &|| true).await
    }

    /// Sends a request, unless `may_send` is false once there is a connection for it: then the request was not sent
    /// ([`TransportError::is_connect`]).
    pub async fn send_if(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
        may_send: &(dyn Fn() -> bool + Sync),
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
            if !may_send() {
                return Err(TransportError::connect("the request was withdrawn"));
            }
            match connection.send(request).await {
                Ok((answer, connection)) => {
                    connection.head_arrived().map_err(TransportError::broken)?;
                    return Ok(Response::new(answer, connection, &self.pool));
                }
                Err(mut error) => match error.take_message() {
                    // The server closed the connection while it was unused; the request was not written.
                    Some(unsent) if is_reused => request = unsent,
                    _ => return Err(TransportError::broken(error.into_error())),
                },
            }
        }
    }

    /// Adds the headers of the client, without replacing others.
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

impl Target {
    /// Returns the URL.
    pub const fn url(&self) -> &Url {
        &self.url
    }
}
