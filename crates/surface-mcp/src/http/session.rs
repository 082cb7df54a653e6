//! One legacy session: its client, its open requests and streams. Calls of a session run on when their
//! connection is lost.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_wire::Id;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::session_id::SessionId;
use crate::Client;
use crate::reply::{Answer, failed};
use broker_core::{Account, Broker, Identity, note_cancel_reason};
use broker_surface::{CallerShare, contain};

/// The maximum number of open requests of one session. A call whose connection was lost counts until its
/// end. From the second one on, each is charged to the caller's share of the memory.
pub(super) const MAX_OPEN_REQUESTS: usize = 1024;
/// The maximum number of streams that a session opens with GET.
pub(super) const MAX_STREAMS: usize = 4;

/// A legacy session.
#[derive(Debug)]
pub(super) struct Session<B> {
    id: SessionId,
    owner: CallerShare,
    /// The caller that created the session. The client's own identity may see less.
    identity: Identity,
    /// The account of that caller: all connections of a session belong to one caller.
    pub(super) account: Account,
    pub(super) client: Arc<Client<B>>,
    pub(super) revision: &'static str,
    state: Mutex<State>,
    /// Held by the stream that reports changes of the tool list.
    reporter: tokio::sync::Mutex<()>,
    ended: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// The number of HTTP requests, streams included, that use the session now.
    uses: usize,
    streams: usize,
    last_use: Instant,
    /// At most [`MAX_OPEN_REQUESTS`].
    requests: Vec<OpenRequest>,
    next: u64,
}

#[derive(Debug)]
struct OpenRequest {
    id: Id,
    /// Distinguishes the request from a later one with the same id.
    number: u64,
    /// The token of its progress, as it was written.
    token: Option<Box<str>>,
    task: Option<AbortHandle>,
}

impl State {
    /// Removes the open request that `is_it` accepts.
    fn take(&mut self, is_it: impl Fn(&OpenRequest) -> bool) -> Option<OpenRequest> {
        let at = self.requests.iter().position(is_it)?;
        Some(self.requests.swap_remove(at))
    }
}

/// The work of a request. It is boxed, since a task would copy it several times.
pub(super) type RequestFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Why a request is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeginError {
    /// An open request has the same id.
    SameId,
    /// An open request has the same token for its progress.
    SameToken,
    /// [`MAX_OPEN_REQUESTS`] are open.
    Full,
    /// The session ended a moment ago.
    Ended,
}

impl<B: Broker> Session<B> {
    pub(super) fn new(
        id: SessionId,
        owner: CallerShare,
        (identity, account): (Identity, Account),
        client: Arc<Client<B>>,
        revision: &'static str,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            owner,
            identity,
            account,
            client,
            revision,
            state: Mutex::new(State {
                uses: 0,
                streams: 0,
                last_use: Instant::now(),
                requests: Vec::new(),
                next: 0,
            }),
            reporter: tokio::sync::Mutex::new(()),
            ended: CancellationToken::new(),
        })
    }

    pub(super) const fn id(&self) -> SessionId {
        self.id
    }

    pub(super) const fn owner(&self) -> &CallerShare {
        &self.owner
    }

    pub(super) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Cancelled when the session ends.
    pub(super) const fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Waits until no other stream of the session reports changes of the tool list.
    pub(super) async fn become_reporter(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.reporter.lock().await
    }

    /// Since when the session has had neither a request nor a stream; `None` while it has one.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.uses == 0 && state.requests.is_empty()).then_some(state.last_use)
    }

    /// Whether no request is open.
    pub(super) fn is_unused(&self) -> bool {
        self.lock().requests.is_empty()
    }

    /// Ends the session: its streams end, and its requests are cancelled at their servers.
    pub(super) fn end(&self) {
        self.ended.cancel();
        let requests = std::mem::take(&mut self.lock().requests);
        for task in requests.into_iter().filter_map(|open| open.task) {
            task.abort();
        }
    }

    /// Ends the session: its streams end. Its requests go on.
    pub(super) fn revoke(&self) {
        self.ended.cancel();
    }

    /// Cancels an open request, for the reason that the client gave; ignores an id that is not open.
    pub(super) fn cancel(&self, id: &Id, reason: Option<&str>) {
        let mut state = self.lock();
        let open = state.take(|open| open.id == *id);
        drop(state);
        if let Some(task) = open.and_then(|open| open.task) {
            if let Some(reason) = reason {
                note_cancel_reason(task.id(), reason);
            }
            task.abort();
        }
    }

    /// Runs a request to its end, also if its caller is gone. The result is the answer, or an error of the
    /// channel if the request was cancelled.
    pub(super) fn begin(
        self: &Arc<Self>,
        id: Id,
        token: Option<Box<str>>,
        work: RequestFuture,
    ) -> Result<oneshot::Receiver<Answer>, BeginError> {
        let number = self.reserve(id, token)?;
        let (sender, answer) = oneshot::channel();
        let session = Arc::clone(self);
        let task = tokio::spawn(async move {
            let answer = contain(pin!(work)).await.unwrap_or_else(|_| Err(failed()));
            session.finish(number);
            // The receiver is gone if the connection was lost: the result is discarded.
            drop(sender.send(answer));
        });
        self.attach(number, task.abort_handle());
        Ok(answer)
    }

    fn reserve(&self, id: Id, token: Option<Box<str>>) -> Result<u64, BeginError> {
        let mut state = self.lock();
        if self.ended.is_cancelled() {
            return Err(BeginError::Ended);
        }
        if state.requests.iter().any(|open| open.id == id) {
            return Err(BeginError::SameId);
        }
        if state.requests.len() >= MAX_OPEN_REQUESTS {
            return Err(BeginError::Full);
        }
        if token.is_some() && state.requests.iter().any(|open| open.token == token) {
            return Err(BeginError::SameToken);
        }
        state.next += 1;
        let number = state.next;
        state.requests.push(OpenRequest {
            id,
            number,
            token,
            task: None,
        });
        Ok(number)
    }

    /// Stores the task of a request, unless it has ended. A request that was cancelled meanwhile is
    /// aborted.
    fn attach(&self, number: u64, task: AbortHandle) {
        let mut state = self.lock();
        let mut requests = state.requests.iter_mut();
        match requests.find(|open| open.number == number) {
            Some(open) => open.task = Some(task),
            None => task.abort(),
        }
    }

    fn finish(&self, number: u64) {
        let mut state = self.lock();
        state.last_use = Instant::now();
        drop(state.take(|open| open.number == number));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid after a panic: every change of it is made in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that an HTTP request or its stream uses.
#[derive(Debug)]
pub(super) struct SessionUse<B: Broker> {
    pub(super) session: Arc<Session<B>>,
    is_stream: bool,
}

impl<B: Broker> SessionUse<B> {
    pub(super) fn new(session: Arc<Session<B>>) -> Self {
        session.lock().uses += 1;
        Self {
            session,
            is_stream: false,
        }
    }

    /// Counts the use as a stream; returns whether the session may have another one.
    pub(super) fn become_stream(&mut self) -> bool {
        let mut state = self.session.lock();
        if state.streams >= MAX_STREAMS {
            return false;
        }
        state.streams += 1;
        drop(state);
        self.is_stream = true;
        true
    }
}

impl<B: Broker> Drop for SessionUse<B> {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.uses -= 1;
        if self.is_stream {
            state.streams -= 1;
        }
        state.last_use = Instant::now();
    }
}
