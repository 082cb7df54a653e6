//! One connection to one server process: every request ends in exactly one reply. Handles ids, timeouts
//! and the limit of calls in flight; knows neither eras nor methods, except for cancellation.

mod in_flight;
mod outgoing;
pub(crate) mod pipes;
mod shutdown;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod waiter;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use broker_memory::{Account, Owner};
use broker_process::{ExitReport, StderrTap, TappedLine};
use broker_wire::{Framer, LineLimit, Peer};
use bytes::Bytes;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};

use crate::events::{CallEvents, RequestEvents};
use crate::failure::{RequestError, SourceFailure};
use crate::masks::Masks;
use crate::opening::Opening;
use crate::overload::{AbandonedCall, Overload};
use crate::right::CallRight;
use crate::server_call::CallTime;
use crate::spec::{Endpoint, SourceSpec};

use outgoing::Outgoing;
pub use table::RawResult;
pub(crate) use table::RequestKind;
use table::{Reply, Request, Table};
use task::ConnectionTask;
pub(crate) use waiter::Subscription;
use waiter::Waiter;
pub(crate) use waiter::wait_extended;

/// The number of internal requests and notifications that may wait in addition to calls.
const MAX_INTERNAL_COMMANDS: usize = 64;
/// Calls that are in flight, queued, or on their way to the task. The task refuses calls over the source's limit.
const MAX_ADMITTED: usize = 1 << 16;

/// The handle of the connection task.
#[derive(Debug)]
pub(crate) struct Connection {
    commands: mpsc::Sender<Command>,
    shared: Arc<ConnectionState>,
    list_changes: watch::Receiver<u64>,
    end: watch::Receiver<Option<SourceFailure>>,
}

#[derive(Debug)]
struct ConnectionState {
    next_id: AtomicU64,
    /// Calls that the task has or will get; the task decrements this.
    admitted: AtomicUsize,
    /// The number of reads that gave bytes of the server. Only the task changes it.
    reads: AtomicU64,
}

/// A command to the connection task.
#[derive(Debug)]
enum Command {
    Request(Request),
    /// Cancels a request, for this reason.
    Cancel(u64, Option<Box<str>>),
    /// Cancels a call whose caller left, for this reason.
    Abandon(u64, AbandonedCall, Option<Box<str>>),
    /// Cancels an unwritten request.
    CancelUnsent(u64),
    Notify(Bytes),
    /// The server refused this request and did not execute it; the end of the connection follows.
    Refused(u64),
    Close(SourceFailure),
    Exited,
    /// The process wrote a line to stderr.
    Stderr(TappedLine),
}

/// Ends a connection from the task that carries its messages.
#[derive(Debug)]
pub(crate) struct Closer(mpsc::WeakSender<Command>);

impl Closer {
    /// Ends the connection: pending requests fail with `reason`. The server did not execute the request `refused`.
    pub(crate) async fn close(self, reason: SourceFailure, refused: Option<u64>) {
        let Some(commands) = self.0.upgrade() else {
            return;
        };
        let refused = refused.map(Command::Refused);
        for command in refused.into_iter().chain([Command::Close(reason)]) {
            if commands.send(command).await.is_err() {
                tracing::trace!("the connection has already ended");
            }
        }
    }
}

