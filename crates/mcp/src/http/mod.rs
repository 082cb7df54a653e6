//! Links to servers over streamable HTTP, in both eras (revisions 2025-03-26 to 2026-07-28).
//!
//! `client` sends requests, `exchange` reads the answer of one, `stream` keeps the streams for a server's change
//! announcements open. A session of the protocol lasts as long as its link; when the server ends it, the link ends, and
//! the supervisor opens a new one and compares its tools with the lock again.

mod auth;
mod body;
mod breaker;
mod client;
mod client_certificate;
mod close;
mod event_link;
mod exchange;
mod headers;
mod lost_session;
mod messages;
mod pause;
mod session_id;
pub(crate) mod spec;
mod stream;
mod tls_remedy;
mod token_cache;
mod transport;
mod turns;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use broker_http_client::Response;
use broker_memory::{Account, Owner};
use broker_model::redact::Redactor;
use broker_wire::Era;
use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderValue};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{RawResult, RequestKind, Subscription};
use crate::events::{CallEvents, RequestEvents};
use crate::failure::{RequestError, SourceFailure};
use crate::opening::{Negotiated, Opening};
use crate::overload::Overload;
use crate::request;
use crate::right::CallRight;
use crate::server_call::{CallTime, ServerCall};
use crate::spec::{ItemLists, SourceSpec};
use crate::status::Counters;
use breaker::Breaker;
use broker_process::StopDeadline;
use client::Client;
use exchange::Exchange;
use session_id::SessionId;
use turns::{CallPermit, CallTurns};

pub(crate) use auth::another_token;
pub(crate) use event_link::EventLink;
pub(crate) use headers::{ToolParams, visible_value};
pub(crate) use pause::Pause;
pub(crate) use session_id::ReopenPace;
pub use spec::{AuthSpec, ClientCertificate, ClientCredentials, HttpShared, HttpSpec, MCP_PATH};
pub(crate) use tls_remedy::tls_remedy;
pub(crate) use token_cache::TokenCache;

/// The number of requests and notifications of the broker itself that may be under way at one time.
const MAX_INTERNAL_REQUESTS: usize = 64;
/// Maximum time for a server to take a notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time of reading the rest of a stream after its answer, and maximum bytes of the rest.
const REST_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_REST_BYTES: usize = 64 << 10;

/// The link to one server over HTTP. Dropping it ends every request.
#[derive(Debug)]
pub(crate) struct HttpLink(Arc<LinkState>);

#[derive(Debug)]
struct LinkState {
    client: Client,
    source: String,
    /// The negotiated era and its version header; empty before the handshake has ended.
    revision: OnceLock<(Era, Option<HeaderValue>)>,
    /// The session id of a legacy server.
    session: SessionId,
    opening: OpeningState,
    params: Arc<ToolParams>,
    next_id: AtomicU64,
    /// Calls in flight and in the queue.
    admitted: AtomicUsize,
    /// The number of answers, and parts of streams, that arrived.
    reads: AtomicU64,
    turns: CallTurns,
    /// Limits requests and notifications of the broker itself.
    internal: Semaphore,
    breaker: Breaker,
    pause: Pause,
    /// The lists whose changes are announced.
    lists: ItemLists,
    list_changes: watch::Sender<u64>,
    /// Their number when the last listing was requested.
    listed_changes: AtomicU64,
    end: watch::Sender<Option<SourceFailure>>,
    ended: CancellationToken,
    /// Whether the link ends because the server refused the credentials.
    is_refused: AtomicBool,
    /// Whether the link was closed, and not only dropped.
    is_closed: AtomicBool,
    counters: Arc<Counters>,
    account: Account,
    line_bytes: usize,
    close_grace: Duration,
    stop_deadline: StopDeadline,
    tasks: TaskTracker,
}

/// The credentials of the requests that open a link. At most two of them are refused, and at most one token is replaced.
#[derive(Debug, Default)]
struct OpeningState {
    /// Whether the server refused the credentials of one of them.
    is_refused: AtomicBool,
    /// Whether there is another token since.
    has_new_token: AtomicBool,
}

