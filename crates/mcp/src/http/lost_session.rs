//! Signs that a server does not know the session of a request any more: a status that refuses the request with its
//! session, or an error that names the session in another answer.
//!
//! A request that was refused by its status was not executed. An error in another answer does not prove that, and a
//! tool may have an error with the same words: so such a request may have been executed, and only the error codes of
//! the transport and a few known texts count. Results are never searched.

use broker_wire::protocol::{INTERNAL_ERROR, INVALID_REQUEST};
use http::StatusCode;
use serde::Deserialize;

/// Maximum bytes of a body that is searched for a refusal of the session.
const MAX_SEARCHED_BYTES: usize = 1024;
/// Maximum bytes of a text that is compared with the known ones.
const MAX_TEXT_BYTES: usize = 300;
/// The codes that transports of servers use for their own errors.
const TRANSPORT_CODES: [i64; 3] = [-32000, -32001, INVALID_REQUEST];
/// Texts of servers about a session that they do not know, in lower case. An id or a reason may follow.
const KNOWN_TEXTS: [&str; 19] = [
    "invalid or expired session",
    "invalid or expired session id",
    "invalid or missing session id",
    "invalid session",
    "invalid session id",
    "missing session id",
    "no valid session",
    "no valid session id or not an initialize request",
    "no valid session id provided",
    "server not initialized",
    "session closed",
    "session does not exist",
    "session expired",
    "session has been terminated",
    "session has expired",
    "session id not found",
    "session not found",
    "session terminated",
    "unknown session",
];
/// The words before such a text.
const PREFIXES: [&str; 4] = ["bad request:", "error:", "not found:", "unauthorized:"];

/// A JSON-RPC error, without its data.
#[derive(Deserialize)]
struct TransportError {
    code: i64,
    #[serde(default)]
    message: String,
}

/// The form of an answer without a result that says that the server does not know the session of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostSession {
    /// By its status: the request was not executed.
    Refused,
    /// By an error with a 5xx status: the request may have been executed.
    Error,
}

impl LostSession {
    /// Reads a status that is not 2xx, the body with it, and the JSON-RPC error in the body.
    pub(super) fn read(status: StatusCode, body: &[u8], rpc_error: Option<&[u8]>) -> Option<Self> {
        if refuses_session(status, body, rpc_error) {
            Some(Self::Refused)
        } else if status.is_server_error() && names_lost_session(body, rpc_error) {
            Some(Self::Error)
        } else {
            None
        }
    }
}

/// Whether a status and the body with it refuse a request because of its session. The specification demands 404; 410
/// means the same. With 400 and 401 the body has to name the session, as text or as an error of the transport: another
/// error is about the request, also if it names a session.
fn refuses_session(status: StatusCode, body: &[u8], rpc_error: Option<&[u8]>) -> bool {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => true,
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => match rpc_error {
            Some(error) => (is_of_transport(error) || is_text(error)) && names_session(body),
            None => names_session(body),
        },
        _ => false,
    }
}

/// Whether an error in a successful answer, or with a 5xx status, says that the server does not know the session.
/// `error` is the member `error` of the answer: an object with a code of the transport, or a text.
pub(super) fn is_error_of_session(error: &[u8]) -> bool {
    if let Ok(text) = serde_json::from_slice::<String>(error) {
        return is_known(&text);
    }
    let Ok(error) = serde_json::from_slice::<TransportError>(error) else {
        return false;
    };
    let is_transport = TRANSPORT_CODES.contains(&error.code) || error.code == INTERNAL_ERROR;
    is_transport && is_known(&error.message)
}

/// Whether the body of a 5xx status says that the server does not know the session: as a JSON-RPC error, or as the
/// whole text.
fn names_lost_session(body: &[u8], rpc_error: Option<&[u8]>) -> bool {
    match rpc_error {
        Some(error) => is_error_of_session(error),
        None => std::str::from_utf8(body).is_ok_and(is_known),
    }
}

fn is_of_transport(error: &[u8]) -> bool {
    let error = serde_json::from_slice::<TransportError>(error);
    error.is_ok_and(|error| TRANSPORT_CODES.contains(&error.code))
}

fn is_text(error: &[u8]) -> bool {
    serde_json::from_slice::<String>(error).is_ok()
}

fn names_session(body: &[u8]) -> bool {
    let head = &body[..body.len().min(MAX_SEARCHED_BYTES)];
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    text.contains("session") || text.contains("server not initialized")
}

/// Whether a text is a known one.
fn is_known(text: &str) -> bool {
    let text = text.trim();
    if text.len() > MAX_TEXT_BYTES {
        return false;
    }
    let text = text.to_ascii_lowercase();
    let prefix = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
    let text = prefix.map_or(text.as_str(), str::trim_start);
    KNOWN_TEXTS.iter().any(|known| {
        let rest = text.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ',', ':', ';', '(']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_of_a_session_is_a_status_that_names_it() {
        let refuses = |status: u16, body: &str, error: Option<&str>| {
            let status = StatusCode::from_u16(status).unwrap();
            refuses_session(status, body.as_bytes(), error.map(str::as_bytes))
        };
        for status in [404, 410] {
            assert!(refuses(status, "", None), "{status}");
        }
        for status in [400, 401] {
            for text in ["Session expired", "Bad Request: Server not initialized"] {
                assert!(refuses(status, text, None), "{status}: {text}");
                let error = format!(r#""{text}""#);
                assert!(refuses(status, &error, Some(&error)));
                let error = format!(r#"{{"code":-32000,"message":"{text}"}}"#);
                assert!(refuses(status, &error, Some(&error)));
                let error = format!(r#"{{"code":-32602,"message":"{text}"}}"#);
                assert!(!refuses(status, &error, Some(&error)));
            }
            assert!(!refuses(status, "Unauthorized", None));
            assert!(!refuses(
                status,
                &format!("{}session", " ".repeat(1024)),
                None
            ));
        }
        for status in [403, 405, 422, 500, 503] {
            assert!(!refuses(status, "Session not found", None), "{status}");
        }
    }

    #[test]
    fn error_of_a_session_has_a_code_of_the_transport_and_a_known_text() {
        let names = |error: &str| is_error_of_session(error.as_bytes());
        for code in [-32000, -32001, -32600, -32603] {
            let error = |text: &str| format!(r#"{{"code":{code},"message":"{text}","data":1e9}}"#);
            for text in [
                "Session not found",
                " session NOT found. ",
                "Not Found: Session not found: 0f3c",
                "Bad Request: No valid session ID provided",
                "Unauthorized: Invalid session ID",
            ] {
                assert!(names(&error(text)), "{code}: {text}");
            }
            for text in [
                "Browser session not found",
                "Session not found in the table",
                "the session has a conflict",
                "",
            ] {
                assert!(!names(&error(text)), "{code}: {text}");
            }
        }
        for other in [
            r#"{"code":-32602,"message":"Session not found"}"#,
            r#"{"code":7,"message":"Session not found"}"#,
            r#"{"message":"Session not found"}"#,
            r#"{"code":-32001}"#,
            r#""no session""#,
            "7",
            "",
        ] {
            assert!(!names(other), "{other}");
        }
        assert!(names(r#""Session not found""#));
        assert!(!names(&format!(
            r#""Session not found: {}""#,
            "x".repeat(300)
        )));
        assert!(names_lost_session(b"Session not found\n", None));
        assert!(!names_lost_session(b"{\"detail\":\"x\"}", None));
    }
}
