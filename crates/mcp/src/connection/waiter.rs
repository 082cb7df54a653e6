//! Those who wait for an answer: a request, which is given up when nobody waits for it any more, and a
//! subscription, which is not.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::table::{RawResult, Reply};
use super::{Command, Connection, RequestError};

/// How long the owner has to say whether a request that is given up had begun. It never waits for
/// anything, so this passes only on a machine that stands still.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(250);

/// An open subscription.
#[derive(Debug)]
pub(crate) struct Subscription(oneshot::Receiver<Reply>);

impl Subscription {
    pub(super) fn new(reply: oneshot::Receiver<Reply>) -> Self {
        Self(reply)
    }

    /// Returns when the server ended it, or the connection did.
    pub(crate) async fn ended(self) {
        if self.0.await.is_err() {
            tracing::trace!("the connection task has ended");
        }
    }
}

/// Somebody who waits. Gives the request up when it is dropped before the reply came.
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

    /// Waits so long, or without a deadline, then gives the request up.
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

    /// Gives the request up; a reply that crossed the wish still counts.
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