impl HttpLink {
    /// Prepares requests to the server of `http`, without sending one.
    pub(crate) async fn open(
        http: &HttpSpec,
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        Ok(Self(Arc::new(LinkState {
            client: Client::new(http, spec, opening).await?,
            source: spec.source.as_str().to_owned(),
            revision: OnceLock::new(),
            session: SessionId::default(),
            opening: OpeningState::default(),
            params: Arc::default(),
            next_id: AtomicU64::new(1),
            admitted: AtomicUsize::new(0),
            reads: AtomicU64::new(0),
            turns: CallTurns::new(spec.max_in_flight, spec.queue),
            internal: Semaphore::new(MAX_INTERNAL_REQUESTS),
            breaker: Breaker::new(http.shared.half_open.clone()),
            pause: http.shared.pause.clone(),
            lists: spec.lists,
            list_changes: watch::Sender::new(0),
            listed_changes: AtomicU64::new(0),
            end: watch::Sender::new(None),
            ended: CancellationToken::new(),
            is_refused: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            counters: opening.counters.clone(),
            account: spec.memory.whole_account(),
            line_bytes: spec.line_bytes,
            close_grace: spec.timing.close_grace,
            stop_deadline: opening.stop_deadline.clone(),
            tasks: opening.tasks.clone(),
        })))
    }

    /// Sends the request that `line` writes for an id, and waits for its reply for `time`, or without a timeout.
    /// Dropping the future cancels the request at the server.
    pub(crate) async fn request(
        &self,
        kind: RequestKind,
        method: &'static str,
        line: impl FnOnce(u64) -> Bytes,
        time: Option<Duration>,
    ) -> Result<RawResult, RequestError> {
        let id = self.0.take_id();
        let headers = self.0.headers_of(method);
        self.0.request(kind, headers, id, line(id), time).await
    }

    /// Sends a request about the task of a server, and waits for its reply.
    pub(crate) async fn ask_task(
        &self,
        method: &'static str,
        task: &str,
        line: impl FnOnce(u64) -> Bytes,
        time: Duration,
    ) -> Result<RawResult, RequestError> {
        let (id, kind) = (self.0.take_id(), RequestKind::Internal);
        let headers = self.0.headers_about(method, Some(task));
        let line = line(id);
        self.0.request(kind, headers, id, line, Some(time)).await
    }

    /// Sends a call like a request, with its events, when fewer than `max_in_flight` are under way.
    pub(crate) async fn call(
        &self,
        call: &ServerCall<'_>,
        line: impl FnOnce(u64) -> Bytes,
        events: Option<CallEvents>,
        time: CallTime,
    ) -> Result<RawResult, RequestError> {
        let _admitted = self.0.admit();
        let id = self.0.take_id();
        let mut headers = self.0.headers_of(call.operation.method());
        if self.0.era() == Some(Era::Modern) {
            headers::add_call(&mut headers, call, &self.0.params);
        }
        if let Some(trace) = call.trace {
            headers::add_trace(&mut headers, trace);
        }
        let (events, progressed) = events.map(RequestEvents::new).unzip();
        let mut exchange = Exchange::new(&self.0, id, headers, line(id), events);
        (exchange.right, exchange.account) = (call.right, call.account);
        exchange
            .run(RequestKind::Call, Some(time), progressed)
            .await
    }

    /// Sends a request of the broker whose answer has no effect.
    pub(crate) fn tell(&self, method: &'static str, line: impl FnOnce(u64) -> Bytes) {
        self.tell_about(method, None, line);
    }

    /// Sends a request of the broker whose answer has no effect, about this task.
    pub(crate) fn tell_about(
        &self,
        method: &'static str,
        task: Option<&str>,
        line: impl FnOnce(u64) -> Bytes,
    ) {
        let state = self.0.clone();
        let id = state.take_id();
        let line = line(id);
        let headers = state.headers_about(method, task);
        self.0.tasks.spawn(async move {
            let time = Some(NOTIFY_TIMEOUT);
            let sent = state.request(RequestKind::Internal, headers, id, line, time);
            if sent.await.is_err() {
                tracing::debug!(source = %state.source, method, "a request of the broker has no result");
            }
        });
    }

