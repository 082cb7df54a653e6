//! `Host` and `Origin`: the defence against web pages that send requests to a broker.
//!
//! DNS rebinding needs a name, so address literals are allowed and names must be listed. Refusals do
//! not echo the header.

use axum::http::{HeaderMap, Uri, header};
use broker_model::CallCode;

use super::authority::{Authority, HostName};
use super::respond::Refusal;

/// The allowed hosts and origins.
#[derive(Debug, Default)]
pub struct HostPolicy {
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
}

/// The origin of a page: `scheme://host[:port]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    authority: Authority,
}

impl HostPolicy {
    /// A policy that allows these in addition to the built-in ones. Fails with the index of the first
    /// entry that is not `host[:port]`, or not an origin.
    pub fn new(hosts: &[String], origins: &[String]) -> Result<Self, BadEntry> {
        let hosts = hosts
            .iter()
            .enumerate()
            .map(|(index, text)| Authority::parse(text).ok_or(BadEntry::Host(index)))
            .collect::<Result<_, _>>()?;
        let origins = origins
            .iter()
            .enumerate()
            .map(|(index, text)| Origin::parse(text).ok_or(BadEntry::Origin(index)))
            .collect::<Result<_, _>>()?;
        Ok(Self { hosts, origins })
    }

    /// Checks both headers of a request.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = self.check_host(uri, headers)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(first) = origins.next() else {
            return Ok(());
        };
        let origin = first.to_str().ok().and_then(Origin::parse);
        match origin {
            Some(origin) if origins.next().is_none() && self.admits(&origin, &host) => Ok(()),
            _ => Err(Refusal::new(
                CallCode::OriginForbidden,
                "the `Origin` header names an origin that is not allowed",
            )),
        }
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Refusal> {
        let invalid = |message| Refusal::new(CallCode::HeaderInvalid, message);
        let mut values = headers.get_all(header::HOST).iter();
        let Some(value) = values.next() else {
            return Err(invalid("the `Host` header is missing"));
        };
        if values.next().is_some() {
            return Err(invalid("there is more than one `Host` header"));
        }
        let host = value
            .to_str()
            .ok()
            .and_then(Authority::parse)
            .ok_or_else(|| invalid("the `Host` header is not `host` or `host:port`"))?;
        if let Some(target) = uri.authority()
            && Authority::parse(target.as_str()).as_ref() != Some(&host)
        {
            return Err(invalid("the `Host` header and the request target disagree"));
        }
        let known = match &host.host {
            HostName::Address(address) => !address.is_unspecified(),
            HostName::Name(_) if host.host.is_loopback() => true,
            HostName::Name(_) => self.hosts.iter().any(|allowed| {
                allowed.host == host.host
                    && allowed
                        .port
                        .is_none_or(|port| host.port.unwrap_or(80) == port)
            }),
        };
        if known {
            return Ok(host);
        }
        Err(Refusal::new(
            CallCode::HostForbidden,
            "the `Host` header names a host that is not allowed",
        ))
    }

    fn admits(&self, origin: &Origin, host: &Authority) -> bool {
        if self.origins.contains(origin) {
            return true;
        }
        let default_port = match origin.scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        // Without a list, pages of this machine may call.
        (self.origins.is_empty() && origin.authority.host.is_loopback())
            || (origin.authority.host == host.host
                // A `Host` without a port matches either scheme: a proxy may terminate TLS.
                && origin.authority.port.unwrap_or(default_port)
                    == host.port.unwrap_or(default_port))
    }
}

