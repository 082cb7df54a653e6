//! A link to one server. It carries requests and answers. A closed set of transports, chosen by the endpoint; a session
//! does not depend on the transport.

use std::sync::Arc;
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::redact::Redactor;
use broker_process::{Process, ProcessHandle, StopGrace};
use bytes::Bytes;
use tokio::sync::watch;

use crate::connection::{Connection, RawResult, RequestKind, Subscription};
use crate::events::CallEvents;
use crate::failure::{RequestError, SourceFailure};
use crate::http::{EventLink, HttpLink, HttpSpec, Pause, ToolParams};
use crate::link_factory::TaskHandle;
use crate::opening::{Negotiated, Opening};
use crate::request;
use crate::server_call::{CallTime, ServerCall};
use crate::spec::{Endpoint, SourceSpec};
use crate::status::Counters;

/// A connection to one server, with the handle that ends the server.
#[derive(Debug)]
pub(crate) enum Link {
    /// A child process, over its standard streams.
    Process {
        connection: Connection,
        process: ProcessHandle,
        counters: Arc<Counters>,
    },
    /// A server over streamable HTTP.
    Http(HttpLink),
    /// A server over the older transport HTTP+SSE.
    Events(EventLink),
    /// A task of this runtime, over pipes.
    Task {
        connection: Connection,
        task: TaskHandle,
    },
}

