//! The two ways to wait for a reply: a request, which is cancelled when its future is dropped, and a
//! subscription, which is not.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::table::{RawResult, Reply};
use super::{Command, Connection, RequestError};

/// Maximum time for the task to report whether a cancelled request had begun. The task never blocks, so
/// this passes only if the machine stalls.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(250);

/// An open subscription.
#[derive(Debug)]
pub(crate) struct Subscription(oneshot::Receiver<Reply>);

impl Subscription {
    pub(super) fn new(reply: oneshot::Receiver<Reply>) -> Self {
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
}

impl<'a> Waiter<'a> {
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
        }
    }

    /// Waits for `time`, or without a timeout, then cancels the request.
    pub(super) async fn wait(mut self, time: Option<Duration>) -> Result<RawResult, RequestError> {
        let reply = match time {
            Some(time) => timeout(time, &mut self.reply).await.ok(),
            None => Some((&mut self.reply).await),
        };
        match reply {
            Some(reply) => {
                self.settled = true;
                self.connection.read(reply)
            }
            None => self.give_up().await,
        }
    }

    /// Cancels the request; a reply that arrives before the cancellation still counts.
    async fn give_up(mut self) -> Result<RawResult, RequestError> {
        self.cancel();
        self.settled = true;
        match timeout(CANCEL_TIMEOUT, &mut self.reply).await {
            Ok(reply) => self.connection.read(reply),
            Err(_) => Err(RequestError::Timeout { begun: true }),
        }
    }

    fn cancel(&self) {
        if self
            .connection
            .commands
            .try_send(Command::Cancel(self.id))
            .is_err()
        {
            tracing::trace!("the connection has already ended");
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.cancel();
        }
    }
}
