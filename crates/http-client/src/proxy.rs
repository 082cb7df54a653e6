//! The proxy for an origin: the variables of the environment that name proxies, and hosts without one.
//!
//! A variable whose value cannot be used is an error for each origin that would use it. A direct connection instead
//! would pass by the proxy that the operator asked for.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use url::{Host, Position, Url};

/// The port of a SOCKS proxy that is named without one.
const SOCKS_PORT: u16 = 1080;
/// Name of the proxies of an operating system that keeps its settings outside of the environment.
const SYSTEM: &str = "the system settings";

/// A proxy, and the variable that names it.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) variable: &'static str,
    pub(crate) kind: ProxyKind,
    pub(crate) uri: Uri,
    intercept: Intercept,
}

/// The protocol that a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyKind {
    Http,
    /// SOCKS5. The client looks up the names of hosts.
    Socks5,
    /// SOCKS5. The proxy looks up the names of hosts.
    Socks5ByName,
}

/// A variable of the environment whose value does not name a proxy that can be used. The message does not show the
/// value, since it may have a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyError {
    variable: &'static str,
    reason: String,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` does not name a proxy that can be used: {}; write `http://HOST:PORT`, or `https`, `socks5` or `socks5h` in \
             place of `http`",
            self.variable, self.reason
        )
    }
}

impl std::error::Error for ProxyError {}

/// The proxies of an environment.
#[derive(Debug, Default)]
pub(crate) struct ProxyRules {
    http: Option<Setting>,
    https: Option<Setting>,
    no: NoProxy,
}

/// A variable that is set, and its value.
#[derive(Clone, Debug)]
struct Setting {
    variable: &'static str,
    value: OsString,
}

impl ProxyRules {
    /// Reads the variables of this process.
    pub(crate) fn from_environment() -> Self {
        Self::read(|name| std::env::var_os(name))
    }

    /// Reads variables. Of the two spellings of a name, and of a name and `ALL_PROXY`, the first that is set and not
    /// empty counts.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                let value = variable(name).filter(|value| !value.is_empty())?;
                Some(Setting {
                    variable: name,
                    value,
                })
            })
        };
        // In a CGI program the upper-case name is a header of the client.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let http: &[_] = match is_cgi {
            true => &["http_proxy", "ALL_PROXY", "all_proxy"],
            false => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
        };
        let https = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let no = first(&["NO_PROXY", "no_proxy"]);
        let no = no.map_or_else(String::new, |no| no.value.to_string_lossy().into_owned());
        Self {
            http: first(http),
            https: first(&https),
            no: NoProxy::parse(&no),
        }
    }

    /// Returns the proxy for the origin of `url`; `None` for a direct connection.
    pub(crate) fn find(&self, url: &Url) -> Result<Option<Proxy>, ProxyError> {
        if self.no.contains(url) {
            return Ok(None);
        }
        let setting = match url.scheme() {
            "https" => &self.https,
            _ => &self.http,
        };
        match setting {
            Some(setting) => Proxy::parse(setting).map(Some),
            None if self.http.is_some() || self.https.is_some() => Ok(None),
            None => Ok(system_proxy(url)),
        }
    }
}

/// Returns the proxy that an operating system names outside of the environment.
fn system_proxy(url: &Url) -> Option<Proxy> {
    let origin = Uri::try_from(&url[..Position::BeforePath]).ok()?;
    let intercept = Matcher::from_system().intercept(&origin)?;
    Some(Proxy {
        variable: SYSTEM,
        kind: ProxyKind::Http,
        uri: intercept.uri().clone(),
        intercept,
    })
}

impl Proxy {
    fn parse(setting: &Setting) -> Result<Self, ProxyError> {
        let refused = |reason: &str| ProxyError {
            variable: setting.variable,
            reason: reason.to_owned(),
        };
        let not_url = || refused("its value is not a URL with a host");
        let value = setting.value.to_str().ok_or_else(not_url)?.trim();
        let kind = match value.split_once("://") {
            None => ProxyKind::Http,
            Some((scheme, _)) => match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => ProxyKind::Http,
                "socks5" => ProxyKind::Socks5,
                "socks5h" => ProxyKind::Socks5ByName,
                scheme if is_scheme(scheme) => {
                    return Err(refused(&format!("it has the scheme `{scheme}`")));
                }
                _ => return Err(not_url()),
            },
        };
        let value = match value.split_once("://") {
            Some((scheme, rest)) => format!("{}://{rest}", scheme.to_ascii_lowercase()),
            None => format!("http://{value}"),
        };
        let any = Uri::from_static("http://origin.invalid/");
        let intercept = Matcher::builder().all(&value).build().intercept(&any);
        let intercept = intercept.ok_or_else(not_url)?;
        let uri = intercept.uri();
        let authority = uri.authority().ok_or_else(not_url)?;
        let has_port = authority.as_str().len() > authority.host().len();
        if authority.host().is_empty() || (has_port && authority.port_u16().is_none()) {
            return Err(not_url());
        }
        let uri = match kind {
            ProxyKind::Socks5 | ProxyKind::Socks5ByName if !has_port => {
                let uri = format!("socks5://{}:{SOCKS_PORT}/", authority.host());
                Uri::try_from(uri).map_err(|_| not_url())?
            }
            ProxyKind::Http | ProxyKind::Socks5 | ProxyKind::Socks5ByName => uri.clone(),
        };
        Ok(Self {
            variable: setting.variable,
            kind,
            uri,
            intercept,
        })
    }

    /// Returns the credentials for a proxy that speaks HTTP.
    pub(crate) fn basic_auth(&self) -> Option<&HeaderValue> {
        self.intercept.basic_auth()
    }

    /// Returns the user and the password for another proxy.
    pub(crate) fn raw_auth(&self) -> Option<(&str, &str)> {
        self.intercept.raw_auth()
    }
}

