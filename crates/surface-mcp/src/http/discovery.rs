//! Requests for the discovery document: their recognition and their replies.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use super::ModeRoute;
use super::headers::MCP_PREFIX;
use super::reply::{self, EVENT_STREAM, ReplyBody};
use crate::adapter::Document;

/// Whether a request without a message asks for the document: `GET` of `/mcp` and `/v1/mcp` without a header of MCP
/// and without `text/event-stream` in `Accept`, and `OPTIONS` of `/v1/mcp` other than a preflight.
pub fn is_asked_for(route: ModeRoute, parts: &Parts) -> bool {
    match (&parts.method, route) {
        (_, ModeRoute::Fixed(_)) | (&Method::OPTIONS, ModeRoute::Configured) => false,
        (&Method::OPTIONS, ModeRoute::V1) => !super::cors::is_preflight(parts),
        (&Method::GET, _) => !has_mcp_header(&parts.headers) && !names_event_stream(&parts.headers),
        _ => false,
    }
}

fn has_mcp_header(headers: &HeaderMap) -> bool {
    let mut names = headers.keys();
    names.any(|name| name.as_str().starts_with(MCP_PREFIX) || name == "last-event-id")
}

/// Whether a value of `Accept` has the name of the media type; a range such as `*/*` has not.
fn names_event_stream(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut ranges = texts.flat_map(|text| text.split(','));
    ranges.any(|range| {
        let media = range.split(';').next().unwrap_or_default();
        media.trim().eq_ignore_ascii_case(EVENT_STREAM)
    })
}

/// The reply with a document, or 304 if the client has it.
pub(super) fn reply(request: &HeaderMap, document: Document) -> Response<ReplyBody> {
    let mut response = match has_it(request, &document.etag) {
        true => reply::empty(StatusCode::NOT_MODIFIED),
        false => reply::json(StatusCode::OK, document.body),
    };
    if let Ok(etag) = HeaderValue::try_from(document.etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    let no_cache = HeaderValue::from_static("no-cache");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_cache);
    response
}

/// Whether `If-None-Match` has the entity tag. The comparison is weak (RFC 9110, 13.1.2).
fn has_it(request: &HeaderMap, etag: &str) -> bool {
    let values = request.get_all(header::IF_NONE_MATCH).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use broker_config::McpMode;

    use super::*;

    fn asks(method: &str, route: ModeRoute, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("valid").into_parts();
        is_asked_for(route, &parts)
    }

    #[test]
    fn get_without_headers_of_mcp_asks_for_the_document() {
        for route in [ModeRoute::Configured, ModeRoute::V1] {
            assert!(asks("GET", route, &[]));
            assert!(asks("GET", route, &[("accept", "*/*")]));
            assert!(asks(
                "GET",
                route,
                &[("accept", "text/html, application/json;q=0.9")]
            ));
            for stream in [
                "text/event-stream",
                "application/json, Text/Event-Stream;q=1",
            ] {
                assert!(!asks("GET", route, &[("accept", stream)]), "{stream}");
            }
            for header in [
                "mcp-session-id",
                "mcp-protocol-version",
                "mcp-method",
                "last-event-id",
            ] {
                assert!(!asks("GET", route, &[(header, "x")]), "{header}");
            }
            assert!(!asks("DELETE", route, &[]) && !asks("POST", route, &[]));
        }
        assert!(!asks("GET", ModeRoute::Fixed(McpMode::Meta), &[]));
    }

    #[test]
    fn preflight_is_never_answered_by_the_document() {
        let preflight = [
            ("origin", "http://localhost"),
            ("access-control-request-method", "GET"),
        ];
        assert!(asks("OPTIONS", ModeRoute::V1, &[]));
        assert!(asks("OPTIONS", ModeRoute::V1, &preflight[..1]));
        assert!(!asks("OPTIONS", ModeRoute::V1, &preflight));
        assert!(!asks("OPTIONS", ModeRoute::Configured, &[]));
    }

    #[test]
    fn client_that_has_the_document_gets_its_tag_only() {
        let document = Document {
            body: "{}".into(),
            etag: "\"a\"".to_owned(),
        };
        let status = |tags: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::IF_NONE_MATCH,
                HeaderValue::try_from(tags).expect("valid"),
            );
            let response = reply(&headers, document.clone());
            assert_eq!(response.headers()["etag"], "\"a\"");
            response.status().as_u16()
        };
        for same in ["\"a\"", "W/\"a\"", "\"b\", \"a\"", "*"] {
            assert_eq!(status(same), 304, "{same}");
        }
        assert_eq!(status("\"b\""), 200);
    }
}
