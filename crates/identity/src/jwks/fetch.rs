//! Fetches the key set of an issuer: discovery of its place, then the set. No redirect is followed, and nothing is sent
//! but the two requests.

use std::error::Error;
use std::time::Duration;

use broker_model::config::identities::{Issuer, KeySetPlace};
use broker_model::text::shown_line;
use broker_model::url::{HttpUrl, Origin};
use reqwest::header::{ACCEPT, CACHE_CONTROL, HeaderMap};
use reqwest::{Client, Response, StatusCode, redirect, retry};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::parse::{ReadSet, parse};

/// Maximum time of a fetch, all requests together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 256 << 10;
/// Maximum number of headers in an answer.
const MAX_HEADERS: usize = 128;
const OPENID: &str = "/.well-known/openid-configuration";
const OAUTH: &str = "/.well-known/oauth-authorization-server";

/// A key set, and the time for which its issuer lets it be kept.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) read: ReadSet,
    pub(crate) max_age: Option<Duration>,
}

/// Why a key set was not fetched. Texts of the issuer are shown in one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
    #[error("`{url}` cannot be reached: {reason}")]
    Unreachable { url: HttpUrl, reason: String },
    #[error("`{url}` answers with HTTP status {status}")]
    Status { url: HttpUrl, status: u16 },
    #[error(
        "`{url}` redirects with HTTP status {status}, which is not followed; write the final URL into the config"
    )]
    Redirect { url: HttpUrl, status: u16 },
    #[error("`{url}` answers with more than {MAX_DOCUMENT_BYTES} bytes")]
    TooLarge { url: HttpUrl },
    #[error("`{url}` is not {expected}")]
    Content {
        url: HttpUrl,
        expected: &'static str,
    },
    #[error("`{url}` has the issuer `{found}`, which is not the configured one")]
    OtherIssuer { url: HttpUrl, found: String },
    #[error("`{url}` names a key set that is not protected by `https`, or not a URL")]
    KeySetUrl { url: HttpUrl },
    #[error("it took longer than {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
}

/// The members of both discovery documents that matter.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Fetches the set of an issuer.
pub(crate) async fn fetch(issuer: &Issuer) -> Result<Fetched, FetchError> {
    timeout(FETCH_TIMEOUT, fetch_set(issuer))
        .await
        .unwrap_or(Err(FetchError::Timeout))
}

async fn fetch_set(issuer: &Issuer) -> Result<Fetched, FetchError> {
    let url = match &issuer.jwks {
        KeySetPlace::Url(url) => url.clone(),
        KeySetPlace::Discover => discover(issuer).await?,
    };
    let answer = successful(get(&url).await?, &url)?;
    let max_age = max_age(answer.headers());
    let body = body_of(answer, &url).await?;
    let read = parse(&body).ok_or(FetchError::Content {
        url,
        expected: "a key set",
    })?;
    Ok(Fetched { read, max_age })
}

/// The place that the issuer's document names: that of OpenID Connect, and if there is none that of RFC 8414.
async fn discover(issuer: &Issuer) -> Result<HttpUrl, FetchError> {
    let path = issuer.url.path().trim_end_matches('/');
    let openid = issuer.url.clone().with_path(&format!("{path}{OPENID}"));
    let (mut url, mut answer) = (openid.clone(), get(&openid).await?);
    if answer.status() == StatusCode::NOT_FOUND {
        url = issuer.url.clone().with_path(&format!("{OAUTH}{path}"));
        answer = get(&url).await?;
    }
    let body = body_of(successful(answer, &url)?, &url).await?;
    let Ok(metadata) = serde_json::from_slice::<Metadata>(&body) else {
        let expected = "a discovery document with `issuer` and `jwks_uri`";
        return Err(FetchError::Content { url, expected });
    };
    if metadata.issuer != issuer.issuer {
        let found = shown_line(&metadata.issuer, 200);
        return Err(FetchError::OtherIssuer { url, found });
    }
    let set = HttpUrl::parse(&metadata.jwks_uri).ok();
    let set = set.filter(|set| is_protected(set.origin(), issuer.url.origin()));
    set.ok_or(FetchError::KeySetUrl { url })
}

