//! The upgrade of a connection to WebSocket (RFC 6455, 4.2): the checks of the listener come before it, and credentials
//! may be where browsers can put them.

use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use broker_model::CallCode;
use data_encoding::BASE64URL_NOPAD;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::HttpSurface;
use crate::listener::Caller;
use crate::pipeline::{API_KEY, Admitted, Refusal};
use broker_core::{Broker, Identity, RequestId, Subject};
use broker_surface_mcp::McpSettings;
use broker_surface_mcp::http::{
    McpEndpoint, ModeRoute, ReplyBody, WebSocketClient, empty_reply, error_reply,
};

/// The parameter of the query with a key or the secret, for clients that can set no header.
const KEY_PARAMETER: &str = "api_key";
/// The subprotocol of the messages.
const SUBPROTOCOL: &str = "mcp";
/// The beginning of an offered subprotocol that is a key.
const KEY_SUBPROTOCOL: &str = "key.";
/// The only version of WebSocket.
const VERSION: &[u8] = b"13";
/// The message to a request that does not ask for an upgrade.
pub(super) const UPGRADE_MESSAGE: &str = "the route is for WebSocket, version 13: send `Connection: Upgrade`, `Upgrade: websocket`, `Sec-WebSocket-Version: 13` and `Sec-WebSocket-Key`";

/// The credentials of a request outside the usual headers.
#[derive(Debug, Default)]
pub(crate) struct OtherCredentials {
    query: Option<Result<HeaderValue, &'static str>>,
}

/// Removes the key from the target of a request. Must be called before anything reads the target.
pub(crate) fn take_key(parts: &mut Parts) -> OtherCredentials {
    let Some(query) = parts.uri.query() else {
        return OtherCredentials::default();
    };
    let is_key = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        percent_decode_str(name).decode_utf8_lossy() == KEY_PARAMETER
    };
    let mut keys = query.split('&').filter(is_key);
    let found = match (keys.next(), keys.next()) {
        (None, _) => return OtherCredentials::default(),
        (Some(_), Some(_)) => Err("the query has `api_key` twice"),
        (Some(pair), None) => {
            let value = pair.split_once('=').map_or("", |(_, value)| value);
            let decoded: Vec<u8> = percent_decode_str(value).collect();
            HeaderValue::from_bytes(&decoded).map_err(|_| "`api_key` has a control character")
        }
    };
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_key(pair)).collect();
    let path = parts.uri.path();
    let target = match rest.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", rest.join("&")),
    };
    parts.uri = with_target(&parts.uri, &target);
    OtherCredentials { query: Some(found) }
}

/// Returns the URI with another path and query; the root if the parts do not fit. The root has no key either.
fn with_target(uri: &Uri, target: &str) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(target).ok();
    Uri::from_parts(parts).unwrap_or_default()
}

/// The subprotocols that a client offers, and the place of its credential.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// Without keys, in the client's order.
    names: Vec<String>,
    /// Whether the credential was in the query.
    from_query: bool,
}

impl Offer {
    /// Refuses a token in the query.
    pub(super) fn check_place(&self, identity: &Identity) -> Result<(), Refusal> {
        if self.from_query && is_of_token(identity) {
            let message = "a token must be in the header `Authorization`: the query takes a key or the secret only";
            return Err(Refusal::new(CallCode::Unauthorized, message));
        }
        Ok(())
    }
}

/// Reads the offered subprotocols, and moves a key of the request to a header.
pub(crate) fn read_offer(
    surface: &HttpSurface<impl Broker>,
    parts: &mut Parts,
    credentials: OtherCredentials,
) -> Result<Offer, Refusal> {
    let mut names = offered_protocols(&parts.headers);
    let has_header = surface.auth.is_given(&parts.headers);
    let from_query = add_credential(parts, &names, credentials, has_header)?;
    names.retain(|name| !name.starts_with(KEY_SUBPROTOCOL));
    Ok(Offer { names, from_query })
}

/// Answers the request for an upgrade; the connection is served once it is upgraded.
pub(crate) fn answer<B: Broker>(
    endpoint: &McpEndpoint<B>,
    (route, offer): (ModeRoute, Offer),
    parts: &mut Parts,
    admitted: Admitted,
    settings: &McpSettings,
    (request_id, caller): (RequestId, &Caller),
) -> Result<Response<ReplyBody>, Refusal> {
    offer.check_place(&admitted.identity)?;
    let Some(key) = accept_key(parts) else {
        return Ok(upgrade_required());
    };
    let Some(upgrade) = parts.extensions.remove::<OnUpgrade>() else {
        return Ok(upgrade_required());
    };
    let request = admitted.request(parts, route, settings, (request_id, caller));
    let client = match endpoint.websocket(&request, offer.names.is_empty()) {
        Ok(client) => client,
        Err(refused) => return Ok(*refused),
    };
    caller.upgrades.spawn(serve(upgrade, client));
    Ok(switching(key, &offer))
}

/// Returns the reply to a request whose connection is upgraded.
pub(super) fn switching(key: HeaderValue, offer: &Offer) -> Response<ReplyBody> {
    let mut response = empty_reply(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    if offer.names.iter().any(|name| name == SUBPROTOCOL) {
        let chosen = HeaderValue::from_static(SUBPROTOCOL);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, chosen);
    }
    response
}

async fn serve(upgrade: OnUpgrade, client: WebSocketClient<impl Broker>) {
    match upgrade.await {
        Ok(upgraded) => client.serve(TokioIo::new(upgraded)).await,
        Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
    }
}

