//! Asks a registry of MCP for the entry of a server, by its API of version 0. There is no registry without `--registry`.

use std::net::IpAddr;
use std::time::Duration;

use broker_http_client::{HttpTransport, Proxies, root_message};
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};
use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::cli::working::Working;

/// Maximum time of the request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of the answer.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Maximum characters of a name or an error in a message.
const MAX_SHOWN: usize = 200;

/// Returns the answer for `NAME` or `NAME@VERSION`.
pub(super) async fn entry(registry: &str, name: &str) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let refused = |message: String| {
        let problem = Diagnostic::error(DiagnosticCode::ImportServers, message);
        vec![problem.help("check the name, and the URL of `--registry`")]
    };
    let url = entry_url(registry, name).map_err(refused)?;
    let working = Working::begin("asking the registry");
    let asked = tokio::time::timeout(REQUEST_TIMEOUT, ask(url));
    let answer = asked.await.unwrap_or_else(|_| {
        let seconds = REQUEST_TIMEOUT.as_secs();
        Err(format!("the registry did not answer within {seconds} s"))
    });
    drop(working);
    answer.map_err(refused)
}

/// Returns the URL of an entry.
fn entry_url(registry: &str, name: &str) -> Result<Url, String> {
    let base =
        Url::parse(registry).map_err(|error| format!("`--registry` is not a URL: {error}"))?;
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_local = address.map_or(host == "localhost", |address| address.is_loopback());
    if !(base.scheme() == "https" || base.scheme() == "http" && is_local) {
        return Err("`--registry` has to be an `https` URL, or of this machine".to_owned());
    }
    if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
        return Err("`--registry` has a user, a password or a query; leave it out".to_owned());
    }
    let (name, version) = name.rsplit_once('@').unwrap_or((name, "latest"));
    if name.is_empty() || version.is_empty() {
        return Err("`registry:NAME` has no name".to_owned());
    }
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let path = base.as_str().trim_end_matches('/');
    let url = format!(
        "{path}/v0/servers/{}/versions/{}",
        encoded(name),
        encoded(version)
    );
    Url::parse(&url).map_err(|error| format!("the entry has no URL: {error}"))
}

async fn ask(url: Url) -> Result<Vec<u8>, String> {
    let of_client = url.clone();
    let made = tokio::task::spawn_blocking(move || {
        // A URL without TLS is of this machine.
        let proxies = match of_client.scheme() {
            "https" => Proxies::Environment,
            _ => Proxies::None,
        };
        let made = HttpTransport::new(&of_client, Vec::new(), proxies);
        made.map_err(|error| root_message(&*error))
    });
    let failed = |reason: String| {
        format!(
            "the registry cannot be asked: {}",
            shown_line(&reason, MAX_SHOWN)
        )
    };
    let transport = made
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(failed)?;
    let target = transport
        .target(url)
        .map_err(|error| failed(error.to_string()))?;
    let asked = transport.send(Method::GET, &target, HeaderMap::new(), Bytes::new());
    let mut response = asked.await.map_err(|error| failed(root_message(&error)))?;
    match response.status().as_u16() {
        200 => {}
        404 => return Err("the registry does not know this server or version".to_owned()),
        status => {
            return Err(format!(
                "the registry answered {status}; redirects are not followed"
            ));
        }
    }
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| failed(root_message(&error)))?
    {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(format!(
                "the answer of the registry has more than {MAX_ANSWER_BYTES} bytes"
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_an_entry_is_encoded_or_refused() {
        let url = |registry, name| entry_url(registry, name).map(|url| url.to_string());
        assert_eq!(
            url("https://r.example/x/", "io.example/a"),
            Ok("https://r.example/x/v0/servers/io%2Eexample%2Fa/versions/latest".to_owned())
        );
        assert_eq!(
            url("http://127.0.0.1:1", "a/../b@1.0.0"),
            Ok("http://127.0.0.1:1/v0/servers/a%2F%2E%2E%2Fb/versions/1%2E0%2E0".to_owned())
        );
        for registry in [
            "",
            "r.example",
            "http://r.example",
            "ftp://r",
            "https://u:p@r.example",
            "https://r.example?k=v",
        ] {
            let error = url(registry, "a").unwrap_err();
            assert!(!error.contains("u:p"), "{error}");
        }
        for name in ["", "@1", "a@"] {
            assert!(url("https://r.example", name).is_err(), "{name}");
        }
    }
}
