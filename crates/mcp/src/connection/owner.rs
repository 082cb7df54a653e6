//! The one task of a connection: owns the id table, reads, writes, and answers everybody who waits.
//!
//! Reading and writing are polled side by side and never wait for each other, so a server that does
//! not read cannot keep its answers from being read, and a stuck write stops nothing but itself.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::outgoing::Outgoing;
use super::table::{Kind, Reply, Request, Table};
use super::{Command, Shared};
use crate::envelope::{Message, Messages, parse};
use crate::failure::{ExitReport, SourceFailure};
use crate::framing::{Frame, Framer};
use crate::process::StderrTail;
use crate::request;
use crate::status::Counters;

/// Commands taken in at one go.
const COMMANDS: usize = 64;
/// How long what an ended process left in its pipes is waited for.
const LEFTOVERS: Duration = Duration::from_millis(30);
/// How long a process that closed a pipe has to end before it counts as running on without it.
const CLOSED_PIPE: Duration = Duration::from_millis(250);
/// Answers to a server's own requests that may wait to be written.
const MOST_ANSWERS: usize = 256;

/// Why a connection is over.
#[derive(Debug)]
enum End {
    /// We close it.
    Closed,
    /// The process ended.
    Exited,
    /// The server closed its stdout.
    Stdout,
    /// The server closed its stdin.
    Stdin,
    /// A line without end.
    Endless,
}

/// What the task owns.
pub(super) struct Owner {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) framer: Framer,
    pub(super) outgoing: Outgoing,
    pub(super) table: Table,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) inbox: Vec<Command>,
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    pub(super) list_changes: watch::Sender<u64>,
    pub(super) end: watch::Sender<Option<SourceFailure>>,
    pub(super) exit: watch::Receiver<Option<ExitReport>>,
    pub(super) stderr_ended: watch::Receiver<bool>,
    pub(super) tail: StderrTail,
    pub(super) redactor: Redactor,
    pub(super) source: String,
    pub(super) noise_told: bool,
    pub(super) repair_told: bool,
}

