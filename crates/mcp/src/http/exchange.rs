//! One request and its answer: JSON, or a stream of events that ends with it. A stream of a legacy server that
//! breaks off is resumed.

mod refusals;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use broker_http_client::Response;
use broker_memory::Account;
use broker_model::SourceCause;
use broker_model::text::shown_line;
use broker_wire::{Era, SseDecoder, SseError};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use tokio::time::{Instant, sleep};

use super::LinkState;
use super::auth::{Challenge, is_refusal};
use super::body::{self, BodyError, without_newline};
use super::client::{SendError, TokenRenewal};
use super::headers::{self, EVENT_STREAM, JSON, LAST_EVENT_ID};
use super::lost_session::is_error_of_session;
use super::messages::Taken;
use crate::cancel_reason;
use crate::connection::{RawResult, RequestKind, wait_extended};
use crate::events::{LastProgress, RequestEvents};
use crate::failure::{HttpRefusal, RequestError, SourceFailure};
use crate::overload::AbandonedCall;
use crate::request;
use crate::right::CallRight;
use crate::server_call::CallTime;
use refusals::may_have_executed;

/// Maximum number of times that the stream of one request is resumed.
const MAX_RESUMES: usize = 10;
/// Bounds of the wait before a stream is resumed, and its default.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(60);
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// One request.
pub(super) struct Exchange<'a> {
    state: &'a Arc<LinkState>,
    id: u64,
    headers: HeaderMap,
    body: Bytes,
    events: Option<RequestEvents>,
    begun: Arc<AtomicBool>,
    /// The right of the caller to make the call.
    pub(super) right: Option<&'a CallRight<'a>>,
    /// The account of the caller.
    pub(super) account: Option<&'a Account>,
}

