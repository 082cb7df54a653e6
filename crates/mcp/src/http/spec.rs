//! The specification of a server over HTTP, with all variables expanded.

use std::fmt;
use std::path::PathBuf;

use broker_model::redact::Secret;
use broker_model::url::HttpUrl;
use broker_process::ProcessSpec;
use http::header::HeaderMap;

use super::breaker::HalfOpen;
use super::pause::Pause;
use super::session_id::ReopenPace;
use super::token_cache::TokenCache;

/// The path of an endpoint that is given without one.
pub const MCP_PATH: &str = "/mcp";

/// A server over HTTP. `Debug` shows no secret.
#[derive(Clone)]
pub struct HttpSpec {
    /// Its URL.
    pub url: HttpUrl,
    /// Headers of every request, without the protocol headers.
    pub headers: HeaderMap,
    /// The origin of the token, if there is one.
    pub auth: Option<AuthSpec>,
    /// The token and the pause that every link of this source uses.
    pub shared: HttpShared,
    /// A file with certificates that are trusted besides the system's certificates.
    pub ca_file: Option<PathBuf>,
    /// The certificate that the source presents to its server and to its token endpoint.
    pub identity: Option<ClientCertificate>,
}

/// Files in PEM form: a certificate with its chain, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The file with the chain.
    pub certificate: PathBuf,
    /// The file with the key.
    pub key: PathBuf,
}

/// The state that all links of a source share: its token, the pause that its server asked for, whether it was down, and the
/// pace of new sessions. `Debug` shows no token.
#[derive(Clone, Debug, Default)]
pub struct HttpShared {
    pub(crate) tokens: TokenCache,
    pub(crate) pause: Pause,
    pub(crate) half_open: HalfOpen,
    pub(crate) reopen_pace: ReopenPace,
}

/// The origin of an access token.
#[derive(Clone, Debug)]
pub enum AuthSpec {
    /// The content of a file.
    TokenFile(PathBuf),
    /// The output of a command.
    TokenCommand(Box<ProcessSpec>),
    /// A grant of a token endpoint.
    ClientCredentials(ClientCredentials),
}

/// The parameters of the grant `client_credentials` (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The token endpoint.
    pub token_url: HttpUrl,
    /// The name of the client.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// The scopes that it asks for, separated by blanks.
    pub scope: Option<String>,
    /// The resource of its request (RFC 8707).
    pub resource: Option<String>,
}

impl HttpSpec {
    /// Returns the same server at [`MCP_PATH`]; `None` if the URL has a path.
    pub(crate) fn at_mcp_path(&self) -> Option<Self> {
        (self.url.path() == "/").then(|| Self {
            url: self.url.clone().with_path(MCP_PATH),
            ..self.clone()
        })
    }

    /// Whether requests for `other` equal those for this one.
    pub(crate) fn reaches_the_same(&self, other: &Self) -> bool {
        let same_auth = match (&self.auth, &other.auth) {
            (None, None) => true,
            (Some(one), Some(other)) => one.is_same(other),
            _ => false,
        };
        same_auth
            && self.url == other.url
            && self.headers == other.headers
            && self.ca_file == other.ca_file
            && self.identity == other.identity
    }
}

impl AuthSpec {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TokenFile(one), Self::TokenFile(other)) => one == other,
            (Self::TokenCommand(one), Self::TokenCommand(other)) => one.starts_the_same(other),
            (Self::ClientCredentials(one), Self::ClientCredentials(other)) => one == other,
            _ => false,
        }
    }
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpec")
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}
