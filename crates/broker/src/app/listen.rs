//! Binds a socket to `host:port`, and detects whether other machines can reach it.

use std::io;
use std::net::SocketAddr;

use broker_model::{Diagnostic, DiagnosticCode};
use tokio::net::{TcpListener, lookup_host};

use super::failure::Failure;
use crate::cli::split_address;

/// The addresses that `text` names, IPv4 first: most clients try it first for `localhost`. The message on
/// another text may suggest one of `words`.
pub(super) async fn resolve(
    text: &str,
    words: &[&'static str],
) -> Result<Vec<SocketAddr>, Failure> {
    let (host, port) = split_address(text, words).map_err(Failure::Usage)?;
    let mut addresses: Vec<_> = lookup_host((host, port))
        .await
        .map_err(|error| Failure::bind(text, &error))?
        .collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.dedup();
    Ok(addresses)
}

/// The diagnostic for an address that other machines can reach, if callers need no credential.
pub(super) fn open_bind(text: &str, addresses: &[SocketAddr]) -> Option<Diagnostic> {
    (!are_local(addresses)).then(|| {
        Diagnostic::error(
            DiagnosticCode::BindOpen,
            format!("`{text}` is reachable from other machines, and callers without a credential may call tools"),
        )
    })
}

/// The diagnostic for an address of metrics that other machines can reach, beside a surface that has no callers with
/// credentials.
pub(super) fn open_metrics(text: &str, addresses: &[SocketAddr]) -> Option<Diagnostic> {
    (!are_local(addresses)).then(|| {
        let message = format!(
            "`{text}` is reachable from other machines; over stdio, `telemetry.metrics_bind` is an address of this machine"
        );
        Diagnostic::error(DiagnosticCode::BindOpen, message).at("/telemetry/metrics_bind")
    })
}

/// The diagnostic for an address that other machines can reach, if the catalog was not compiled in.
pub(super) fn not_local(text: &str, addresses: &[SocketAddr]) -> Option<Diagnostic> {
    (!are_local(addresses)).then(|| {
        Diagnostic::error(
            DiagnosticCode::ServeOpen,
            format!(
                "`{text}` is reachable from other machines, and `serve` reads the lock at start"
            ),
        )
    })
}

/// Whether only this machine can reach every one of these addresses.
fn are_local(addresses: &[SocketAddr]) -> bool {
    let mut ips = addresses.iter().map(|address| address.ip().to_canonical());
    ips.all(|ip| ip.is_loopback())
}

/// Binds the first address that can be bound.
pub(super) async fn bind(text: &str, addresses: &[SocketAddr]) -> Result<TcpListener, Failure> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in addresses {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(Failure::bind(text, &last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::WORDS;
    use broker_model::exit::Exit;

    async fn open(text: &str) -> bool {
        let addresses = resolve(text, WORDS).await.unwrap();
        let open = open_bind(text, &addresses).is_some();
        assert_eq!(not_local(text, &addresses).is_some(), open, "{text}");
        open
    }

    #[tokio::test]
    async fn listener_on_a_public_address_is_open() {
        for text in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:10.0.0.1]:0"] {
            assert!(open(text).await, "{text}");
        }
        for text in [
            "127.0.0.1:0",
            "127.1.2.3:0",
            "[::1]:0",
            "[::ffff:127.0.0.1]:0",
            "localhost:0",
            "0",
        ] {
            assert!(!open(text).await, "{text}");
        }
    }

    #[tokio::test]
    async fn listener_on_a_used_port_is_refused_with_the_address() {
        let taken = bind("", &resolve("127.0.0.1:0", WORDS).await.unwrap())
            .await
            .unwrap();
        let text = taken.local_addr().unwrap().to_string();
        let failure = bind(&text, &resolve(&text, WORDS).await.unwrap())
            .await
            .unwrap_err();
        assert_eq!(failure.exit(), Exit::Bind);
        assert!(matches!(failure, Failure::Bind { address, .. } if address == text));
    }
}
