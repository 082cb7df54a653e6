//! Fetches the key set of an issuer: discovery of its place, then the set. Redirects are not followed, and only the two
//! requests are sent.

use std::error::Error;
use std::time::Duration;

use broker_config::identities::{Issuer, KeySetPlace};
use broker_http_client::{HttpTransport, Proxies, Response, root_message};
use broker_model::text::shown_line;
use broker_model::url::{HttpUrl, Origin};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use url::Url;

use super::parse::{ReadSet, parse};

/// Maximum time of a fetch, all requests together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 256 << 10;
const OPENID: &str = "/.well-known/openid-configuration";
const OAUTH: &str = "/.well-known/oauth-authorization-server";

/// A key set, and its lifetime according to the issuer.
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

/// Returns the place that the issuer's document names: the document of OpenID Connect, or the document of RFC 8414 if
/// the first one is missing.
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

/// Whether the place is protected. Only an issuer on this machine may name a place without TLS on this machine.
fn is_protected(set: &Origin, issuer: &Origin) -> bool {
    set.is_tls() || set.is_loopback() && issuer.is_loopback()
}

async fn get(url: &HttpUrl) -> Result<Response, FetchError> {
    let parsed = Url::parse(&url.expose()).map_err(|error| unreachable(url, &error))?;
    let proxies = match url.origin().is_loopback() {
        true => Proxies::None,
        false => Proxies::Environment,
    };
    // Requests are rare, so a client is made for each request: no connection stays open, and new certificates of the
    // system are used.
    let of_client = parsed.clone();
    let client = spawn_blocking(move || HttpTransport::new(&of_client, Vec::new(), proxies)).await;
    let client = client.map_err(|error| FetchError::Client(error.to_string()))?;
    let client = client.map_err(|error| FetchError::Client(shown_reason(&*error)))?;
    let target = client.target(parsed);
    let target = target.map_err(|error| unreachable(url, &error))?;
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let sent = client.send(Method::GET, &target, headers, Bytes::new());
    sent.await.map_err(|error| unreachable(url, &error))
}

fn unreachable(url: &HttpUrl, error: &dyn Error) -> FetchError {
    FetchError::Unreachable {
        url: url.clone(),
        reason: shown_reason(error),
    }
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

/// Reads the body, of at most [`MAX_DOCUMENT_BYTES`] after decompression.
async fn body_of(mut answer: Response, url: &HttpUrl) -> Result<Vec<u8>, FetchError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer
        .chunk()
        .await
        .map_err(|error| unreachable(url, &error))?
    {
        if body.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Err(FetchError::TooLarge { url: url.clone() });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns `max-age` of `Cache-Control`.
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

/// Returns the reason that an error names, in one line.
fn shown_reason(error: &dyn Error) -> String {
    shown_line(&root_message(error), 200)
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