/// Cancels a request at a legacy server if its future is dropped before the answer.
struct CancelGuard {
    state: Arc<LinkState>,
    id: u64,
    begun: Arc<AtomicBool>,
    is_armed: bool,
    /// The account of the caller of a call, and when it would time out.
    caller: Option<(Account, Instant)>,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        state: &'a Arc<LinkState>,
        id: u64,
        headers: HeaderMap,
        line: Bytes,
        events: Option<RequestEvents>,
    ) -> Self {
        Self {
            state,
            id,
            headers,
            body: without_newline(line),
            events,
            begun: Arc::default(),
            right: None,
            account: None,
        }
    }

    /// Sends the request and waits for its answer for `time`, or without a timeout. `progressed` gives the time of the
    /// last progress; progress extends the wait.
    pub(super) async fn run(
        mut self,
        kind: RequestKind,
        time: Option<CallTime>,
        progressed: Option<LastProgress>,
    ) -> Result<RawResult, RequestError> {
        let (state, begun) = (self.state.clone(), self.begun.clone());
        if state.ended.is_cancelled() {
            return Err(state.gone(false));
        }
        let mut cancel = CancelGuard {
            state: state.clone(),
            id: self.id,
            begun: begun.clone(),
            is_armed: kind != RequestKind::Opening,
            caller: (self.account.zip(time))
                .map(|(account, time)| (account.clone(), Instant::now() + time.first())),
        };
        let answered = async {
            tokio::select! {
                biased;
                () = state.abandoned() => Err(state.gone(begun.load(Ordering::Relaxed))),
                outcome = self.answered(kind) => outcome,
            }
        };
        let outcome = match time {
            None => Some(answered.await),
            Some(time) => {
                let (outcome, extended) =
                    wait_extended(&mut Box::pin(answered), time, progressed).await;
                if outcome.is_none() {
                    let begun = begun.load(Ordering::Relaxed);
                    cancel.caller = None;
                    return Err(RequestError::Timeout { begun, extended });
                }
                outcome
            }
        };
        cancel.is_armed = false;
        outcome.unwrap_or_else(|| Err(state.gone(true)))
    }

    async fn answered(&mut self, kind: RequestKind) -> Result<RawResult, RequestError> {
        let state = self.state.clone();
        let _permit = match kind {
            RequestKind::Call => Some(state.permit(self.right, self.account).await?),
            _ => None,
        };
        if state.is_refused.load(Ordering::Relaxed) {
            // The link ends as soon as the server has named its issuer.
            state.ended.cancelled().await;
            return Err(state.gone(false));
        }
        if let Some(wait) = state.pause.rest() {
            let message = "the server asked the broker to wait before it sends more requests";
            return Err(RequestError::Http(Box::new(HttpRefusal {
                status: StatusCode::SERVICE_UNAVAILABLE.as_u16(),
                failure: SourceFailure::new(SourceCause::Unreachable, message),
                retry_after: Some(wait),
                begun: false,
                rpc_error: None,
            })));
        }
        let trial = match kind {
            RequestKind::Call => state.breaker.trial().await,
            _ => None,
        };
        self.begun.store(true, Ordering::Relaxed);
        let answer = self.send(kind).await?;
        state.note_read();
        if kind == RequestKind::Call {
            state.breaker.answered();
        }
        drop(trial);
        let status = answer.status();
        if !status.is_success() {
            return Err(self.refused(kind, answer).await);
        }
        let is_opening =
            state.era().is_none() && !self.headers.contains_key(headers::PROTOCOL_VERSION);
        let other_session = state.check_headers(answer.headers(), is_opening)?;
        let outcome = if headers::is_media(answer.headers(), JSON) {
            let body = self.read(answer).await?;
            self.take_body(body)
        } else if headers::is_media(answer.headers(), EVENT_STREAM) {
            self.take_stream(answer).await
        } else {
            Err(RequestError::Broken(
                format!(
                    "the server answered with HTTP status {} and neither JSON nor a stream of events",
                    status.as_u16()
                )
                .into(),
            ))
        };
        let sent_session = self.headers.get(headers::SESSION_ID);
        match (&outcome, sent_session) {
            (Err(RequestError::Error(error)), Some(_)) if is_error_of_session(error) => {
                state.session_lost();
                return Err(state.gone(true));
            }
            (Ok(_) | Err(RequestError::Error(_)), Some(sent)) => {
                if let Some(named) = other_session {
                    state.session.rotate(sent, named);
                }
            }
            _ => {}
        }
        outcome
    }

    /// Sends the request. Opening requests have at most two credentials that are refused.
    async fn send(&self, kind: RequestKind) -> Result<Response, RequestError> {
        let (state, opening) = (self.state, &self.state.opening);
        let renewal = match kind {
            RequestKind::Opening if opening.is_refused.load(Ordering::Relaxed) => {
                TokenRenewal::Keep
            }
            _ if self.is_probe(kind) => TokenRenewal::Replace,
            _ => TokenRenewal::Resend,
        };
        let sent = (state.client).send_message(&self.headers, &self.body, self.right, renewal);
        let (answer, has_new_token) = sent.await.map_err(|error| self.unsent(error))?;
        if kind == RequestKind::Opening && is_refusal(answer.status()) {
            opening.is_refused.store(true, Ordering::Relaxed);
            (opening.has_new_token).fetch_or(has_new_token, Ordering::Relaxed);
        }
        Ok(answer)
    }

    /// Whether it is `server/discover`, the broker's request for the modern era.
    fn is_probe(&self, kind: RequestKind) -> bool {
        kind == RequestKind::Opening && self.headers.contains_key(headers::PROTOCOL_VERSION)
    }

    async fn read(&self, answer: Response) -> Result<Bytes, RequestError> {
        let state = self.state;
        let read = body::read(answer, state.line_bytes, &state.account).await;
        read.map_err(|error| match error {
            BodyError::TooLarge => RequestError::TooLarge,
            BodyError::OutOfMemory => RequestError::OutOfMemory,
            BodyError::Broken(error) => self.broke(state.client.transport_failure(error)),
        })
    }

    fn take_body(&mut self, body: Bytes) -> Result<RawResult, RequestError> {
        let (state, events) = (self.state, &mut self.events);
        match state.take_messages(self.id, body, events) {
            Taken::Answer(answer) => answer,
            Taken::Event | Taken::Other => Err(RequestError::Broken(
                "the body has no answer to the request".into(),
            )),
        }
    }

    /// Reads a stream up to the answer, and resumes it if it can be.
    async fn take_stream(&mut self, answer: Response) -> Result<RawResult, RequestError> {
        let state = self.state;
        let mut decoder = SseDecoder::new(state.line_bytes, state.account.clone());
        let (mut answer, mut resumes) = (Some(answer), 0);
        loop {
            let end = match &mut answer {
                Some(stream) => match self.take_events(stream, &mut decoder).await? {
                    Ok(result) => {
                        answer
                            .into_iter()
                            .for_each(|rest| state.reuse_connection(rest));
                        return result;
                    }
                    Err(end) => end,
                },
                None => broken_off("the stream could not be resumed"),
            };
            let is_resumable = state.era() != Some(Era::Modern) && resumes < MAX_RESUMES;
            let last = decoder.last_id().filter(|_| is_resumable);
            let Some(last) = last.and_then(headers::visible_value) else {
                return Err(self.broke(end));
            };
            sleep(retry_of(&decoder).max(state.pause.rest().unwrap_or_default())).await;
            if state.ended.is_cancelled() {
                return Err(state.gone(true));
            }
            answer = self.resume(last).await?;
            decoder = decoder.resumed();
            resumes += 1;
        }
    }

    /// Reads events up to the answer. The inner error is the end of the stream.
    async fn take_events(
        &mut self,
        answer: &mut Response,
        decoder: &mut SseDecoder,
    ) -> Result<Result<Result<RawResult, RequestError>, SourceFailure>, RequestError> {
        let state = self.state.clone();
        loop {
            let chunk = match answer.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    let message = "the server ended the stream before its answer";
                    return Ok(Err(broken_off(message)));
                }
                Err(error) => return Ok(Err(state.client.transport_failure(error))),
            };
            // A server that sends many events, or text without events, must not keep this worker.
            tokio::task::coop::consume_budget().await;
            state.note_read();
            decoder.push(&chunk);
            while let Some(event) = decoder.next_event().map_err(stream_error)? {
                match state.take_messages(self.id, event.data, &mut self.events) {
                    Taken::Answer(answer) => return Ok(Ok(answer)),
                    Taken::Event => decoder.note_message(),
                    Taken::Other => {}
                }
                tokio::task::coop::consume_budget().await;
            }
        }
    }

    /// Asks for the rest of a stream; `None` if it may be asked for again: the server asks for a pause, or it cannot be
    /// reached now.
    async fn resume(&mut self, last_event: HeaderValue) -> Result<Option<Response>, RequestError> {
        let state = self.state;
        let mut headers = headers::new_stream();
        state.add_session(&mut headers);
        headers.insert(LAST_EVENT_ID, last_event);
        let sent = state.client.send(&Method::GET, &headers, None).await;
        let answer = match sent {
            Ok(answer) => answer,
            Err(error)
                if error.redirect.is_none() && error.failure.cause == SourceCause::Unreachable =>
            {
                tracing::debug!(source = %state.source, reason = %error.failure, "a stream was not resumed");
                return Ok(None);
            }
            Err(error) => {
                return Err(self.unsent(SendError {
                    begun: true,
                    ..error
                }));
            }
        };
        let status = answer.status();
        if status.is_success() && headers::is_media(answer.headers(), EVENT_STREAM) {
            state.check_stream_headers(answer.headers())?;
            return Ok(Some(answer));
        }
        if state.postpone(&answer) {
            return Ok(None);
        }
        let challenge = Challenge::read(answer.headers());
        if headers.contains_key(headers::SESSION_ID)
            && state.client.lost_session(answer).await.is_some()
        {
            state.session_ended(status);
            return Err(state.gone(true));
        }
        if is_refusal(status) {
            state.credentials_refused(status, challenge).await;
            return Err(state.gone(true));
        }
        let status = status.as_u16();
        let message = format!("the server did not resume its stream (HTTP status {status})");
        Err(self.broke(broken_off(message)))
    }

    /// Returns the error of a request that was not sent, or whose answer did not begin.
    fn unsent(&self, error: SendError) -> RequestError {
        if !error.begun {
            self.begun.store(false, Ordering::Relaxed);
            if self.right.is_some_and(CallRight::has_ended) {
                // The server did not fail.
                return self.state.gone(false);
            }
        }
        if let Some(status) = error.redirect {
            return RequestError::Http(Box::new(HttpRefusal {
                status,
                failure: error.failure,
                retry_after: None,
                begun: error.begun && may_have_executed(status),
                rpc_error: None,
            }));
        }
        if error.failure.cause == SourceCause::NeedsAuth {
            self.state.finish(error.failure);
            return self.state.gone(error.begun);
        }
        self.transport_failed(error.failure, error.begun)
    }

    /// Returns the error of an answer that broke off.
    fn broke(&self, failure: SourceFailure) -> RequestError {
        self.transport_failed(failure, true)
    }

    /// Counts a failure of the transport; too many end the link.
    fn transport_failed(&self, failure: SourceFailure, begun: bool) -> RequestError {
        if self.state.breaker.failed(Instant::now()) {
            self.state.finish(failure.clone());
        }
        RequestError::Gone { failure, begun }
    }
}

