//! The two ways to wait for a reply: a request is cancelled when its future is dropped, a subscription is not.

use std::pin::pin;
use std::time::Duration;

use broker_memory::Account;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::table::{RawResult, Reply};
use super::{Command, Connection, RequestError};
use crate::cancel_reason;
use crate::events::LastProgress;
use crate::overload::AbandonedCall;
use crate::right::CallRight;
use crate::server_call::CallTime;

/// Maximum time for the task to report whether a cancelled request had begun. The task never blocks, so
/// this passes only if the machine stalls.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(250);

/// An open subscription.
#[derive(Debug)]
pub(crate) struct Subscription(oneshot::Receiver<Reply>);

impl Subscription {
    #[inline]
    pub(crate) fn new(reply: oneshot::Receiver<Reply>) -> Self {
        Self(reply)
    }

    /// Returns when the server ended it or the connection ended.
    pub(crate) async fn ended(self) {
        if self.0.await.is_err() {
            tracing::trace!("the connection task has ended");
        }
    }
}

/// A pending request. Cancels it when dropped before the reply.
pub(super) struct Waiter<'a> {
    connection: &'a Connection,
    id: u64,
    reply: oneshot::Receiver<Reply>,
    settled: bool,
    /// The account of the caller, and when the call would time out.
    account: Option<&'a Account>,
    timeout: Option<Instant>,
}

impl<'a> Waiter<'a> {
    #[inline]
    pub(super) fn new(
        connection: &'a Connection,
        id: u64,
        reply: oneshot::Receiver<Reply>,
    ) -> Self {
        Self {
            connection,
            id,
            reply,
            settled: false,
            account: None,
            timeout: None,
        }
    }

    /// Marks the request as a call of the caller with this account.
    #[inline]
    pub(super) fn with_caller(mut self, account: Option<&'a Account>) -> Self {
        self.account = account;
        self
    }

    /// Waits for `time`, or without a timeout, then cancels the request. `progressed` gives the time of the last
    /// progress; progress extends the wait.
    #[inline]
    pub(super) async fn wait(
        mut self,
        time: Option<CallTime>,
        progressed: Option<LastProgress>,
        right: Option<&CallRight<'_>>,
    ) -> Result<RawResult, RequestError> {
        let (connection, id) = (self.connection, self.id);
        if self.account.is_some() {
            self.timeout = time.map(|time| Instant::now() + time.first());
        }
        let reply = &mut self.reply;
        let (reply, extended) = {
            let mut waiting = pin!(async move {
                match (time, progressed) {
                    (None, _) => (Some(reply.await), None),
                    (Some(time), None) => (timeout(time.first(), reply).await.ok(), None),
                    // In a box, so that a call without events does not reserve its room.
                    (Some(time), Some(progressed)) => {
                        Box::pin(wait_extended(reply, time, Some(progressed))).await
                    }
                }
            });
            match right {
                None => waiting.await,
                Some(right) => {
                    tokio::select! {
                        biased;
                        waited = &mut waiting => waited,
                        () = right.ended() => {
                            connection.command(Command::CancelUnsent(id));
                            waiting.await
                        }
                    }
                }
            }
        };
        match reply {
            Some(reply) => {
                self.settled = true;
                self.connection.read(reply)
            }
            None => self.give_up(extended).await,
        }
    }

    /// Cancels the request; a reply that arrives before the cancellation still counts.
    async fn give_up(mut self, extended: Option<Duration>) -> Result<RawResult, RequestError> {
        self.cancel(None);
        self.settled = true;
        let begun = match timeout(CANCEL_TIMEOUT, &mut self.reply).await {
            Ok(reply) => match self.connection.read(reply) {
                Err(RequestError::Timeout { begun, .. }) => begun,
                settled => return settled,
            },
            Err(_) => true,
        };
        Err(RequestError::Timeout { begun, extended })
    }

    fn cancel(&self, reason: Option<Box<str>>) {
        self.connection.command(Command::Cancel(self.id, reason));
    }
}

/// Waits for an answer. Progress extends the time; also returns the time in all if it did.
pub(crate) async fn wait_extended<F: Future + Unpin>(
    answer: &mut F,
    time: CallTime,
    progressed: Option<LastProgress>,
) -> (Option<F::Output>, Option<Duration>) {
    let began = Instant::now();
    let mut until = began + time.first();
    let mut extended = None;
    loop {
        if let Ok(answer) = timeout_at(until, &mut *answer).await {
            return (Some(answer), extended);
        }
        let grown = progressed.as_ref().and_then(LastProgress::time);
        let next = grown.map(|at| (at + time.after_progress()).min(began + time.total()));
        let Some(next) = next.filter(|next| *next > until) else {
            return (None, extended);
        };
        until = next;
        extended = Some(until - began);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        // The caller left.
        let reason = cancel_reason::take();
        match self.account.zip(self.timeout) {
            Some((account, timeout)) => {
                let call = AbandonedCall::new(account.clone(), timeout);
                let command = Command::Abandon(self.id, call, reason);
                self.connection.command(command);
            }
            None => self.cancel(reason),
        }
    }
}