/// The subprotocols that the client offers, in its order.
fn offered_protocols(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(',')).map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Adds the key of the subprotocols, else of the query, as a header, unless the request has a credential. Returns
/// whether the header has the key of the query.
fn add_credential(
    parts: &mut Parts,
    offered: &[String],
    credentials: OtherCredentials,
    has_header: bool,
) -> Result<bool, Refusal> {
    // The header contains the key, so that it must not be logged.
    parts.headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if has_header {
        return Ok(false);
    }
    let wrong = |message: &str| Refusal::new(CallCode::HeaderInvalid, message);
    let mut keys = offered
        .iter()
        .filter_map(|name| name.strip_prefix(KEY_SUBPROTOCOL));
    let key = match (keys.next(), keys.next()) {
        (None, _) => None,
        (Some(_), Some(_)) => return Err(wrong("there are two keys in `Sec-WebSocket-Protocol`")),
        (Some(key), None) => {
            let decoded = BASE64URL_NOPAD.decode(key.trim_end_matches('=').as_bytes());
            let value = decoded
                .ok()
                .and_then(|key| HeaderValue::from_bytes(&key).ok());
            Some(
                value
                    .ok_or_else(|| wrong("the key in `Sec-WebSocket-Protocol` is not base64url"))?,
            )
        }
    };
    let (value, from_query) = match (key, credentials.query) {
        (Some(key), _) => (key, false),
        (None, Some(key)) => (key.map_err(wrong)?, true),
        (None, None) => return Ok(false),
    };
    parts.headers.insert(API_KEY.clone(), value);
    Ok(from_query)
}

fn is_of_token(identity: &Identity) -> bool {
    matches!(identity.subject(), Subject::Token { .. })
}

/// The value of `Sec-WebSocket-Accept`; `None` if the request does not ask for this upgrade.
pub(super) fn accept_key(parts: &Parts) -> Option<HeaderValue> {
    let headers = &parts.headers;
    let names = |name: HeaderName, expected: &str| {
        let values = headers.get_all(name).iter();
        let mut texts = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(','));
        texts.any(|text| text.trim().eq_ignore_ascii_case(expected))
    };
    let is_asked_for = names(header::CONNECTION, "upgrade")
        && names(header::UPGRADE, "websocket")
        && headers
            .get(header::SEC_WEBSOCKET_VERSION)
            .is_some_and(|version| version.as_bytes() == VERSION);
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .filter(|_| is_asked_for)?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok()
}

/// The reply to a request that is not one for an upgrade.
fn upgrade_required() -> Response<ReplyBody> {
    let error = broker_wire::RpcError::new(broker_wire::protocol::INVALID_REQUEST, UPGRADE_MESSAGE);
    let mut response = error_reply(StatusCode::UPGRADE_REQUIRED, error);
    require_upgrade(&mut response);
    response
}

/// Gives a refusal the status and the headers that ask for an upgrade.
pub(super) fn require_upgrade<T>(response: &mut Response<T>) {
    *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(
        header::SEC_WEBSOCKET_VERSION,
        HeaderValue::from_static("13"),
    );
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(uri: &str) -> Parts {
        Request::builder()
            .uri(uri)
            .body(())
            .expect("valid")
            .into_parts()
            .0
    }

    #[test]
    fn key_is_removed_from_the_target_wherever_it_is() {
        for (target, rest, key) in [
            ("/ws/mcp", "/ws/mcp", None),
            ("/ws/mcp?under=/a", "/ws/mcp?under=/a", None),
            ("/ws/mcp?api_key=s%2Bx", "/ws/mcp", Some("s+x")),
            (
                "/ws/mcp?under=/a&api_key=k&x=1",
                "/ws/mcp?under=/a&x=1",
                Some("k"),
            ),
            ("/ws/mcp?%61pi_key=k", "/ws/mcp", Some("k")),
            ("/ws/mcp?api_key", "/ws/mcp", Some("")),
        ] {
            let mut parts = parts(target);
            let found = take_key(&mut parts).query;
            assert_eq!(parts.uri.to_string(), rest, "{target}");
            let found =
                found.map(|found| found.expect("a value").to_str().expect("text").to_owned());
            assert_eq!(found.as_deref(), key, "{target}");
        }
        let mut twice = parts("/ws/mcp?api_key=a&api_key=b");
        assert!(
            take_key(&mut twice)
                .query
                .is_some_and(|found| found.is_err())
        );
        assert_eq!(twice.uri.to_string(), "/ws/mcp");
    }

    #[test]
    fn credential_of_a_header_counts_before_that_of_the_subprotocol_and_the_query() {
        let key = format!("key.{}", BASE64URL_NOPAD.encode(b"from protocol"));
        let query = || OtherCredentials {
            query: Some(Ok(HeaderValue::from_static("from query"))),
        };
        let added = |offered: &[&str], has_header: bool| {
            let mut parts = parts("/ws/mcp");
            let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
            let from_query = add_credential(&mut parts, &offered, query(), has_header);
            let from_query = from_query.map_err(|refusal| refusal.code())?;
            let value = parts
                .headers
                .get(&API_KEY)
                .map(|value| value.to_str().expect("text").to_owned());
            Ok((value, from_query))
        };
        assert_eq!(added(&["mcp", &key], true), Ok((None, false)));
        assert_eq!(
            added(&["mcp", &key], false),
            Ok((Some("from protocol".to_owned()), false))
        );
        assert_eq!(
            added(&["mcp"], false),
            Ok((Some("from query".to_owned()), true))
        );
        assert_eq!(added(&["key.!"], false), Err(CallCode::HeaderInvalid));
        assert_eq!(added(&[&key, &key], false), Err(CallCode::HeaderInvalid));
    }
}
