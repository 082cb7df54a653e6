//! The address of a broker in the command line: a port, `host:port` or `http://host:port`.

use crate::cli::{WORDS, split_address};

/// A broker's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    /// Parses the argument; fails with a message.
    pub(crate) fn parse(typed: &str) -> Result<Self, String> {
        if typed.starts_with("https://") {
            return Err(
                "`https` is not supported: ask the broker behind the proxy, for example `127.0.0.1:8100`"
                    .to_owned(),
            );
        }
        let address = typed.strip_prefix("http://").unwrap_or(typed);
        let address = address.strip_suffix('/').unwrap_or(address);
        if typed == "stdio" {
            return Err("a broker on `stdio` has no address to ask".to_owned());
        }
        let (host, port) = split_address(address, WORDS)?;
        if host.contains(['/', '@', '?', '#'])
            || host.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(format!(
                "`{}` is not a port or `host:port`, for example `127.0.0.1:8100`",
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
        })
    }

    /// As in a `Host` header.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// As a URL.
    pub(crate) fn shown(&self) -> String {
        format!("http://{}", self.authority())
    }
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
            "https://a:1",
            "http://a:1/sources",
            "http://u@a:1",
            "a b:1",
            "stdio",
            "a:0",
            "a\r\nX:1",
        ] {
            assert!(Target::parse(typed).is_err(), "{typed:?}");
        }
    }
}
