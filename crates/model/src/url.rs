//! The URL of a server over HTTP: what the config and the trust policy compare, and what a request may reach.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 8 << 10;

/// An absolute `http` or `https` URL without user information and fragment. `Debug` and `Display` omit the query, since
/// it may contain a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl {
    origin: Origin,
    path: String,
    query: Option<String>,
}

/// Scheme, host and port of a URL (RFC 6454).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    is_tls: bool,
    /// In lower case; an IPv6 address is in brackets.
    host: String,
    port: u16,
}

/// Why a text is not the URL of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It does not begin with a supported scheme.
    #[error("it is not an absolute `http://` or `https://` URL")]
    Scheme,
    /// A user name or password.
    #[error("it has user information (`user:password@`), which logs and pages would show")]
    UserInfo,
    /// `#…`.
    #[error("it has a fragment (`#…`), which is never sent to a server")]
    Fragment,
    /// A character that is not allowed, or no valid host or port.
    #[error(
        "its host, its port or a character in it is not valid; write other characters as `%XX`"
    )]
    Syntax,
    /// Too long.
    #[error("it is longer than 8192 bytes")]
    Length,
}

impl HttpUrl {
    /// Parses `text` and normalises it: the host in lower case, the default port written out, an empty path as
    /// `/`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(UrlError::Length);
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let is_tls = match scheme.map(str::to_ascii_lowercase).as_deref() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(UrlError::Scheme),
        };
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        // Parsers differ about these characters, so a URL with one of them is refused.
        let is_allowed = |c: char| c.is_ascii_graphic() && !"\\\"<>^`{|}".contains(c);
        if !text.chars().all(is_allowed) {
            return Err(UrlError::Syntax);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::Syntax)?;
        let authority = uri.authority().ok_or(UrlError::Syntax)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::UserInfo);
        }
        let host = authority.host().to_ascii_lowercase();
        // A port that is not a number is dropped by the parser.
        let written_port = authority.as_str()[authority.host().len()..].strip_prefix(':');
        let port = match written_port {
            None => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port.parse().map_err(|_| UrlError::Syntax)?,
        };
        if host.is_empty() || port == 0 {
            return Err(UrlError::Syntax);
        }
        Ok(Self {
            origin: Origin { is_tls, host, port },
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
        })
    }

    /// Its origin.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns its path. It begins with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the URL with another path. The path begins with `/`.
    #[must_use]
    pub fn with_path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The whole text, with its query. It may contain a secret.
    pub fn expose(&self) -> String {
        match &self.query {
            Some(query) => format!("{}{}?{query}", self.origin, self.path),
            None => format!("{}{}", self.origin, self.path),
        }
    }

    /// Whether both name the same server: same origin, and same path except for a slash at its end.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let path = |url: &Self| url.path.trim_end_matches('/').to_owned();
        self.origin == other.origin && path(self) == path(other)
    }
}

impl Origin {
    /// Whether its connections are encrypted: `https`.
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Its host; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is on this machine by its name: `localhost` and names below it, and loopback addresses.
    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || bare.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
            || bare.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = match self.is_tls {
            true => ("https", 443),
            false => ("http", 80),
        };
        write!(f, "{scheme}://{}", self.host)?;
        match self.port == default {
            true => Ok(()),
            false => write!(f, ":{}", self.port),
        }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_normalised_for_comparison() {
        let url = |text: &str| HttpUrl::parse(text).unwrap();
        for (one, other, same) in [
            (
                "HTTPS://Host.Example/mcp",
                "https://host.example:443/mcp/",
                true,
            ),
            ("http://h", "http://h:80/", true),
            ("http://h/a?x=1", "http://h/a", true),
            ("http://h/a", "https://h/a", false),
            ("http://h/a", "http://h/a/b", false),
            ("http://h/a", "http://h:81/a", false),
            ("http://h/A", "http://h/a", false),
        ] {
            assert_eq!(url(one).is_same_server(&url(other)), same, "{one} {other}");
        }
        assert_eq!(
            url("HTTP://[::1]:8080/a?key=v").expose(),
            "http://[::1]:8080/a?key=v"
        );
        assert_eq!(
            format!("{:?} {0}", url("https://h:443/a?key=v")),
            "https://h/a https://h/a"
        );
    }

    #[test]
    fn url_that_parsers_read_differently_is_refused() {
        for (text, error) in [
            ("h/a", UrlError::Scheme),
            ("ftp://h/a", UrlError::Scheme),
            ("file:///etc/passwd", UrlError::Scheme),
            ("http://u:p@h/a", UrlError::UserInfo),
            ("http://u@h/a", UrlError::UserInfo),
            ("http://h/a#b", UrlError::Fragment),
            ("http://h\\@other/a", UrlError::Syntax),
            ("http://h/a b", UrlError::Syntax),
            ("http://h/a\r\nX: y", UrlError::Syntax),
            ("http://hé/a", UrlError::Syntax),
            ("http://h:x/", UrlError::Syntax),
            ("http://h:0/", UrlError::Syntax),
            ("http://h:65536/", UrlError::Syntax),
            ("http:///a", UrlError::Syntax),
        ] {
            assert_eq!(HttpUrl::parse(text), Err(error), "{text}");
        }
        let long = format!("http://h/{}", "a".repeat(MAX_URL_BYTES));
        assert_eq!(HttpUrl::parse(&long), Err(UrlError::Length));
    }

    #[test]
    fn url_origin_is_loopback_by_name_and_address() {
        let is_loopback = |text: &str| HttpUrl::parse(text).unwrap().origin().is_loopback();
        for text in [
            "http://localhost/",
            "http://a.localhost",
            "http://127.8.0.1",
            "http://[::1]:9",
        ] {
            assert!(is_loopback(text), "{text}");
        }
        for text in [
            "http://localhost.example",
            "http://128.0.0.1",
            "http://10.0.0.1",
            "http://[::2]",
        ] {
            assert!(!is_loopback(text), "{text}");
        }
    }
}
