//! The address of a broker in the command line: a port, `host:port`, or a URL with the path before its routes.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::cli::{WORDS, split_address};

/// The ports of URLs that name none.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// The path before the routes, without a slash at its end.
    pub(super) base_path: String,
    /// Whether the URL has `https`.
    pub(super) is_tls: bool,
    /// A file with certificates to trust besides those of the system.
    pub(super) ca_file: Option<PathBuf>,
}

impl Target {
    /// Parses the argument; fails with a message.
    pub(crate) fn parse(typed: &str) -> Result<Self, String> {
        let of_tls = typed.strip_prefix("https://");
        let of_url = typed.strip_prefix("http://").or(of_tls);
        let is_tls = of_tls.is_some();
        let (address, base_path) = split_path(of_url.unwrap_or(typed));
        if typed == "stdio" {
            return Err("a broker on `stdio` has no address to ask".to_owned());
        }
        let is_wrong = |text: &str, marks: &[char]| {
            text.contains(marks) || text.chars().any(|c| c.is_whitespace() || c.is_control())
        };
        let (host, port) = match of_url {
            // A URL without a port, as a proxy has it.
            Some(_) if !address.is_empty() && !address.contains([':', '[']) => match is_tls {
                true => (address, HTTPS_PORT),
                false => (address, HTTP_PORT),
            },
            _ => split_address(address, WORDS)?,
        };
        let is_misplaced = !base_path.is_empty() && of_url.is_none();
        if is_misplaced || is_wrong(host, &['@', '?', '#']) || is_wrong(base_path, &['?', '#']) {
            return Err(format!(
                "`{}` is not a port, `host:port`, for example `127.0.0.1:8100`, or a URL such as `http://tools.example.org/gateway`",
                typed.escape_debug()
            ));
        }
        if port == 0 {
            return Err(
                "port 0 is not an address: the broker prints the address when it starts".to_owned(),
            );
        }
        // A broker that listens on all addresses is asked on loopback.
        let host = match host {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            base_path: base_path.to_owned(),
            is_tls,
            ca_file: None,
        })
    }

    /// Returns the address with a file of certificates to trust; fails with a message if it has no TLS.
    pub(crate) fn trusting(self, ca_file: Option<PathBuf>) -> Result<Self, String> {
        if ca_file.is_some() && !self.is_tls {
            let message = "`--ca-file` is for a URL with `https`";
            return Err(format!("{message}, and `{}` has none", self.shown()));
        }
        Ok(Self { ca_file, ..self })
    }

    /// Whether it is an address of this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        address.map_or(self.host == "localhost", |address| address.is_loopback())
    }

    /// As in a URL.
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// As a URL.
    pub(crate) fn shown(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.base_path)
    }
}

/// Splits an address from the path behind it; the path has neither the route of MCP clients nor a slash at its end.
fn split_path(text: &str) -> (&str, &str) {
    let (address, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let path = path.trim_end_matches('/');
    (address, path.strip_suffix("/mcp").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_target_is_an_address_or_a_url() {
        for (typed, shown) in [
            ("127.0.0.1:8100", "http://127.0.0.1:8100"),
            ("8100", "http://127.0.0.1:8100"),
            ("http://localhost:8100/", "http://localhost:8100"),
            ("[::1]:8100", "http://[::1]:8100"),
            ("0.0.0.0:8100", "http://127.0.0.1:8100"),
            ("http://[::]:1", "http://[::1]:1"),
            ("http://a:1/gateway/", "http://a:1/gateway"),
            ("http://a:1/gateway/mcp", "http://a:1/gateway"),
            ("http://a.example/b/c", "http://a.example:80/b/c"),
            ("http://a.example", "http://a.example:80"),
            ("https://a.example/b/mcp", "https://a.example:443/b"),
            ("https://[::1]:1", "https://[::1]:1"),
        ] {
            assert_eq!(
                Target::parse(typed).map(|target| target.shown()),
                Ok(shown.to_owned())
            );
        }
        for typed in [
            "",
            "localhost",
            "127.0.0.1",
            "https://",
            "https://u@a:1",
            "ftp://a:1",
            "a:1/sources",
            "http://",
            "http://a:1/b?c",
            "http://a:1/b c",
            "http://u@a:1",
            "a b:1",
            "stdio",
            "a:0",
            "a\r\nX:1",
        ] {
            assert!(Target::parse(typed).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn file_of_certificates_is_for_tls_only() {
        let trusting = |typed| {
            Target::parse(typed)
                .unwrap()
                .trusting(Some("ca.pem".into()))
        };
        assert!(trusting("https://a").is_ok());
        assert!(trusting("http://a").unwrap_err().contains("--ca-file"));
        assert!(trusting("8100").is_err());
    }
}
