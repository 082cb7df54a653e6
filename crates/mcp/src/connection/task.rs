//! The task of a connection: owns the id table, reads, writes, and completes the pending requests.
//!
//! Reading and writing are polled concurrently and never wait for each other, so answers of a server that does not read
//! are still read, and a blocked write does not block other work.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use broker_process::{ExitReport, StderrTail, TappedLine};
use broker_wire::protocol::{CANCELLED, LOG_MESSAGE, PROGRESS};
use broker_wire::{
    Batch, Frame, Framer, Id, Incoming, Messages, Problem, Raw, cancelled_request, read_server_line,
};
use bytes::Bytes;
use memchr::memchr;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use super::outgoing::Outgoing;
use super::table::{Admission, RawResult, Reply, Request, RequestKind, Table};
use super::{Command, ConnectionState};

use crate::events::Delivery;
use crate::failure::SourceFailure;
use crate::masks::Masks;
use crate::overload::AbandonedCall;
use crate::spec::ItemLists;
use crate::status::Counters;
use crate::{events, request};

/// The maximum number of commands that are received at once.
const MAX_COMMANDS: usize = 64;
/// The maximum bytes of messages that are processed before the task yields.
const MAX_TURN_BYTES: usize = 1 << 20;
/// The minimum number of bytes that a message counts towards `MAX_TURN_BYTES`.
const MIN_MESSAGE_BYTES: usize = 4 << 10;
/// The maximum bytes of text that are skipped before the first answer of a process.
const MAX_PREFIX_BYTES: usize = 1 << 10;

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// The broker closed it, for this reason, or because its handle was dropped.
    Closed(Option<SourceFailure>),
    /// The process ended.
    Exited,
    /// The server closed its stdout.
    Stdout,
    /// The server closed its stdin.
    Stdin,
    /// A line over every limit.
    Endless,
    /// The server sends requests and does not read the replies.
    Stalled,
}

/// The progress of processing the bytes that were read.
enum TurnOutcome {
    Done,
    Partial,
    /// A line is over every limit.
    Endless,
}

/// The state of the connection task.
pub(super) struct ConnectionTask {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) framer: Framer,
    /// The rest of a batch, its line, and whether that line was repaired.
    pub(super) batch: Option<(Batch, Bytes, bool)>,
    pub(super) outgoing: Outgoing,
    pub(super) table: Table,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) inbox: Vec<Command>,
    pub(super) shared: Arc<ConnectionState>,
    pub(super) counters: Arc<Counters>,
    /// The lists whose changes are announced.
    pub(super) lists: ItemLists,
    pub(super) list_changes: watch::Sender<u64>,
    pub(super) end: watch::Sender<Option<SourceFailure>>,
    pub(super) exit: watch::Receiver<Option<ExitReport>>,
    pub(super) stderr_ended: watch::Receiver<bool>,
    pub(super) tail: StderrTail,
    pub(super) masks: Masks,
    /// Masks lines of stderr for callers.
    pub(super) stderr_masks: Option<Redactor>,
    /// The lines of stderr since the last one that a call got.
    pub(super) dropped_stderr: u64,
    pub(super) source: String,
    /// Whether text before a message is skipped in the answer that comes next: until the first answer of a process.
    pub(super) skips_prefix: bool,
    /// The request with whose refusal the server ended the connection.
    pub(super) refused: Option<u64>,
    pub(super) noise_logged: bool,
    pub(super) repair_logged: bool,
}