impl Connection {
    /// Opens a connection over the pipes of a server. `exit` is set when the server has ended,
    /// `stderr_ended` when its stderr was read to its end.
    pub(crate) fn open(
        stdin: ChildStdin,
        stdout: ChildStdout,
        exit: watch::Receiver<Option<ExitReport>>,
        stderr_ended: watch::Receiver<bool>,
        spec: &SourceSpec,
        opening: &Opening<'_>,
    ) -> Self {
        // A call is counted until the task releases it, and is cancelled at most once in each way; so this channel
        // is never full.
        let (commands, receiver) = mpsc::channel(3 * MAX_ADMITTED + MAX_INTERNAL_COMMANDS);
        let (list_sender, list_changes) = watch::channel(0);
        let (end_sender, end) = watch::channel(None);
        let shared = Arc::new(ConnectionState {
            next_id: AtomicU64::new(1),
            admitted: AtomicUsize::new(0),
            reads: AtomicU64::new(0),
        });
        let task = ConnectionTask {
            stdin: Some(stdin),
            stdout,
            framer: Framer::new(
                Peer::Server,
                LineLimit::new(spec.line_bytes),
                spec.memory.whole_account(),
            ),
            batch: None,
            outgoing: Outgoing::default(),
            table: Table::new(spec.max_in_flight, spec.queue),
            commands: receiver,
            inbox: Vec::new(),
            shared: shared.clone(),
            counters: opening.counters.clone(),
            lists: spec.lists,
            list_changes: list_sender,
            end: end_sender,
            exit: exit.clone(),
            stderr_ended,
            tail: opening.tail.clone(),
            masks: Masks::new(spec),
            stderr_masks: spec.stderr_to_callers.clone(),
            dropped_stderr: 0,
            source: spec.source.as_str().to_owned(),
            skips_prefix: match spec.endpoint {
                Endpoint::Process(_) => true,
                Endpoint::Http(_) | Endpoint::Unavailable(_) => false,
            },
            refused: None,
            noise_logged: false,
            repair_logged: false,
        };
        if spec.stderr_to_callers.is_some() {
            let commands = commands.downgrade();
            opening.tail.tap(StderrTap::new(move |line| {
                // A connection that has ended takes no lines.
                if let Some(commands) = commands.upgrade()
                    && commands.try_send(Command::Stderr(line)).is_err()
                {
                    tracing::trace!("a line of stderr found no place");
                }
            }));
        }
        opening.tasks.spawn(task.run());
        let exited = announce_exit(exit, commands.downgrade());
        opening.tasks.spawn(exited);
        Self {
            commands,
            shared,
            list_changes,
            end,
        }
    }

    /// Sends the request that `line` writes for an id, and waits for its reply for `time`, or without a
    /// timeout. Dropping the future cancels the request at the server.
    pub(crate) async fn request(
        &self,
        kind: RequestKind,
        line: impl FnOnce(u64) -> Bytes,
        time: impl Into<Option<Duration>>,
    ) -> Result<RawResult, RequestError> {
        let (id, reply) = self.submit(kind, line, None, None)?;
        let time = time.into().map(CallTime::from);
        Waiter::new(self, id, reply).wait(time, None, None).await
    }

    /// Sends a call like a request, with its events. It is given up when its `right` ends before it was sent.
    #[inline]
    pub(crate) async fn call(
        &self,
        line: impl FnOnce(u64) -> Bytes,
        events: Option<CallEvents>,
        time: CallTime,
        right: Option<&CallRight<'_>>,
        account: Option<&Account>,
    ) -> Result<RawResult, RequestError> {
        let (events, progressed) = events.map(RequestEvents::new).unzip();
        let (id, reply) = self.submit(RequestKind::Call, line, events, account)?;
        Waiter::new(self, id, reply)
            .with_caller(account)
            .wait(Some(time), progressed, right)
            .await
    }

    fn command(&self, command: Command) {
        if self.commands.try_send(command).is_err() {
            tracing::trace!("the connection has already ended");
        }
    }

    /// Returns the number of its calls, including waiting ones.
    pub(crate) fn load(&self) -> usize {
        self.shared.admitted.load(Ordering::Relaxed)
    }

    /// Returns a number that changes whenever bytes of the server arrive.
    pub(crate) fn reads(&self) -> u64 {
        self.shared.reads.load(Ordering::Relaxed)
    }

    /// Sends a request of the broker whose answer has no effect.
    pub(crate) fn tell(&self, line: impl FnOnce(u64) -> Bytes) -> Result<(), RequestError> {
        // The task removes it with its answer, or with the connection.
        self.submit(RequestKind::Internal, line, None, None)
            .map(drop)
    }

    /// Sends a notification. If the connection has ended, pending requests report it.
    pub(crate) async fn notify(&self, line: Bytes) {
        if self.commands.send(Command::Notify(line)).await.is_err() {
            tracing::trace!("a notification arrived after the connection had ended");
        }
    }

