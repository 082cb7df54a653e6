//! The end of a connection: reads the rest of the pipe, finds the reason, and fails the pending
//! requests with it.

use std::future::poll_fn;
use std::time::Duration;

use broker_model::SourceCause;
use broker_wire::Frame;
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::Command;
use super::table::Reply;
use super::task::{ConnectionTask, End, answer};
use crate::failure::SourceFailure;

/// Maximum time that the pipes of an ended process are read.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_millis(30);
/// Maximum time for a process that closed a pipe to end before it counts as still running.
const PROCESS_END_TIMEOUT: Duration = Duration::from_millis(250);

/// Whether a line without a line end counts: if it is a complete message, or text that is not JSON,
/// such as a prompt. A partial answer does not count: its call fails with the end of the connection.
fn counts(line: &[u8]) -> bool {
    !line.starts_with(b"{")
        || serde_json::from_str::<IgnoredAny>(&String::from_utf8_lossy(line)).is_ok()
}

impl ConnectionTask {
    /// Runs until the connection has ended and all pending requests have failed.
    pub(super) async fn run(mut self) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        if matches!(end, End::Exited | End::Stdin) {
            // The last answers may still be in the pipe, and a grandchild may keep it open.
            let rest = poll_fn(|cx| self.poll_rest(cx));
            if timeout(PIPE_DRAIN_TIMEOUT, rest).await.is_err() {
                tracing::trace!(source = %self.source, "stdout stays open");
            }
        }
        self.take_all().await;
        if let Some(Frame::Line(line)) = self.framer.finish()
            && counts(&line)
        {
            self.take_line(line);
            self.take_all().await;
        }
        let failure = self.source_failure(&end).await;
        // A caller that finds the channel closed reads the reason here, so the reason is stored first.
        self.end.send_replace(Some(failure));
        self.commands.close();
        // Closing stdin asks the server to end.
        self.stdin = None;
        self.fail_pending();
    }

    /// Returns the failure of all pending requests.
    async fn source_failure(&mut self, end: &End) -> SourceFailure {
        let time = match end {
            End::Stdout | End::Stdin => PROCESS_END_TIMEOUT,
            End::Closed(Some(reason)) => return reason.clone(),
            End::Closed(None) | End::Exited | End::Endless | End::Stalled => Duration::ZERO,
        };
        let ended = self.exit.wait_for(Option::is_some);
        if timeout(time, ended).await.is_err() {
            tracing::trace!(source = %self.source, "the process has not ended");
        }
        let exit = *self.exit.borrow();
        if exit.is_some() {
            let read = self.stderr_ended.wait_for(|ended| *ended);
            if timeout(PIPE_DRAIN_TIMEOUT, read).await.is_err() {
                tracing::trace!(source = %self.source, "stderr stays open");
            }
        }
        let (cause, message) = match (end, exit) {
            (End::Closed(_), _) => (
                SourceCause::Stopped,
                "the source is being stopped".to_owned(),
            ),
            (End::Endless, _) => (
                SourceCause::Protocol,
                "the server sent a line that is too long and has no end".to_owned(),
            ),
            (End::Stalled, _) => (
                SourceCause::StdinStalled,
                "the server does not read its stdin: more than 32 MiB of replies to its requests are queued".to_owned(),
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
            exit,
            stderr: self.tail.for_failure(),
            ..SourceFailure::new(cause, message)
        }
    }

    /// Fails all pending requests.
    fn fail_pending(&mut self) {
        let (waiting, queue) = self.table.clear();
        for (id, waiting) in waiting {
            let begun = !self.outgoing.withdraw(id) && self.refused != Some(id);
            self.release(waiting.kind);
            answer(waiting.reply, Reply::Gone { begun });
        }
        let mut unsent = queue;
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