/// A configured entry that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadEntry {
    /// An index in the hosts.
    Host(usize),
    /// An index in the origins.
    Origin(usize),
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        if !well_formed {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let mut authority = Authority::parse(authority)?;
        if matches!(
            (scheme.as_str(), authority.port),
            ("http", Some(80)) | ("https", Some(443))
        ) {
            authority.port = None;
        }
        Some(Self { scheme, authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn check(uri: &str, headers: &[(&'static str, &str)]) -> Result<(), CallCode> {
        let policy = HostPolicy::new(
            &["broker.example".to_owned(), "other.example:8443".to_owned()],
            &[
                "https://app.example".to_owned(),
                "http://[::1]:3000".to_owned(),
            ],
        )
        .unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        policy
            .check(&uri.parse().unwrap(), &map)
            .map_err(|refusal| refusal.code())
    }

    #[test]
    fn host_that_is_a_foreign_name_is_refused() {
        use CallCode::{HeaderInvalid, HostForbidden};
        for host in [
            "localhost",
            "LocalHost:8100",
            "localhost.:8100",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]:8100",
            "192.168.1.7:8100",
            "[fe80::1]",
            "Broker.Example:9",
            "broker.example.",
            "other.example:8443",
        ] {
            assert_eq!(check("/meta_tree", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.com",
            "localhost.evil.com",
            "evil.localhost",
            "0.0.0.0:8100",
            "[::]",
            "[::ffff:0.0.0.0]",
            "other.example",
            "other.example:1",
            "127.1",
            "0",
            "0x7f000001",
            "2130706433",
            "x.broker.example",
        ] {
            assert_eq!(
                check("/nowhere", &[("host", host)]),
                Err(HostForbidden),
                "{host}"
            );
        }
        assert_eq!(check("/", &[]), Err(HeaderInvalid));
        for host in [
            "",
            "a b",
            "localhost:x",
            "localhost, evil.com",
            "u@localhost",
            "ö",
        ] {
            assert_eq!(check("/", &[("host", host)]), Err(HeaderInvalid), "{host}");
        }
        let two = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check("/", &two), Err(HeaderInvalid));
    }

    #[test]
    fn absolute_target_that_differs_from_the_host_is_refused() {
        let host = [("host", "localhost:8100")];
        assert_eq!(check("http://LOCALHOST:8100/x", &host), Ok(()));
        for uri in [
            "http://evil.com/x",
            "http://localhost/x",
            "http://u@localhost:8100/x",
        ] {
            assert_eq!(check(uri, &host), Err(CallCode::HeaderInvalid), "{uri}");
        }
    }

    #[test]
    fn origin_outside_the_policy_is_refused() {
        let from = |host, origin| check("/", &[("host", host), ("origin", origin)]);
        for (host, origin) in [
            ("localhost:8100", "http://localhost:8100"),
            ("10.0.0.5:8100", "http://10.0.0.5:8100"),
            ("broker.example", "https://broker.example"),
            ("broker.example:80", "http://broker.example"),
            ("localhost", "https://app.example:443"),
            ("localhost", "http://[::1]:3000"),
        ] {
            assert_eq!(from(host, origin), Ok(()), "{host} {origin}");
        }
        for (host, origin) in [
            // With a list, other ports of this machine are other origins.
            ("localhost:8100", "http://localhost:5173"),
            ("localhost:8100", "https://127.0.0.1"),
            ("localhost", "null"),
            ("localhost", ""),
            ("localhost", "http://evil"),
            ("localhost", "http://app.example"),
            ("localhost", "https://app.example:444"),
            ("localhost", "http://0.0.0.0:8100"),
            ("localhost", "http://localhost.evil.com"),
            ("localhost", "http://localhost/x"),
            ("localhost", "ftp://localhost"),
            ("localhost", "localhost"),
            ("10.0.0.5:8100", "http://10.0.0.5:8101"),
            ("10.0.0.5:8100", "http://10.0.0.6:8100"),
        ] {
            assert_eq!(
                from(host, origin),
                Err(CallCode::OriginForbidden),
                "{host} {origin}"
            );
        }
        let two = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://localhost"),
        ];
        assert_eq!(check("/", &two), Err(CallCode::OriginForbidden));
        let own = [
            ("host", "localhost:8100"),
            ("origin", "http://localhost:5173"),
        ];
        let own = own.map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let without_list = HostPolicy::default();
        let admitted = without_list.check(&Uri::from_static("/"), &HeaderMap::from_iter(own));
        assert!(admitted.is_ok());
    }

    #[test]
    fn allowed_host_or_origin_that_is_invalid_is_named() {
        let bad = |hosts: &[&str], origins: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
            HostPolicy::new(&own(hosts), &own(origins)).unwrap_err()
        };
        assert_eq!(bad(&["a", "http://a"], &[]), BadEntry::Host(1));
        assert_eq!(bad(&[], &["null"]), BadEntry::Origin(0));
        assert_eq!(bad(&[], &["https://a/"]), BadEntry::Origin(0));
    }
}