impl Owner {
    pub(super) async fn run(mut self) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        if matches!(end, End::Exited | End::Stdin) {
            // The last answers may still be in the pipe, which a grandchild may hold open for ever.
            let rest = poll_fn(|cx| self.poll_rest(cx));
            if timeout(LEFTOVERS, rest).await.is_err() {
                tracing::trace!(source = %self.source, "stdout stays open");
            }
        }
        if let Some(Frame::Line(line)) = self.framer.finish() {
            self.take_line(line);
        }
        let failure = self.explain(&end).await;
        // Whoever finds the channel closed looks here for the reason, so it is there first.
        self.end.send_replace(Some(failure));
        self.commands.close();
        // Closing stdin tells the server to leave.
        self.stdin = None;
        self.dismiss();
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let mut moved = false;
            let mut inbox = std::mem::take(&mut self.inbox);
            match self.commands.poll_recv_many(cx, &mut inbox, COMMANDS) {
                Poll::Ready(0) => return Poll::Ready(End::Closed),
                Poll::Ready(_) => moved = true,
                Poll::Pending => {}
            }
            let mut end = None;
            for command in inbox.drain(..) {
                end = end.or(self.obey(command));
            }
            self.inbox = inbox;
            if let Some(end) = end {
                return Poll::Ready(end);
            }
            match self.poll_read(cx) {
                Poll::Ready(None) => moved = true,
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Pending => {}
            }
            if let Some(stdin) = &mut self.stdin
                && let Poll::Ready(Err(error)) = self.outgoing.poll_write(cx, stdin)
            {
                tracing::debug!(source = %self.source, %error, "stdin cannot be written");
                return Poll::Ready(End::Stdin);
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Reads stdout to its end and nothing else.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.poll_read(cx) {
                Poll::Ready(None) => {}
                Poll::Ready(Some(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads once and takes in every frame that this completes.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let read = {
            let mut read = pin!(self.stdout.read_buf(self.framer.buffer()));
            match read.as_mut().poll(cx) {
                Poll::Ready(read) => read,
                Poll::Pending => return Poll::Pending,
            }
        };
        match read {
            Ok(0) | Err(_) => return Poll::Ready(Some(End::Stdout)),
            Ok(_) => {}
        }
        while let Some(frame) = self.framer.next() {
            match frame {
                Frame::Line(line) => self.take_line(line),
                Frame::Oversize { id } => {
                    self.counters.add_oversize_line();
                    match id {
                        Some(id) => self.settle(id, Reply::TooLarge),
                        // Nobody can be told; whoever waits for it is told by the deadline.
                        None => {
                            tracing::warn!(source = %self.source, "a line over the limit, without an id, was thrown away")
                        }
                    }
                }
                Frame::Endless => return Poll::Ready(Some(End::Endless)),
            }
        }
        Poll::Ready(None)
    }

    fn obey(&mut self, command: Command) -> Option<End> {
        match command {
            Command::Request(request) => self.send(request),
            Command::Cancel(id) => self.cancel(id),
            Command::Notify(line) => self.outgoing.push(line),
            Command::Close => return Some(End::Closed),
            Command::Exited => return Some(End::Exited),
        }
        None
    }

    fn send(&mut self, request: Request) {
        if let Some((id, line)) = self.table.admit(request) {
            self.outgoing.push_request(id, line);
        }
    }

    fn cancel(&mut self, id: u64) {
        if let Some(request) = self.table.remove_queued(id) {
            self.release(request.kind);
            answer(request.reply, Reply::Cancelled { begun: false });
            return;
        }
        // Not there: its answer crossed the wish to give it up.
        let Some(waiting) = self.table.remove(id) else {
            return;
        };
        let begun = !self.outgoing.withdraw(id);
        if begun && waiting.kind != Kind::Opening {
            self.outgoing.push_urgent(request::cancelled(id));
        }
        self.release(waiting.kind);
        answer(waiting.reply, Reply::Cancelled { begun });
        self.advance_queue();
    }

    fn take_line(&mut self, line: Bytes) {
        let parsed = parse(line.clone());
        if parsed.repaired {
            self.counters.add_invalid_utf8_line();
            if !std::mem::replace(&mut self.repair_told, true) {
                tracing::warn!(source = %self.source, "the server sends text that is not UTF-8; it is repaired");
            }
        }
        match parsed.messages {
            Messages::One(message) => self.take_message(message, &line),
            Messages::Many(messages) => {
                for message in messages {
                    self.take_message(message, &line);
                }
            }
        }
    }

    fn take_message(&mut self, message: Message, line: &Bytes) {
        match message {
            Message::Result { id, result } => self.settle(id, Reply::Result(result)),
            Message::Error { id, error } => self.settle(id, Reply::Error(error)),
            Message::Broken { id, reason } => self.settle(id, Reply::Broken(reason)),
            Message::Stray => self.counters.add_unknown_id(),
            Message::Request { id, method } => {
                self.counters.add_server_request();
                // A server that asks without reading gets no more answers than can wait.
                if self.outgoing.len() < MOST_ANSWERS {
                    self.outgoing.push(request::answer(&id, &method));
                }
            }
            Message::Notification { method } => {
                if method == "notifications/tools/list_changed" {
                    self.list_changes.send_modify(|changes| *changes += 1);
                }
            }
            Message::Noise => self.tell_noise(line),
        }
    }

    fn tell_noise(&mut self, line: &Bytes) {
        self.counters.add_noise_line();
        if std::mem::replace(&mut self.noise_told, true) {
            return;
        }
        let head = String::from_utf8_lossy(&line[..line.len().min(4096)]);
        let shown = shown_line(&self.redactor.redact(&head), 200);
        tracing::warn!(source = %self.source, line = %shown, "the server prints what is no message to stdout; such lines are skipped and counted");
    }

    /// Gives an answer to whoever waits for it.
    fn settle(&mut self, id: u64, reply: Reply) {
        let Some(waiting) = self.table.remove(id) else {
            if id < self.shared.next_id.load(Ordering::Relaxed) {
                self.counters.add_late_answer();
            } else {
                self.counters.add_unknown_id();
            }
            return;
        };
        self.release(waiting.kind);
        answer(waiting.reply, reply);
        self.advance_queue();
    }

    fn advance_queue(&mut self) {
        while let Some((id, line)) = self.table.next_queued() {
            self.outgoing.push_request(id, line);
        }
    }

    fn release(&self, kind: Kind) {
        if kind == Kind::Call {
            self.shared.admitted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The one reason that everybody who waits is given.
    async fn explain(&mut self, end: &End) -> SourceFailure {
        let patience = match end {
            End::Stdout | End::Stdin => CLOSED_PIPE,
            End::Closed | End::Exited | End::Endless => Duration::ZERO,
        };
        let ended = self.exit.wait_for(Option::is_some);
        if timeout(patience, ended).await.is_err() {
            tracing::trace!(source = %self.source, "the process has not ended");
        }
        let exit = *self.exit.borrow();
        if exit.is_some() {
            let read = self.stderr_ended.wait_for(|ended| *ended);
            if timeout(LEFTOVERS, read).await.is_err() {
                tracing::trace!(source = %self.source, "stderr stays open");
            }
        }
        let (cause, message) = match (end, exit) {
            (End::Closed, _) => (
                SourceCause::Stopped,
                "the source is being stopped".to_owned(),
            ),
            (End::Endless, _) => (
                SourceCause::Protocol,
                "the server sent a line without end".to_owned(),
            ),
            (_, Some(exit)) => (SourceCause::Exited, format!("the server's process {exit}")),
            (End::Stdin, None) => (
                SourceCause::Protocol,
                "the server closed its stdin".to_owned(),
            ),
            (_, None) => (
                SourceCause::Protocol,
                "the server closed its stdout".to_owned(),
            ),
        };
        SourceFailure {
            cause,
            message,
            exit,
            stderr: self.tail.for_failure(),
        }
    }

    /// Tells everybody who waits that it is over.
    fn dismiss(&mut self) {
        let (waiting, queue) = self.table.clear();
        for (id, waiting) in waiting {
            let begun = !self.outgoing.withdraw(id);
            self.release(waiting.kind);
            answer(waiting.reply, Reply::Gone { begun });
        }
        let mut unsent: Vec<Request> = queue.into();
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Request(request) = command {
                unsent.push(request);
            }
        }
        for request in unsent {
            self.release(request.kind);
            answer(request.reply, Reply::Gone { begun: false });
        }
    }
}

/// Answers; whoever stopped waiting at this very moment has its own way to say so.
fn answer(waiter: tokio::sync::oneshot::Sender<Reply>, reply: Reply) {
    if waiter.send(reply).is_err() {
        tracing::trace!("nobody waits for the answer any more");
    }
}