    /// Sends a notification. The server's answer has no effect.
    pub(crate) async fn notify(&self, method: &'static str, line: Bytes) {
        let headers = self.0.headers_of(method);
        self.0.post(headers, line).await;
    }

    /// Sends a request that stays open: a subscription.
    pub(crate) fn subscribe(&self, line: impl FnOnce(u64) -> Bytes) -> Subscription {
        let id = self.0.take_id();
        stream::subscribe(self.0.clone(), id, line(id))
    }

    /// Ends the handshake: later requests carry the negotiated version. A legacy server may send announcements on
    /// a separate stream.
    pub(crate) fn negotiated(&self, negotiated: &Negotiated) {
        let version = headers::version(negotiated.era, &negotiated.protocol_version);
        if self.0.revision.set((negotiated.era, version)).is_ok() && negotiated.era == Era::Legacy {
            self.0.tasks.spawn(stream::follow(self.0.clone()));
        }
    }

    /// Returns the parameters that calls repeat as headers; `None` in the legacy era, because it lacks them.
    pub(crate) fn tool_params(&self) -> Option<Arc<ToolParams>> {
        (self.0.era() == Some(Era::Modern)).then(|| self.0.params.clone())
    }

    /// Returns the number of its calls, including waiting ones.
    pub(crate) fn load(&self) -> usize {
        self.0.admitted.load(Ordering::Relaxed)
    }

    /// Returns a number that changes whenever the server answers or sends a part of a stream.
    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Counts the server's announcements that its tools changed. Those since the last listing was requested are not
    /// seen yet.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.0.list_changes.subscribe();
        let listed = self.0.listed_changes.load(Ordering::Relaxed);
        if *changes.borrow() != listed {
            changes.mark_changed();
        }
        changes
    }

    /// Marks the announcements until now as covered by the listing that is requested next.
    pub(crate) fn listing_begins(&self) {
        let changes = *self.0.list_changes.borrow();
        self.0.listed_changes.store(changes, Ordering::Relaxed);
    }

    /// Counts a sign that the tools changed.
    pub(crate) fn tools_changed(&self) {
        self.0.tools_changed();
    }

    /// Returns the reason why the link ended, once it has.
    pub(crate) fn end(&self) -> watch::Receiver<Option<SourceFailure>> {
        self.0.end.subscribe()
    }

    /// Whether the link has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Masks the secrets of the config and the current token.
    pub(crate) fn redactor(&self) -> Redactor {
        self.0.client.redactor()
    }

    /// Returns the session id of a legacy server that has sessions.
    pub(crate) fn session_id(&self) -> Option<String> {
        self.0.session.get()?.to_str().ok().map(str::to_owned)
    }

    /// Whether the server refused the token of an opening request, and there is another one since.
    pub(crate) fn has_new_token(&self) -> bool {
        self.0.opening.has_new_token.load(Ordering::Relaxed)
    }

    /// Returns the pause that the server asks for.
    pub(crate) fn pause(&self) -> &Pause {
        &self.0.pause
    }
}

