//! Answers with another status than 2xx: whom the refusal concerns, and whether the request may have been executed.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use broker_http_client::Response;
use broker_memory::Account;
use broker_model::SourceCause;
use broker_model::text::shown_line;
use broker_wire::{Incoming, Messages, read_server_line};
use bytes::Bytes;
use http::StatusCode;
use tokio::time::timeout;

use super::Exchange;
use crate::connection::RequestKind;
use crate::failure::{HttpRefusal, RequestError, SourceFailure};
use crate::http::auth::{Challenge, is_refusal};
use crate::http::client::Client;
use crate::http::lost_session::LostSession;
use crate::http::messages::without_mark;
use crate::http::{body, headers, pause};

/// Maximum bytes of the body of an HTTP error that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Maximum time of reading it.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

impl Exchange<'_> {
    /// Returns the error of an answer with another status than 2xx.
    pub(super) async fn refused(&mut self, kind: RequestKind, answer: Response) -> RequestError {
        let state = self.state;
        let (status, challenge) = (answer.status(), Challenge::read(answer.headers()));
        let lacks_scope = kind == RequestKind::Call && challenge.is_insufficient_scope();
        let refuses_credentials = is_refusal(status) && !lacks_scope;
        let is_probe = self.is_probe(kind);
        if refuses_credentials && is_probe {
            // A gateway may not know the method; the other era shows whether it accepts the credentials.
            return RequestError::Http(Box::new(HttpRefusal {
                status: status.as_u16(),
                failure: state.client.refusal_by(status, &challenge, None),
                retry_after: None,
                begun: false,
                rpc_error: None,
            }));
        }
        let has_session = self.headers.contains_key(headers::SESSION_ID);
        if refuses_credentials && !has_session {
            return self.credentials_refused(status, challenge).await;
        }
        let named_wait = pause::named_wait(&answer, SystemTime::now());
        let retry_after = match is_probe {
            true => named_wait,
            false => pause::asked_wait(&answer, SystemTime::now()),
        };
        let read = body::read(answer, MAX_ERROR_BYTES, &state.account);
        let read = timeout(ERROR_BODY_TIMEOUT, read).await;
        let body = read.ok().and_then(Result::ok).unwrap_or_default();
        let rpc_error = error_of(&body, &state.account, Some(self.id));
        let lost = LostSession::read(status, &body, rpc_error.as_deref());
        match lost.filter(|_| has_session && named_wait.is_none()) {
            Some(LostSession::Refused) => {
                state.session_ended(status);
                return state.gone(false);
            }
            Some(LostSession::Error) => {
                state.session_lost();
                return state.gone(true);
            }
            None => {}
        }
        if refuses_credentials {
            return self.credentials_refused(status, challenge).await;
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

    /// Ends the link, whose credentials the server refused.
    async fn credentials_refused(&self, status: StatusCode, challenge: Challenge) -> RequestError {
        // The end of the link ends this future too, and the server did not execute the request.
        self.begun.store(false, Ordering::Relaxed);
        self.state.credentials_refused(status, challenge).await;
        self.state.gone(false)
    }
}

impl Client {
    /// Whether and how an answer that is not 2xx says that the server does not know the session of its request.
    pub(in crate::http) async fn lost_session(&self, answer: Response) -> Option<LostSession> {
        let status = answer.status();
        let read = body::read(answer, MAX_ERROR_BYTES, self.account());
        let read = timeout(ERROR_BODY_TIMEOUT, read).await;
        let body = read.ok().and_then(Result::ok).unwrap_or_default();
        let error = error_of(&body, self.account(), None);
        LostSession::read(status, &body, error.as_deref())
    }
}

/// Returns the JSON-RPC error in the body of an HTTP error, if it is about the request `id` or about no request.
fn error_of(body: &Bytes, account: &Account, id: Option<u64>) -> Option<Bytes> {
    let parsed = read_server_line(without_mark(body.clone()), account);
    match parsed.messages {
        // A server may answer without the id that it did not read.
        Messages::One(Incoming::Response {
            id: answered,
            outcome: Err(error),
        }) if answered
            .as_ref()
            .is_none_or(|answered| answered.number() == id) =>
        {
            Some(error.into_bytes())
        }
        _ => None,
    }
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
