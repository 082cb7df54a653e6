//! A link to one server, which carries requests and answers. A closed set of transports, chosen by the
//! endpoint; a session does not depend on the transport.

use std::time::Duration;

use broker_model::SourceCause;
use broker_process::{Process, ProcessHandle, StopGrace};
use bytes::Bytes;
use tokio::sync::watch;

use crate::connection::{Connection, RawResult, RequestError, RequestKind, Subscription};
use crate::events::CallEvents;
use crate::failure::SourceFailure;
#[cfg(any(test, feature = "scripted"))]
use crate::scripted;
use crate::session::{CallTime, Opening};
use crate::spec::{Endpoint, SourceSpec};

/// A connection to one server, with the handle that ends the server.
#[derive(Debug)]
pub(crate) enum Link {
    /// A child process, over its standard streams.
    Process {
        connection: Connection,
        process: ProcessHandle,
    },
    /// A task of a test's runtime, over pipes.
    #[cfg(any(test, feature = "scripted"))]
    Scripted {
        connection: Connection,
        task: scripted::TaskHandle,
    },
}

impl Link {
    /// Starts or reaches the server of `spec`.
    pub(crate) async fn open(
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Result<Self, SourceFailure> {
        let Endpoint::Process(process) = &spec.endpoint;
        #[cfg(any(test, feature = "scripted"))]
        if let Some((stdin, stdout, task)) = scripted::start(process, opening.tasks) {
            let ends = (task.exit(), task.stderr_ended());
            let connection = Connection::open(stdin, stdout, ends, spec, opening);
            return Ok(Self::Scripted { connection, task });
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
        let ends = (process.exit(), process.stderr_ended());
        Ok(Self::Process {
            connection: Connection::open(stdin, stdout, ends, spec, opening),
            process,
        })
    }

    /// Sends the request that `line` writes for an id, and waits for its reply. Dropping the future
    /// cancels the request at the server.
    pub(crate) async fn request(
        &self,
        kind: RequestKind,
        line: impl FnOnce(u64) -> Bytes,
        time: impl Into<Option<Duration>>,
    ) -> Result<RawResult, RequestError> {
        self.connection().request(kind, line, time).await
    }

    /// Sends a call like a request, with its events.
    pub(crate) async fn call(
        &self,
        line: impl FnOnce(u64) -> Bytes,
        events: Option<CallEvents>,
        time: CallTime,
    ) -> Result<RawResult, RequestError> {
        self.connection().call(line, events, time).await
    }

    /// Sends a request of the broker whose answer has no effect.
    pub(crate) fn tell(&self, line: impl FnOnce(u64) -> Bytes) -> Result<(), RequestError> {
        self.connection().tell(line)
    }

    /// Sends a notification. If the connection has ended, pending requests report it.
    pub(crate) async fn notify(&self, line: Bytes) {
        self.connection().notify(line).await;
    }

    /// Sends a request that stays open: a subscription.
    pub(crate) fn subscribe(&self, line: impl FnOnce(u64) -> Bytes) -> Option<Subscription> {
        self.connection().subscribe(line)
    }

    /// The number of its calls, including waiting ones.
    pub(crate) fn load(&self) -> usize {
        self.connection().load()
    }

    /// Counts the server's announcements that its tools changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.connection().list_changes()
    }

    /// The reason why the connection ended, once it has.
    pub(crate) fn end(&self) -> watch::Receiver<Option<SourceFailure>> {
        self.connection().end()
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.connection().is_over()
    }

    /// The leader of the process group, for a server that is a process.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process { process, .. } => Some(process.pid()),
            #[cfg(any(test, feature = "scripted"))]
            Self::Scripted { .. } => None,
        }
    }

    /// Ends the connection and then the server; pending requests fail with `reason`.
    pub(crate) async fn close(&self, reason: SourceFailure) {
        match self {
            Self::Process {
                connection,
                process,
            } => {
                process.note_descendants().await;
                connection.close(reason).await;
                process.stop().await;
            }
            #[cfg(any(test, feature = "scripted"))]
            Self::Scripted { connection, task } => {
                connection.close(reason).await;
                task.stop().await;
            }
        }
    }

    fn connection(&self) -> &Connection {
        match self {
            Self::Process { connection, .. } => connection,
            #[cfg(any(test, feature = "scripted"))]
            Self::Scripted { connection, .. } => connection,
        }
    }
}
