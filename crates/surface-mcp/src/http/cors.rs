//! The headers that permit a page of an admitted origin to use the endpoint (Fetch standard, CORS).

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use super::headers::PARAM_PREFIX;
use super::reply::{self, ReplyBody};

/// The headers of replies that a page may read.
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";
const METHODS: &str = "POST, GET, DELETE";
/// The headers of requests that a page may set, in addition to the headers of arguments and of the secret.
const ALLOWED: [&str; 9] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "x-api-key",
];
/// How long a browser may keep the answer to a preflight.
const MAX_AGE_SECONDS: &str = "600";
/// The maximum number of headers that a preflight asks for.
const MAX_ASKED: usize = 64;

/// Adds the headers for the origin of the request to a reply. The origin was admitted. Without an origin only `Vary` is
/// added.
pub fn add_headers(request: &HeaderMap, reply: &mut HeaderMap) {
    reply.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = request.get(header::ORIGIN) {
        reply.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        reply.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED),
        );
    }
}

/// The answer to `OPTIONS`. `key_header` is the configured header of the secret.
pub fn preflight(parts: &Parts, key_header: Option<&HeaderName>) -> Response<ReplyBody> {
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(super::METHODS));
    if !is_preflight(parts) {
        return response;
    }
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(METHODS),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(MAX_AGE_SECONDS),
    );
    let allowed = allowed(&parts.headers, key_header);
    if let Ok(allowed) = HeaderValue::try_from(allowed.join(", "))
        && !allowed.is_empty()
    {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

/// Whether a request is the question of a browser before another request.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts.headers.contains_key(header::ORIGIN)
        && parts
            .headers
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The headers that a preflight asks for and that a page may set.
fn allowed<'h>(request: &'h HeaderMap, key_header: Option<&HeaderName>) -> Vec<&'h str> {
    let values = request
        .get_all(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(',')).map(str::trim);
    let may_be_set = |name: &&str| {
        let lower = name.to_ascii_lowercase();
        let is_name = HeaderName::from_bytes(lower.as_bytes()).is_ok();
        is_name
            && (ALLOWED.contains(&lower.as_str())
                || lower.starts_with(PARAM_PREFIX)
                || key_header.is_some_and(|key| key.as_str() == lower))
    };
    names.take(MAX_ASKED).filter(may_be_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn preflight_for(asked: &str) -> HeaderMap {
        let request = Request::builder()
            .method("OPTIONS")
            .header("origin", "http://localhost:6274")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", asked);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let key = HeaderName::from_static("x-broker-key");
        preflight(&parts, Some(&key)).into_parts().0.headers
    }

    #[test]
    fn preflight_allows_the_headers_of_mcp_and_of_the_secret() {
        let headers = preflight_for(
            "Content-Type, mcp-param-region, MCP-Session-Id, X-Broker-Key, cookie, x-evil, bad name",
        );
        assert_eq!(
            headers["access-control-allow-headers"],
            "Content-Type, mcp-param-region, MCP-Session-Id, X-Broker-Key"
        );
        assert_eq!(headers["access-control-allow-methods"], METHODS);
        assert!(!headers.contains_key("access-control-allow-credentials"));
        assert!(!preflight_for("cookie").contains_key("access-control-allow-headers"));
    }

    #[test]
    fn reply_names_the_origin_of_its_request_and_never_every_origin() {
        let mut reply = HeaderMap::new();
        add_headers(&HeaderMap::new(), &mut reply);
        assert!(!reply.contains_key("access-control-allow-origin"));
        assert_eq!(reply["vary"], "Origin");
        let mut request = HeaderMap::new();
        request.insert(
            header::ORIGIN,
            HeaderValue::from_static("http://[::1]:3000"),
        );
        let mut reply = HeaderMap::new();
        add_headers(&request, &mut reply);
        assert_eq!(reply["access-control-allow-origin"], "http://[::1]:3000");
        assert_eq!(reply["access-control-expose-headers"], EXPOSED);
    }
}
