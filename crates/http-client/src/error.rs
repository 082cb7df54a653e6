//! Why a request has no answer.

use std::error::Error;
use std::fmt;
use std::io;

/// An error of any kind that may be sent to another thread.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a request has no answer, or why its body broke off. Its text and the texts of its sources have no URL.
#[derive(Debug)]
pub struct TransportError {
    is_connect: bool,
    source: BoxError,
}

impl TransportError {
    pub(crate) fn connect(source: impl Into<BoxError>) -> Self {
        Self {
            is_connect: true,
            source: source.into(),
        }
    }

    pub(crate) fn broken(source: impl Into<BoxError>) -> Self {
        Self {
            is_connect: false,
            source: source.into(),
        }
    }

    /// Whether no connection was made, so that the request was not sent.
    pub const fn is_connect(&self) -> bool {
        self.is_connect
    }

    /// Whether TLS failed, and not the network or HTTP.
    pub fn is_tls(&self) -> bool {
        let mut source = self.source();
        while let Some(error) = source {
            if is_of_tls(error) {
                return true;
            }
            source = error.source();
        }
        false
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

/// The error of a connection through a proxy.
#[derive(Debug)]
pub(crate) struct ThroughProxy {
    /// The variable that names the proxy.
    variable: &'static str,
    source: BoxError,
}

impl ThroughProxy {
    pub(crate) const fn new(variable: &'static str, source: BoxError) -> Self {
        Self { variable, source }
    }
}

impl fmt::Display for ThroughProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = self.variable;
        write!(f, "the connection through the proxy of `{variable}` failed")
    }
}

impl Error for ThroughProxy {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// Whether this is an error of TLS. An I/O error may have one inside that is not its source.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    if error.is::<rustls::Error>() {
        return true;
    }
    let inside = error.downcast_ref::<io::Error>();
    let inside = inside.and_then(io::Error::get_ref);
    inside.is_some_and(|inside| is_of_tls(inside))
}

/// Returns the message of the innermost error. It names the reason, and the variable of the proxy if the connection goes
/// through one. It may contain a text of the peer.
pub fn root_message(error: &dyn Error) -> String {
    let mut innermost = error.to_string();
    let (mut source, mut proxy) = (error.source(), None);
    while let Some(error) = source {
        innermost = error.to_string();
        source = error.source();
        proxy = proxy.or_else(|| error.downcast_ref::<ThroughProxy>());
    }
    match proxy {
        Some(proxy) => format!("{proxy}: {innermost}"),
        None => innermost,
    }
}