/// Counts a call as long as it exists.
struct Admitted<'a>(&'a AtomicUsize);

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LinkState {
    async fn request(
        self: &Arc<Self>,
        kind: RequestKind,
        headers: HeaderMap,
        id: u64,
        line: Bytes,
        time: Option<Duration>,
    ) -> Result<RawResult, RequestError> {
        let Ok(_permit) = self.internal.try_acquire() else {
            let limit = MAX_INTERNAL_REQUESTS;
            return Err(RequestError::Overloaded(Overload::Queue { limit }));
        };
        let exchange = Exchange::new(self, id, headers, line, None);
        exchange.run(kind, time.map(CallTime::from), None).await
    }

    /// Notes that bytes of the server arrived.
    fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the negotiated era, once there is one.
    fn era(&self) -> Option<Era> {
        self.revision.get().map(|(era, _)| *era)
    }

    fn admit(&self) -> Admitted<'_> {
        self.admitted.fetch_add(1, Ordering::Relaxed);
        Admitted(&self.admitted)
    }

    /// Waits for the permit of a call, once it is the turn of its caller; not after the `right` to it has ended.
    async fn permit(
        &self,
        right: Option<&CallRight<'_>>,
        account: Option<&Account>,
    ) -> Result<CallPermit<'_>, RequestError> {
        let owner = account.map_or(Owner::BROKER, Account::owner);
        let right_ended = async {
            match right {
                Some(right) => right.ended().await,
                None => std::future::pending().await,
            }
        };
        let permit = tokio::select! {
            biased;
            () = self.ended.cancelled() => None,
            () = right_ended => None,
            permit = self.turns.permit(owner, &self.counters) => Some(permit),
        };
        let permit = permit.ok_or_else(|| self.gone(false))?;
        permit.map_err(RequestError::Overloaded)
    }

    /// Returns the headers of a POST with a message of this method.
    fn headers_of(&self, method: &'static str) -> HeaderMap {
        let mut headers = headers::new_post();
        let era = match (method, self.era()) {
            // The two requests that open the eras; until the handshake has ended both may be under way.
            (request::DISCOVER, _) => Some(Era::Modern),
            (request::INITIALIZE, _) => None,
            (_, era) => era.or(Some(Era::Legacy)),
        };
        match era {
            Some(Era::Modern) => headers::add_modern(&mut headers, method),
            Some(Era::Legacy) => self.add_session(&mut headers),
            None => {}
        }
        headers
    }

    /// Returns the headers of a POST with a message of this method about this task.
    fn headers_about(&self, method: &'static str, task: Option<&str>) -> HeaderMap {
        let mut headers = self.headers_of(method);
        if let (Some(task), Some(Era::Modern)) = (task, self.era()) {
            headers::add_task(&mut headers, task);
        }
        headers
    }

    /// Adds version and session of a legacy server.
    fn add_session(&self, headers: &mut HeaderMap) {
        if let Some((_, Some(version))) = self.revision.get() {
            headers.insert(headers::PROTOCOL_VERSION, version.clone());
        }
        if let Some(session) = self.session.get() {
            headers.insert(headers::SESSION_ID, session);
        }
    }

    /// Records the pause that an answer asks for; returns whether it does.
    fn postpone(&self, answer: &Response) -> bool {
        let wait = pause::asked_wait(answer, SystemTime::now());
        if let Some(wait) = wait {
            self.pause.extend(wait);
        }
        wait.is_some()
    }

    /// Reads the rest of a stream after its answer. If the server ends the stream soon, its connection is used
    /// again.
    fn reuse_connection(self: &Arc<Self>, mut answer: Response) {
        let state = self.clone();
        self.tasks.spawn(async move {
            let Ok(_permit) = state.internal.try_acquire() else {
                return;
            };
            let read = async {
                let mut left = MAX_REST_BYTES;
                while let Ok(Some(chunk)) = answer.chunk().await {
                    let Some(rest) = left.checked_sub(chunk.len()) else {
                        break;
                    };
                    left = rest;
                    tokio::task::coop::consume_budget().await;
                }
            };
            tokio::select! {
                () = state.ended.cancelled() => {}
                () = sleep(REST_TIMEOUT) => {}
                () = read => {}
            }
        });
    }

    /// Posts a message that has no answer, unless the server asked for a pause.
    async fn post(&self, headers: HeaderMap, line: Bytes) {
        if self.pause.rest().is_some() {
            tracing::debug!(source = %self.source, "the server asked for a pause; a notification was not sent");
            return;
        }
        let Ok(_permit) = self.internal.try_acquire() else {
            tracing::debug!(source = %self.source, "too many notifications wait; one was not sent");
            return;
        };
        let sent = self.client.send(&Method::POST, &headers, Some(&line));
        match timeout(NOTIFY_TIMEOUT, sent).await {
            Ok(Ok(answer)) if answer.status().is_success() => {}
            Ok(Ok(answer)) => {
                self.postpone(&answer);
                let status = answer.status().as_u16();
                tracing::debug!(source = %self.source, status, "the server refused a notification");
            }
            Ok(Err(error)) => {
                tracing::debug!(source = %self.source, reason = %error.failure, "a notification was not sent");
            }
            Err(_) => {
                tracing::debug!(source = %self.source, "the server took no notification in time")
            }
        }
    }
}