    /// Sends a request that stays open: a subscription. The returned value ends when the request does.
    pub(crate) fn subscribe(&self, line: impl FnOnce(u64) -> Bytes) -> Option<Subscription> {
        // It is never cancelled; it ends with the connection.
        let (_, reply) = self
            .submit(RequestKind::Subscription, line, None, None)
            .ok()?;
        Some(Subscription::new(reply))
    }

    /// Counts the server's announcements that its tools changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.list_changes.clone()
    }

    /// Returns the reason why the connection ended, once it has.
    pub(crate) fn end(&self) -> watch::Receiver<Option<SourceFailure>> {
        self.end.clone()
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.commands.is_closed()
    }

    /// Ends the connection: pending requests fail with `reason`, and stdin is closed.
    pub(crate) async fn close(&self, reason: SourceFailure) {
        if self.commands.send(Command::Close(reason)).await.is_err() {
            tracing::trace!("the connection has already ended");
        }
        let mut end = self.end.clone();
        if end.wait_for(Option::is_some).await.is_err() {
            tracing::trace!("the connection task has ended");
        }
    }

    /// Returns a handle that can end the connection and does not keep it open.
    pub(crate) fn closer(&self) -> Closer {
        Closer(self.commands.downgrade())
    }

    fn submit(
        &self,
        kind: RequestKind,
        line: impl FnOnce(u64) -> Bytes,
        events: Option<RequestEvents>,
        account: Option<&Account>,
    ) -> Result<(u64, oneshot::Receiver<Reply>), RequestError> {
        let overloaded = || {
            RequestError::Overloaded(Overload::Queue {
                limit: MAX_ADMITTED,
            })
        };
        if kind == RequestKind::Call
            && self.shared.admitted.fetch_add(1, Ordering::Relaxed) >= MAX_ADMITTED
        {
            self.shared.admitted.fetch_sub(1, Ordering::Relaxed);
            return Err(overloaded());
        }
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = oneshot::channel();
        let request = Request {
            id,
            line: line(id),
            kind,
            owner: account.map_or(Owner::BROKER, Account::owner),
            events,
            reply: sender,
        };
        if let Err(refused) = self.commands.try_send(Command::Request(request)) {
            if kind == RequestKind::Call {
                self.shared.admitted.fetch_sub(1, Ordering::Relaxed);
            }
            return Err(match refused {
                mpsc::error::TrySendError::Full(_) => overloaded(),
                mpsc::error::TrySendError::Closed(_) => self.gone(false),
            });
        }
        Ok((id, reply))
    }

    #[inline]
    fn read(
        &self,
        reply: Result<Reply, oneshot::error::RecvError>,
    ) -> Result<RawResult, RequestError> {
        match reply {
            Ok(Reply::Result(answer)) => Ok(answer),
            Ok(Reply::Error(error)) => Err(RequestError::Error(error)),
            Ok(Reply::Broken(reason)) => Err(RequestError::Broken(reason)),
            Ok(Reply::Overloaded(overload)) => Err(RequestError::Overloaded(overload)),
            Ok(Reply::TooLarge) => Err(RequestError::TooLarge),
            Ok(Reply::OutOfMemory) => Err(RequestError::OutOfMemory),
            Ok(Reply::Cancelled { begun }) => Err(RequestError::Timeout {
                begun,
                extended: None,
            }),
            Ok(Reply::Gone { begun }) => Err(self.gone(begun)),
            // The task was dropped with its runtime.
            Err(_) => Err(self.gone(true)),
        }
    }

    fn gone(&self, begun: bool) -> RequestError {
        let failure = self.end.borrow().clone().unwrap_or_else(|| {
            SourceFailure::new(
                broker_model::SourceCause::Stopped,
                "the connection was dropped",
            )
        });
        RequestError::Gone { failure, begun }
    }
}

/// Reports to the task that the process ended.
async fn announce_exit(
    mut exit: watch::Receiver<Option<ExitReport>>,
    commands: mpsc::WeakSender<Command>,
) {
    if exit.wait_for(Option::is_some).await.is_err() {
        tracing::trace!("the reaper task has ended");
    }
    if let Some(commands) = commands.upgrade()
        && commands.send(Command::Exited).await.is_err()
    {
        tracing::trace!("the connection has already ended");
    }
}