fn is_scheme(text: &str) -> bool {
    text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Hosts without a proxy.
#[derive(Debug, Default)]
struct NoProxy(Vec<Exception>);

#[derive(Debug)]
enum Exception {
    All,
    Network {
        address: IpAddr,
        prefix: u32,
    },
    Address {
        address: IpAddr,
        port: Option<u16>,
    },
    /// A host and its subdomains.
    Domain {
        name: String,
        port: Option<u16>,
    },
}

impl NoProxy {
    /// Reads entries that are separated by commas or blanks.
    fn parse(text: &str) -> Self {
        let entries = text.split(|c: char| c == ',' || c.is_whitespace());
        let entries = entries.filter(|entry| !entry.is_empty());
        Self(entries.filter_map(Exception::parse).collect())
    }

    fn contains(&self, url: &Url) -> bool {
        let host = match url.host() {
            Some(Host::Domain(name)) => {
                // The text of a host that is written like an address may be one.
                let name = name.trim_end_matches('.');
                name.parse().map_or(Err(name), Ok)
            }
            Some(Host::Ipv4(address)) => Ok(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Ok(IpAddr::V6(address)),
            None => return false,
        };
        let port = url.port_or_known_default();
        self.0.iter().any(|entry| entry.contains(host, port))
    }
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self::All);
        }
        if let Some((address, prefix)) = entry.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let prefix = prefix.parse().ok()?;
            return (prefix <= bits(address).1).then_some(Self::Network { address, prefix });
        }
        if let Ok(address) = entry.parse() {
            let port = None;
            return Some(Self::Address { address, port });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !entry.ends_with(']') => (host, Some(port.parse().ok()?)),
            Some(_) | None => (entry, None),
        };
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(host).parse() {
            return Some(Self::Address { address, port });
        }
        let name = host.strip_prefix("*.").unwrap_or(host);
        let name = name.trim_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Domain { name, port })
    }

    fn contains(&self, host: Result<IpAddr, &str>, port: Option<u16>) -> bool {
        let is_port = |own: &Option<u16>| own.is_none() || *own == port;
        match (self, host) {
            (Self::All, _) => true,
            (Self::Network { address, prefix }, Ok(host)) => {
                let ((own, width), (host, of_host)) = (bits(*address), bits(host));
                let shift = width - prefix;
                width == of_host && (own ^ host).checked_shr(shift).unwrap_or_default() == 0
            }
            (Self::Address { address, port }, Ok(host)) => *address == host && is_port(port),
            (Self::Domain { name, port }, Err(host)) => {
                let host = host.to_ascii_lowercase();
                let below = host.strip_suffix(name.as_str());
                below.is_some_and(|below| below.is_empty() || below.ends_with('.')) && is_port(port)
            }
            (Self::Network { .. } | Self::Address { .. }, Err(_))
            | (Self::Domain { .. }, Ok(_)) => false,
        }
    }
}