impl Link {
    /// Starts or reaches the server of `spec`.
    pub(crate) async fn open(
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let process = match &spec.endpoint {
            Endpoint::Process(process) => process,
            Endpoint::Http(http) => {
                return HttpLink::open(http, spec, opening).await.map(Self::Http);
            }
            Endpoint::Unavailable(failure) => return Err((**failure).clone()),
        };
        let source = spec.source.as_str();
        if let Some((stdin, stdout, task)) = spec.links.start(source, process, opening.tasks) {
            let (exit, stderr_ended) = (task.exit.clone(), task.stderr_ended.clone());
            let connection = Connection::open(stdin, stdout, exit, stderr_ended, spec, opening);
            return Ok(Self::Task { connection, task });
        }
        let grace = StopGrace {
            close: spec.timing.close_grace,
            term: spec.timing.term_grace,
        };
        let mut process = Process::spawn(
            process,
            grace,
            opening.tail,
            opening.tasks,
            opening.stop_deadline,
        )
        .await?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            let message = "the process has no pipes";
            return Err(SourceFailure::new(SourceCause::SpawnFailed, message));
        };
        let process = process.handle;
        let (exit, stderr_ended) = (process.exit(), process.stderr_ended());
        Ok(Self::Process {
            connection: Connection::open(stdin, stdout, exit, stderr_ended, spec, opening),
            process,
            counters: opening.counters.clone(),
        })
    }

    /// Opens the older transport of a server over HTTP.
    pub(crate) async fn open_events(
        http: &HttpSpec,
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        EventLink::open(http, spec, opening).await.map(Self::Events)
    }

    /// Returns its transport.
    pub(crate) const fn carrier(&self) -> Carrier {
        match self {
            Self::Http(_) => Carrier::StreamableHttp,
            Self::Events(_) => Carrier::HttpSse,
            _ => Carrier::Stdio,
        }
    }

    /// Sends the request that `line` writes for an id, and waits for its reply. Dropping the future
    /// cancels the request at the server.
    pub(crate) async fn request(
        &self,
        kind: RequestKind,
        method: &'static str,
        line: impl FnOnce(u64) -> Bytes,
        time: impl Into<Option<Duration>>,
    ) -> Result<RawResult, RequestError> {
        match self.transport() {
            Transport::Streams(connection) => connection.request(kind, line, time).await,
            // In a box, so that a request over streams does not reserve its room.
            Transport::Http(http) => Box::pin(http.request(kind, method, line, time.into())).await,
        }
    }

    /// Sends a call like a request, with its events.
    #[inline]
    pub(crate) async fn call(
        &self,
        call: &ServerCall<'_>,
        line: impl FnOnce(u64) -> Bytes,
        events: Option<CallEvents>,
        time: CallTime,
    ) -> Result<RawResult, RequestError> {
        match self.transport() {
            Transport::Streams(connection) => {
                let (right, account) = (call.right, call.account);
                connection.call(line, events, time, right, account).await
            }
            Transport::Http(http) => Box::pin(http.call(call, line, events, time)).await,
        }
    }

    /// Sends a request of the broker whose answer has no effect.
    pub(crate) fn tell(
        &self,
        method: &'static str,
        line: impl FnOnce(u64) -> Bytes,
    ) -> Result<(), RequestError> {
        match self.transport() {
            Transport::Streams(connection) => connection.tell(line),
            Transport::Http(http) => {
                http.tell(method, line);
                Ok(())
            }
        }
    }

    /// Sends a request about the task of a server, and waits for its reply. Over HTTP a header repeats its `id`.
    pub(crate) async fn ask_task(
        &self,
        method: &'static str,
        id: &str,
        line: impl FnOnce(u64) -> Bytes,
        time: Duration,
    ) -> Result<RawResult, RequestError> {
        match self.transport() {
            Transport::Streams(connection) => {
                let kind = RequestKind::Internal;
                connection.request(kind, line, time).await
            }
            Transport::Http(http) => http.ask_task(method, id, line, time).await,
        }
    }

    /// Sends the cancel of a server's task. Its answer has no effect.
    pub(crate) fn cancel_task(&self, id: &str, line: impl FnOnce(u64) -> Bytes) {
        match self.transport() {
            Transport::Streams(connection) => {
                if connection.tell(line).is_err() {
                    tracing::debug!("the cancel of a task was not sent");
                }
            }
            Transport::Http(http) => http.tell_about(request::CANCEL_TASK, Some(id), line),
        }
    }

    /// Sends a notification. If the connection has ended, pending requests report it.
    pub(crate) async fn notify(&self, method: &'static str, line: Bytes) {
        match self.transport() {
            Transport::Streams(connection) => connection.notify(line).await,
            Transport::Http(http) => http.notify(method, line).await,
        }
    }

    /// Sends a request that stays open: a subscription.
    pub(crate) fn subscribe(&self, line: impl FnOnce(u64) -> Bytes) -> Option<Subscription> {
        match self.transport() {
            Transport::Streams(connection) => connection.subscribe(line),
            Transport::Http(http) => Some(http.subscribe(line)),
        }
    }

    /// Whether the server refused the token of an opening request, and there is another one since.
    pub(crate) fn has_new_token(&self) -> bool {
        self.http().is_some_and(HttpLink::has_new_token)
    }

    /// Ends the handshake. Requests over HTTP repeat its result.
    pub(crate) fn negotiated(&self, negotiated: &Negotiated) {
        if let Some(http) = self.http() {
            http.negotiated(negotiated);
        }
    }

    /// Returns the parameters that calls repeat as headers, for a modern server over HTTP.
    pub(crate) fn tool_params(&self) -> Option<Arc<ToolParams>> {
        self.http()?.tool_params()
    }

    /// Returns the number of its calls, including waiting ones.
    pub(crate) fn load(&self) -> usize {
        match self.transport() {
            Transport::Streams(connection) => connection.load(),
            Transport::Http(http) => http.load(),
        }
    }

    /// Returns a number that changes whenever bytes of the server arrive.
    pub(crate) fn reads(&self) -> u64 {
        match self.transport() {
            Transport::Streams(connection) => connection.reads(),
            Transport::Http(http) => http.reads(),
        }
    }

    /// Counts the server's announcements that its tools changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        match self.transport() {
            Transport::Streams(connection) => connection.list_changes(),
            Transport::Http(http) => http.list_changes(),
        }
    }

    /// Marks the announcements until now as covered by the listing that is requested next. A process's announcements
    /// are counted from its start.
    pub(crate) fn listing_begins(&self) {
        if let Some(http) = self.http() {
            http.listing_begins();
        }
    }

    /// Has the tools listed again, for a server over streamable HTTP.
    pub(crate) fn tools_changed(&self) {
        if let Some(http) = self.http() {
            http.tools_changed();
        }
    }

    /// Returns the pause that a server over streamable HTTP asks for.
    pub(crate) fn pause(&self) -> Option<&Pause> {
        self.http().map(HttpLink::pause)
    }

    /// Returns the reason why the connection ended, once it has.
    pub(crate) fn end(&self) -> watch::Receiver<Option<SourceFailure>> {
        match self.transport() {
            Transport::Streams(connection) => connection.end(),
            Transport::Http(http) => http.end(),
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        match self.transport() {
            Transport::Streams(connection) => connection.is_over(),
            Transport::Http(http) => http.is_over(),
        }
    }

    /// Returns the leader of the process group, for a server that is a process.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process { process, .. } => Some(process.pid()),
            Self::Http(_) | Self::Events(_) | Self::Task { .. } => None,
        }
    }

    /// Masks the secrets that the server knows; `of_source` masks the secrets of the config.
    pub(crate) fn redactor(&self, of_source: &Redactor) -> Redactor {
        match self {
            Self::Http(http) => http.redactor(),
            Self::Events(events) => events.masks.now(),
            _ => of_source.clone(),
        }
    }

    /// Returns the session id of a legacy server over HTTP that has sessions.
    pub(crate) fn session_id(&self) -> Option<String> {
        self.http()?.session_id()
    }

    /// Ends the connection and then the server; pending requests fail with `reason`.
    pub(crate) async fn close(&self, reason: SourceFailure) {
        match self {
            Self::Process {
                connection,
                process,
                counters,
            } => {
                process.note_descendants().await;
                connection.close(reason).await;
                counters.note_ending(process.stop().await);
            }
            Self::Http(http) => http.close(reason).await,
            Self::Events(link) => link.close(reason).await,
            Self::Task { connection, task } => {
                connection.close(reason).await;
                task.stop().await;
            }
        }
    }

    /// Returns the link over streamable HTTP, if it is one.
    const fn http(&self) -> Option<&HttpLink> {
        match self {
            Self::Http(http) => Some(http),
            _ => None,
        }
    }

    #[inline]
    const fn transport(&self) -> Transport<'_> {
        match self {
            Self::Http(http) => Transport::Http(http),
            Self::Process { connection, .. }
            | Self::Events(EventLink { connection, .. })
            | Self::Task { connection, .. } => Transport::Streams(connection),
        }
    }
}

/// The transport of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The standard streams of a process.
    Stdio,
    /// Streamable HTTP (revisions from 2025-03-26 on).
    StreamableHttp,
    /// HTTP+SSE (revision 2024-11-05), deprecated.
    HttpSse,
}

/// The transport of a link's messages.
#[derive(Clone, Copy)]
enum Transport<'a> {
    /// Lines over two streams of bytes.
    Streams(&'a Connection),
    /// A request of HTTP for each message.
    Http(&'a HttpLink),
}