impl LinkState {
    /// Keeps the session id of an answer to `initialize` (`is_opening`). Returns the id of another session that any
    /// other answer names. Fails for a body that the HTTP library has not decoded.
    pub(super) fn check_headers(
        &self,
        headers: &HeaderMap,
        is_opening: bool,
    ) -> Result<Option<HeaderValue>, RequestError> {
        let encoding = headers.get(CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            let encoding = shown_line(&self.client.redactor().redact(&encoding), 60);
            return Err(RequestError::Broken(
                format!("the server's answer has the content encoding `{encoding}`; the broker accepts only gzip").into(),
            ));
        }
        let session = headers::session_id(headers);
        let session = session.map_err(|reason| RequestError::Broken(reason.into()))?;
        let Some(named) = session else {
            return Ok(None);
        };
        if is_opening {
            self.session.open(named);
            return Ok(None);
        }
        let own = self.session.get();
        Ok(own.filter(|own| *own != named).map(|_| named))
    }

    /// Checks the headers of a stream that answers no POST; it must not name another session.
    pub(super) fn check_stream_headers(&self, headers: &HeaderMap) -> Result<(), RequestError> {
        match self.check_headers(headers, false)? {
            Some(_) => Err(RequestError::Broken(
                "the server answered for another session".into(),
            )),
            None => Ok(()),
        }
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if !self.is_armed || !self.begun.load(Ordering::Relaxed) || self.state.ended.is_cancelled()
        {
            return;
        }
        if let Some((account, timeout)) = self.caller.take() {
            let call = AbandonedCall::new(account, timeout);
            self.state.turns.abandon(self.id, call);
        }
        // A modern request is cancelled by the end of its connection.
        if self.state.era() != Some(Era::Legacy) {
            return;
        }
        let line = request::cancelled(self.id, cancel_reason::take().as_deref());
        let state = self.state.clone();
        self.state.tasks.spawn(async move {
            let headers = state.headers_of(broker_wire::protocol::CANCELLED);
            tokio::select! {
                () = state.ended.cancelled() => {}
                () = state.post(headers, without_newline(line)) => {}
            }
        });
    }
}

fn broken_off(message: impl Into<String>) -> SourceFailure {
    SourceFailure::new(SourceCause::Unreachable, message)
}

fn retry_of(decoder: &SseDecoder) -> Duration {
    decoder
        .retry()
        .unwrap_or(DEFAULT_RETRY)
        .clamp(MIN_RETRY, MAX_RETRY)
}

fn stream_error(error: SseError) -> RequestError {
    match error {
        SseError::TooLarge => RequestError::TooLarge,
        SseError::OutOfMemory => RequestError::OutOfMemory,
        SseError::NoMessage => RequestError::Broken(
            "the server sent 1 MiB or 10 000 events without a message of the request".into(),
        ),
    }
}