/// Returns the bits of an address, and their number.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(variables: &[(&str, &str)]) -> ProxyRules {
        ProxyRules::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn no_proxy_names_domains_ports_addresses_and_networks() {
        for (entry, url_text, is_direct) in [
            ("corp.example", "http://corp.example/", true),
            ("corp.example", "http://mcp.corp.example/", true),
            ("corp.example", "http://notcorp.example/", false),
            (".corp.example", "http://MCP.corp.example/", true),
            ("*.corp.example", "http://mcp.corp.example/", true),
            ("*.corp.example", "http://other.example/", false),
            ("mcp.corp.example:80", "http://mcp.corp.example/", true),
            ("mcp.corp.example:443", "http://mcp.corp.example/", false),
            ("mcp.corp.example:443", "https://mcp.corp.example/", true),
            ("*.corp.example:8080", "http://a.corp.example:8080/", true),
            ("mcp.corp.example.", "http://mcp.corp.example./", true),
            ("10.0.0.0/8", "http://10.1.2.3/", true),
            ("10.0.0.0/8", "http://11.1.2.3/", false),
            ("10.1.2.3/0", "http://11.1.2.3/", true),
            ("10.1.2.3/32", "http://10.1.2.2/", false),
            ("10.1.2.3", "http://10.1.2.3:99/", true),
            ("10.1.2.3:80", "http://10.1.2.3:99/", false),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd00::/8", "http://[fe12::1]/", false),
            ("0.0.0.0/0", "http://[fe12::1]/", false),
            ("::/0", "http://[fe12::1]/", true),
            ("[fd12::1]:81", "http://[fd12::1]:81/", true),
            ("[fd12::1]", "http://[fd12::1]:81/", true),
            ("fd12::1", "http://[fd12::1]:81/", true),
            ("10.0.0.0/33", "http://10.0.0.1/", false),
            ("*", "https://any.example/", true),
            ("a.example, b.example", "http://b.example/", true),
            ("a.example b.example", "http://b.example/", true),
            (" ,,.,:", "http://b.example/", false),
        ] {
            for name in ["NO_PROXY", "no_proxy"] {
                let rules = rules(&[("ALL_PROXY", "http://proxy:1"), (name, entry)]);
                let found = rules.find(&url(url_text)).unwrap();
                assert_eq!(found.is_none(), is_direct, "{entry}: {url_text}");
            }
        }
    }

    #[test]
    fn variable_of_a_scheme_comes_before_the_one_of_all_and_empty_ones_do_not_count() {
        let plain = url("http://server.example/");
        for (variables, expected) in [
            (
                &[("HTTP_PROXY", "a:1"), ("ALL_PROXY", "b:1")][..],
                "HTTP_PROXY",
            ),
            (&[("HTTP_PROXY", ""), ("http_proxy", "b:1")], "http_proxy"),
            (&[("HTTPS_PROXY", "a:1"), ("all_proxy", "b:1")], "all_proxy"),
            (
                &[
                    ("REQUEST_METHOD", "GET"),
                    ("HTTP_PROXY", "a:1"),
                    ("ALL_PROXY", "b:1"),
                ],
                "ALL_PROXY",
            ),
        ] {
            let proxy = rules(variables).find(&plain).unwrap().unwrap();
            assert_eq!(proxy.variable, expected);
        }
        assert!(
            rules(&[("HTTPS_PROXY", "a:1")])
                .find(&plain)
                .unwrap()
                .is_none()
        );
        assert!(rules(&[]).find(&plain).unwrap().is_none());
    }

    #[test]
    fn value_that_cannot_be_used_names_its_variable_and_not_its_password() {
        let plain = url("http://server.example/");
        for value in [
            "socks://user:canary@proxy:1080",
            "socks4://proxy:1080",
            "ftp://canary@proxy",
            "http://",
            "http://:8080",
            "http://user:can/ary@proxy:1",
            "http://user:can#ary@proxy:1",
            "http://proxy:99999",
            "canary proxy",
            "DOMAIN\\canary:pw@proxy:1",
            "://canary",
        ] {
            let rules = rules(&[("ALL_PROXY", value), ("NO_PROXY", "direct.example")]);
            let error = rules.find(&plain).expect_err(value).to_string();
            assert!(error.starts_with("`ALL_PROXY` does not name"), "{error}");
            assert!(
                error.contains("`socks5` or `socks5h`") && error.len() < 190,
                "{error}"
            );
            assert!(!error.contains("canary"), "{error}");
            assert!(
                rules
                    .find(&url("http://direct.example/"))
                    .unwrap()
                    .is_none()
            );
        }
        let error = rules(&[("HTTP_PROXY", "socks://proxy")]).find(&plain);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("the scheme `socks`")
        );
    }

    #[test]
    fn forms_of_a_proxy_have_their_protocol_port_and_credentials() {
        let plain = url("http://server.example/");
        for (value, kind, uri) in [
            ("proxy:3128", ProxyKind::Http, "http://proxy:3128/"),
            (
                " http://proxy:3128/path ",
                ProxyKind::Http,
                "http://proxy:3128/",
            ),
            ("https://proxy", ProxyKind::Http, "https://proxy/"),
            ("SOCKS5://proxy", ProxyKind::Socks5, "socks5://proxy:1080/"),
            (
                "socks5h://[::1]:9",
                ProxyKind::Socks5ByName,
                "socks5h://[::1]:9/",
            ),
        ] {
            let proxy = rules(&[("HTTP_PROXY", value)]).find(&plain).expect(value);
            let proxy = proxy.expect(value);
            assert_eq!((proxy.kind, proxy.uri.to_string().as_str()), (kind, uri));
        }
        let proxy = rules(&[("HTTP_PROXY", "socks5://u:p%40q@proxy:1")]).find(&plain);
        assert_eq!(proxy.unwrap().unwrap().raw_auth(), Some(("u", "p@q")));
    }
}
