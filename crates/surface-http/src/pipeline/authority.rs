//! `host[:port]` in `Host`, in an absolute request target, in an origin and in `allowed_hosts`: parsed
//! strictly, so that two spellings of one host compare equal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host and, if present, a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) host: HostName,
    pub(crate) port: Option<u16>,
}

/// A name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostName {
    /// Lower-case, without the trailing dot.
    Name(Box<str>),
    /// An address literal; an IPv4-mapped IPv6 address becomes IPv4.
    Address(IpAddr),
}

impl Authority {
    /// Parses `text`; `None` for anything that is not `host[:port]`, user info and zones included.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, rest) = if let Some(inner) = text.strip_prefix('[') {
            let (inside, rest) = inner.split_once(']')?;
            let address: Ipv6Addr = inside.parse().ok()?;
            (HostName::Address(IpAddr::V6(address).to_canonical()), rest)
        } else {
            let end = text.bytes().position(|byte| byte == b':');
            let end = end.unwrap_or(text.len());
            (HostName::parse(&text[..end])?, &text[end..])
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            // `u16::from_str` would accept a sign.
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }
}

impl HostName {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let well_formed = !name.is_empty()
            && name.len() <= 253
            && name.split('.').all(|label| {
                !label.is_empty()
                    && label
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            });
        well_formed.then(|| Self::Name(name.to_ascii_lowercase().into()))
    }

    /// Whether this is always this machine: `localhost` or a loopback address. Names below `localhost`
    /// do not count: resolvers differ on them.
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => &**name == "localhost",
            Self::Address(address) => address.is_loopback(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_spellings_of_one_host_are_equal() {
        for (a, b) in [
            ("LOCALHOST:80", "localhost.:80"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[0:0:0:0:0:0:0:1]:1", "[::1]:1"),
        ] {
            assert_eq!(Authority::parse(a).unwrap(), Authority::parse(b).unwrap());
        }
    }

    #[test]
    fn authority_that_is_malformed_is_refused() {
        for text in [
            "",
            ":80",
            "a:",
            "a:x",
            "a:+1",
            "a:65536",
            "a b",
            "a,b",
            "u@a",
            "a/b",
            "[::1",
            "::1",
            "[::1]x",
            "[fe80::1%25eth0]",
            "a..b",
            ".",
            ".a",
            "ä",
            "a\0",
            "http://a",
            "[127.0.0.1]",
        ] {
            assert_eq!(Authority::parse(text), None, "{text:?}");
        }
    }
}