/// Only an issuer on this machine may name a place without TLS on this machine.
fn is_protected(set: &Origin, issuer: &Origin) -> bool {
    set.is_tls() || set.is_loopback() && issuer.is_loopback()
}

async fn get(url: &HttpUrl) -> Result<Response, FetchError> {
    let origin = url.origin().clone();
    // A client is made for each request, which there are few of: no connection stays open, and new certificates of
    // the system are used.
    let client = spawn_blocking(move || client(&origin)).await;
    let client = client.map_err(|error| FetchError::Client(error.to_string()))?;
    let client = client.map_err(|error| FetchError::Client(root_message(&error)))?;
    let request = client.get(url.expose()).header(ACCEPT, "application/json");
    request
        .send()
        .await
        .map_err(|error| unreachable(url, error))
}

fn unreachable(url: &HttpUrl, error: reqwest::Error) -> FetchError {
    FetchError::Unreachable {
        url: url.clone(),
        reason: root_message(&error.without_url()),
    }
}

fn client(origin: &Origin) -> Result<Client, reqwest::Error> {
    // A program that embeds the broker may have chosen its provider.
    if rustls::crypto::CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider()
            .install_default()
            .is_err()
    {
        tracing::trace!("another thread has installed a provider");
    }
    let mut builder = Client::builder()
        .user_agent(concat!("mcp-broker/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(retry::never().max_retries_per_request(0))
        .referer(false)
        .http1_max_headers(MAX_HEADERS)
        .http1_only();
    if origin.is_loopback() {
        builder = builder.no_proxy();
    }
    if !origin.is_tls() {
        // The certificates of the system are not read for a connection without TLS.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

fn successful(answer: Response, url: &HttpUrl) -> Result<Response, FetchError> {
    let (url, status) = (url.clone(), answer.status());
    match status {
        StatusCode::OK => Ok(answer),
        redirection if redirection.is_redirection() => {
            let status = status.as_u16();
            Err(FetchError::Redirect { url, status })
        }
        other => {
            let status = other.as_u16();
            Err(FetchError::Status { url, status })
        }
    }
}

/// The body, of at most [`MAX_DOCUMENT_BYTES`] after decompression.
async fn body_of(mut answer: Response, url: &HttpUrl) -> Result<Vec<u8>, FetchError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer
        .chunk()
        .await
        .map_err(|error| unreachable(url, error))?
    {
        if body.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Err(FetchError::TooLarge { url: url.clone() });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// `max-age` of `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter();
    let mut directives = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    directives.find_map(|directive| {
        let (name, value) = directive.trim().split_once('=')?;
        let seconds = value.trim_matches('"').parse().ok()?;
        name.eq_ignore_ascii_case("max-age")
            .then(|| Duration::from_secs(seconds))
    })
}

/// The message of the innermost error, which names the reason.
fn root_message(error: &dyn Error) -> String {
    let mut innermost = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        innermost = error.to_string();
        source = error.source();
    }
    shown_line(&innermost, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_age_is_read_from_any_form_of_the_header() {
        for (value, seconds) in [
            ("max-age=600", Some(600)),
            ("public, Max-Age=\"60\" , must-revalidate", Some(60)),
            ("s-maxage=1,max-age=2", Some(2)),
            ("max-age=-1", None),
            ("no-store", None),
            ("max-age", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, value.parse().unwrap());
            assert_eq!(
                max_age(&headers),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
    }

    #[test]
    fn key_set_without_tls_is_read_on_this_machine_only() {
        let origin = |url: &str| HttpUrl::parse(url).unwrap().origin().clone();
        for (set, issuer, is_allowed) in [
            ("https://keys.example", "https://idp.example", true),
            ("http://keys.example", "https://idp.example", false),
            ("http://127.0.0.1:1", "https://idp.example", false),
            ("http://127.0.0.1:1", "http://localhost", true),
            ("http://keys.example", "http://localhost", false),
        ] {
            assert_eq!(
                is_protected(&origin(set), &origin(issuer)),
                is_allowed,
                "{set}"
            );
        }
    }
}
