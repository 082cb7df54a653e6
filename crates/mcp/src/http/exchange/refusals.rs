//! Answers with another status than 2xx: whom the refusal concerns, and whether the request may have been executed.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use broker_http_client::Response;
use broker_model::SourceCause;
use broker_model::text::shown_line;
use broker_wire::protocol::INVALID_REQUEST;
use broker_wire::{Incoming, Messages, read_server_line};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use super::Exchange;
use crate::connection::{HttpRefusal, RequestError, RequestKind};
use crate::failure::SourceFailure;
use crate::http::auth::{Challenge, is_refusal};
use crate::http::messages::without_mark;
use crate::http::{body, headers, pause};

/// Maximum bytes of the body of an HTTP error that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

impl Exchange<'_> {
    /// The error of an answer with another status than 2xx.
    pub(super) async fn refused(&mut self, kind: RequestKind, answer: Response) -> RequestError {
        let state = self.state;
        let status = answer.status();
        let lacks_scope = || Challenge::of(answer.headers()).is_insufficient_scope();
        if is_refusal(status) && !(kind == RequestKind::Call && lacks_scope()) {
            // The end of the link ends this future too, and the server did not execute the request.
            self.begun.store(false, Ordering::Relaxed);
            state.credentials_refused(answer).await;
            return state.gone(false);
        }
        let retry_after = pause::asked_wait(&answer, SystemTime::now());
        let read = body::read(answer, MAX_ERROR_BYTES, &state.account).await;
        let body = read.unwrap_or_default();
        let rpc_error = self.rpc_error(&body);
        let has_session = self.headers.contains_key(headers::SESSION_ID);
        if has_session && ends_session(status, &body, rpc_error.as_deref()) {
            state.session_ended(status);
            return state.gone(false);
        }
        let rpc_error = rpc_error.filter(|_| retry_after.is_none());
        match (retry_after, rpc_error.clone()) {
            (Some(wait), _) => state.pause.extend(wait),
            (None, Some(error)) if kind != RequestKind::Opening => {
                return RequestError::Error(error);
            }
            _ => {}
        }
        let reason = shown_line(
            &state
                .client
                .redactor()
                .redact(&String::from_utf8_lossy(&body)),
            200,
        );
        let separator = if reason.is_empty() { "" } else { ": " };
        let message = format!(
            "`{}` answered with HTTP status {}{separator}{reason}",
            state.client.shown_url(),
            status.as_u16()
        );
        RequestError::Http(Box::new(HttpRefusal {
            status: status.as_u16(),
            failure: SourceFailure::new(SourceCause::Unreachable, message),
            retry_after,
            begun: may_have_executed(status.as_u16()),
            rpc_error,
        }))
    }

    /// The JSON-RPC error in the body of an HTTP error.
    fn rpc_error(&self, body: &Bytes) -> Option<Bytes> {
        let parsed = read_server_line(without_mark(body.clone()), &self.state.account);
        match parsed.messages {
            // A server may answer without the id that it did not read.
            Messages::One(Incoming::Response {
                id,
                outcome: Err(error),
            }) if id.as_ref().is_none_or(|id| id.number() == Some(self.id)) => {
                Some(error.into_bytes())
            }
            _ => None,
        }
    }
}

/// Whether an answer means that the server does not know the session of the request. The specification demands 404;
/// some servers answer 400 and name the session, as text or as an error of the transport. Another error is about
/// the request, also if it names a session.
fn ends_session(status: StatusCode, body: &[u8], rpc_error: Option<&[u8]>) -> bool {
    let names_session = || {
        let text = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_ascii_lowercase();
        text.contains("session")
    };
    let is_of_transport = |error| {
        let code = serde_json::from_slice::<ErrorCode>(error).map(|error| error.code);
        code.is_ok_and(|code| matches!(code, -32000 | -32001 | INVALID_REQUEST))
    };
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => names_session() && rpc_error.is_none_or(is_of_transport),
        _ => false,
    }
}

/// The code of a JSON-RPC error.
#[derive(Deserialize)]
struct ErrorCode {
    code: i64,
}

/// Whether a server may have executed a request that it answered with this status: these refuse it before.
pub(super) fn may_have_executed(status: u16) -> bool {
    !matches!(
        status,
        301 | 302
            | 307
            | 308
            | 400
            | 401
            | 403
            | 404
            | 405
            | 406
            | 411
            | 413
            | 414
            | 415
            | 429
            | 431
    )
}