impl ConnectionTask {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let mut moved = false;
            let mut inbox = std::mem::take(&mut self.inbox);
            match self.commands.poll_recv_many(cx, &mut inbox, MAX_COMMANDS) {
                Poll::Ready(0) => return Poll::Ready(End::Closed(None)),
                Poll::Ready(_) => moved = true,
                Poll::Pending => {}
            }
            let mut end = None;
            for command in inbox.drain(..) {
                end = end.or(self.handle_command(command));
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
            if self.outgoing.is_stalled() {
                return Poll::Ready(End::Stalled);
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

    /// Reads stdout to its end and does no other work.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.poll_read(cx) {
                Poll::Ready(None) => {}
                Poll::Ready(Some(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Processes the bytes that were read before, then reads once.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        match self.take_frames() {
            TurnOutcome::Done => {}
            TurnOutcome::Partial => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            TurnOutcome::Endless => return Poll::Ready(Some(End::Endless)),
        }
        let read = {
            let mut read = pin!(self.stdout.read_buf(self.framer.buffer()));
            match read.as_mut().poll(cx) {
                Poll::Ready(read) => read,
                Poll::Pending => return Poll::Pending,
            }
        };
        match read {
            Ok(0) | Err(_) => Poll::Ready(Some(End::Stdout)),
            Ok(_) => {
                let reads = &self.shared.reads;
                // Only this task writes it, so that it needs no atomic addition.
                reads.store(reads.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                Poll::Ready(None)
            }
        }
    }

    /// Processes all bytes that were read.
    pub(super) async fn take_all(&mut self) {
        while let TurnOutcome::Partial = self.take_frames() {
            tokio::task::yield_now().await;
        }
    }

    /// Processes whole lines and batches, up to `MAX_TURN_BYTES`.
    fn take_frames(&mut self) -> TurnOutcome {
        let mut turn = 0;
        while turn < MAX_TURN_BYTES {
            if let Some((mut batch, line, repaired)) = self.batch.take() {
                let before = batch.walked();
                if let Some(message) = batch.next() {
                    turn += (batch.walked() - before).max(MIN_MESSAGE_BYTES);
                    self.take_message(message, &line, repaired);
                    self.batch = Some((batch, line, repaired));
                }
                continue;
            }
            match self.framer.next_frame() {
                None => return TurnOutcome::Done,
                Some(Frame::Line(line)) => {
                    turn += line.len().max(MIN_MESSAGE_BYTES);
                    self.take_line(line);
                }
                Some(Frame::Oversize { id }) => {
                    self.counters.add_oversize_line();
                    match id.as_ref().and_then(Id::number) {
                        Some(id) => self.settle(id, Reply::TooLarge),
                        // Without an id the request is unknown; it ends by its timeout.
                        None => {
                            tracing::warn!(source = %self.source, "a line over the limit that has no id was discarded")
                        }
                    }
                }
                Some(Frame::OutOfMemory { id, .. }) => self.refuse_without_room(id.as_ref()),
                Some(Frame::Endless) => return TurnOutcome::Endless,
            }
        }
        TurnOutcome::Partial
    }

    fn handle_command(&mut self, command: Command) -> Option<End> {
        match command {
            Command::Request(request) => self.send(request),
            Command::Cancel(id, reason) => self.cancel(id, None, reason),
            Command::Abandon(id, call, reason) => self.cancel(id, Some(call), reason),
            Command::CancelUnsent(id) => self.cancel_unsent(id),
            Command::Notify(line) => self.outgoing.push(line),
            Command::Refused(id) => self.refused = Some(id),
            Command::Close(reason) => return Some(End::Closed(Some(reason))),
            Command::Exited => return Some(End::Exited),
            Command::Stderr(line) => self.take_stderr(line),
        }
        None
    }

    fn send(&mut self, request: Request) {
        match self.table.admit(request) {
            Admission::Write(id, line) => self.outgoing.push_request(id, line),
            Admission::Queued => {}
            Admission::Refused(refused, overload) => {
                self.release(refused.kind);
                answer(refused.reply, Reply::Overloaded(overload));
            }
        }
    }

    /// Cancels a request that waits for others to end; returns whether it did.
    fn cancel_queued(&mut self, id: u64) -> bool {
        let Some(request) = self.table.remove_queued(id) else {
            return false;
        };
        self.release(request.kind);
        answer(request.reply, Reply::Cancelled { begun: false });
        true
    }

    fn cancel_unsent(&mut self, id: u64) {
        if self.cancel_queued(id) || !self.outgoing.withdraw(id) {
            return;
        }
        if let Some(waiting) = self.table.remove(id) {
            self.release(waiting.kind);
            answer(waiting.reply, Reply::Cancelled { begun: false });
            self.advance_queue();
        }
    }

    /// Cancels a request; `left` if its caller left.
    fn cancel(&mut self, id: u64, left: Option<AbandonedCall>, reason: Option<Box<str>>) {
        if self.cancel_queued(id) {
            return;
        }
        // Not in the table: its answer arrived before the cancellation.
        let Some(waiting) = self.table.remove(id) else {
            return;
        };
        let begun = !self.outgoing.withdraw(id);
        if begun && waiting.kind == RequestKind::Call {
            self.table.abandon(id, left);
        }
        if begun && waiting.kind != RequestKind::Opening {
            let cancelled = request::cancelled(id, reason.as_deref());
            self.outgoing.push_urgent(cancelled);
        }
        self.release(waiting.kind);
        answer(waiting.reply, Reply::Cancelled { begun });
        self.advance_queue();
    }

    pub(super) fn take_line(&mut self, line: Bytes) {
        let line = match self.skips_prefix {
            true => self.without_prefix(line),
            false => line,
        };
        let parsed = read_server_line(line.clone(), self.framer.account());
        if parsed.repaired {
            self.counters.add_invalid_utf8_line();
            if !std::mem::replace(&mut self.repair_logged, true) {
                tracing::warn!(source = %self.source, "the server sends text that is not UTF-8; invalid bytes are replaced");
            }
        }
        match parsed.messages {
            Messages::One(message) => self.take_message(message, &line, parsed.repaired),
            Messages::Many(batch) => self.batch = Some((batch, line, parsed.repaired)),
        }
    }

    /// Returns the line from its first `{` on, if that is the answer to an opening request. A program may write a text
    /// without a line end, such as a banner, before its server writes the first answer.
    fn without_prefix(&mut self, line: Bytes) -> Bytes {
        let head = &line[..line.len().min(MAX_PREFIX_BYTES)];
        let Some(at) = memchr(b'{', head).filter(|at| *at > 0) else {
            return line;
        };
        let rest = line.slice(at..);
        let parsed = read_server_line(rest.clone(), self.framer.account());
        let answered = match parsed.messages {
            Messages::One(Incoming::Response { id: Some(id), .. }) => id.number(),
            Messages::One(_) | Messages::Many(_) => None,
        };
        let kind = answered.and_then(|id| self.table.kind(id));
        if kind != Some(RequestKind::Opening) {
            return line;
        }
        self.log_noise(&line.slice(..at));
        rest
    }

    fn take_message(&mut self, message: Incoming, line: &Bytes, repaired: bool) {
        match message {
            Incoming::Response { id, outcome } => {
                let Some(id) = id.as_ref().and_then(Id::number) else {
                    return self.counters.add_unknown_id();
                };
                let reply = match outcome {
                    Ok(result) => Reply::Result(RawResult {
                        result: result.into_bytes(),
                        repaired,
                        is_error: false,
                    }),
                    Err(error) => Reply::Error(error.into_bytes()),
                };
                self.settle(id, reply);
            }
            Incoming::Request { id, method, .. } => {
                self.counters.add_server_request();
                if id.is_too_long() {
                    self.counters.add_unanswered_request();
                } else {
                    self.outgoing.push(request::answer(&id, &method));
                }
            }
            Incoming::Notification { method, params } if method == CANCELLED => {
                let id = cancelled_request(params.as_ref()).and_then(|id| id.number());
                // A server may end a subscription this way; only the broker cancels its other requests.
                if let Some(id) = id
                    && self.table.kind(id) == Some(RequestKind::Subscription)
                {
                    self.settle(id, Reply::Cancelled { begun: true });
                }
            }
            Incoming::Notification { method, params } if method == PROGRESS => {
                if let Some(params) = params {
                    self.take_progress(&params);
                }
            }
            Incoming::Notification { method, params } if method == LOG_MESSAGE => {
                self.take_log_message(params.as_ref());
            }
            Incoming::Notification { method, .. } => {
                if self.lists.are_changed_by(&method) {
                    self.list_changes.send_modify(|changes| *changes += 1);
                }
            }
            Incoming::Invalid { id, problem } => {
                self.take_invalid(id.as_ref(), problem, line);
            }
        }
    }

    /// Passes on a line of stderr if the process certainly works on one call only.
    fn take_stderr(&mut self, line: TappedLine) {
        let call = self.table.only_call();
        let call = call.filter(|id| !self.outgoing.is_unsent(*id));
        let events = call.and_then(|id| self.table.events(id));
        let (Some(redactor), Some(call)) = (&self.stderr_masks, events) else {
            // It belongs to no call, so that no call misses it.
            self.dropped_stderr = 0;
            return;
        };
        let dropped = self.dropped_stderr + line.dropped;
        let is_passed = call.stderr(&line.line, dropped, redactor);
        self.dropped_stderr = if is_passed { 0 } else { dropped + 1 };
    }

    fn take_progress(&mut self, params: &Raw) {
        let Some(id) = events::progress_token(params) else {
            return;
        };
        if let Some(request) = self.table.events(id)
            && request.progress(params, &self.masks.now()) == Delivery::Dropped
        {
            self.counters.add_dropped_progress();
        }
    }

    /// Passes on a log message if it certainly belongs to one call. It names no request, so it does only if
    /// the server had no other call to work on since it got the call.
    fn take_log_message(&mut self, params: Option<&Raw>) {
        let call = self.table.only_call();
        let call = call.filter(|id| !self.outgoing.is_unsent(*id));
        let delivery = match (params, call) {
            (Some(params), Some(id)) => match self.table.events(id) {
                Some(call) => call.log(params, &self.masks.now()),
                // Its caller wants no events.
                None => Delivery::Ignored,
            },
            _ => Delivery::Dropped,
        };
        if delivery == Delivery::Dropped {
            self.counters.add_dropped_log_message();
        }
    }

    fn take_invalid(&mut self, id: Option<&Id>, problem: Problem, line: &Bytes) {
        match (problem, id.and_then(Id::number)) {
            (Problem::Unreadable(reason) | Problem::Malformed(reason), Some(id)) => {
                self.settle(id, Reply::Broken(reason));
            }
            (Problem::Malformed(_), None) => self.counters.add_unknown_id(),
            (Problem::OutOfMemory, _) => self.refuse_without_room(id),
            (Problem::Noise | Problem::Unreadable(_), _) => self.log_noise(line),
        }
    }

    /// Fails the request if its answer exceeds the memory budget.
    fn refuse_without_room(&mut self, id: Option<&Id>) {
        match id.and_then(Id::number) {
            Some(id) => self.settle(id, Reply::OutOfMemory),
            None => {
                tracing::warn!(source = %self.source, "a line without an id was discarded: `limits.memory_bytes` is used up");
            }
        }
    }

    fn log_noise(&mut self, line: &Bytes) {
        self.counters.add_noise_line();
        let shown = || {
            let head = String::from_utf8_lossy(&line[..line.len().min(4096)]);
            shown_line(&self.masks.now().redact(&head), 200)
        };
        self.counters.keep_noise(shown);
        if std::mem::replace(&mut self.noise_logged, true) {
            return;
        }
        tracing::warn!(source = %self.source, line = %shown(), "the server prints lines to stdout that are not messages; such lines are skipped and counted");
    }

    /// Completes a pending request.
    fn settle(&mut self, id: u64, reply: Reply) {
        let Some(waiting) = self.table.remove(id) else {
            if id < self.shared.next_id.load(Ordering::Relaxed) {
                self.table.answered_late(id);
                self.counters.add_late_answer();
            } else {
                self.counters.add_unknown_id();
            }
            return;
        };
        self.skips_prefix = false;
        self.release(waiting.kind);
        answer(waiting.reply, reply);
        self.advance_queue();
    }

    fn advance_queue(&mut self) {
        while let Some((id, line, waited)) = self.table.next_queued() {
            self.counters.add_waited(waited);
            self.outgoing.push_request(id, line);
        }
    }

    pub(super) fn release(&self, kind: RequestKind) {
        if kind == RequestKind::Call {
            self.shared.admitted.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Sends the reply, unless the request was cancelled at this moment.
pub(super) fn answer(waiter: tokio::sync::oneshot::Sender<Reply>, reply: Reply) {
    if waiter.send(reply).is_err() {
        tracing::trace!("the request of this answer was cancelled");
    }
}
