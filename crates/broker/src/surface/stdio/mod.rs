//! MCP over standard input and output, in both eras: the three meta-tools as an MCP server. Decides
//! nothing about tools: it reads lines, asks core, and writes lines, in whatever order they get ready.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

mod call;
mod connection;
mod era;
mod head;
mod in_flight;
mod lines;
mod members;
mod message;
mod pipes;
mod reply;
mod result;
mod tools;

use super::http::RequestIds;
use crate::core::{Account, Core};
use connection::Connection;
use lines::Lines;
use tools::Texts;

/// How long answers that are ready may take to leave, once everything else is over.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// The stdio surface: one client: the program that started the broker.
#[derive(Debug)]
pub(crate) struct Surface {
    shared: Arc<Shared>,
    ended: CancellationToken,
    idle: CancellationToken,
}

/// What every request needs.
#[derive(Debug)]
struct Shared {
    core: Core,
    /// The one client's share of the memory: all of it.
    account: Account,
    texts: Texts,
    ids: RequestIds,
    line_bytes: Arc<AtomicUsize>,
    closing: CancellationToken,
}

impl Surface {
    /// A surface over `core` that takes lines of at most `line_bytes`.
    pub(crate) fn new(core: Core, line_bytes: usize) -> Self {
        let shared = Shared {
            texts: Texts::new(&core),
            account: core.memory().whole_account(),
            core,
            ids: RequestIds::new(),
            line_bytes: Arc::new(AtomicUsize::new(line_bytes)),
            closing: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
            ended: CancellationToken::new(),
            idle: CancellationToken::new(),
        }
    }

    /// From here on lines are of at most so many bytes.
    pub(crate) fn set_line_bytes(&self, line_bytes: usize) {
        self.shared.line_bytes.store(line_bytes, Ordering::Relaxed);
    }

    /// Cancelled once the client is gone: the input ended, or nobody reads the output.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Cancelled once the client is gone and everything that it asked for is answered.
    pub(crate) fn idle(&self) -> CancellationToken {
        self.idle.clone()
    }

    /// From here on nothing waits for sources any more, and subscriptions end.
    pub(crate) fn begin_shutdown(&self) {
        self.shared.closing.cancel();
    }

    /// Serves until `stop`, then until every answer that is ready is written.
    pub(crate) async fn serve(self: Arc<Self>, stop: CancellationToken) -> io::Result<()> {
        let lines = Lines::new(self.shared.line_bytes.clone(), self.shared.account.clone());
        let mut input = pipes::read(io::stdin(), lines)?;
        let output = pipes::write(io::stdout())?;
        let mut connection = Connection::new(Arc::clone(&self.shared));
        loop {
            let ready = tokio::select! {
                // Answers first: a client that floods us is held back by what it has to read.
                biased;
                () = stop.cancelled() => break,
                ready = connection.in_flight.next(), if !connection.in_flight.is_empty() => {
                    ready.into_iter().collect()
                }
                line = input.recv(), if !self.ended.is_cancelled() => match line {
                    Some(line) => connection.take(line),
                    None => {
                        self.ended.cancel();
                        connection.end_subscriptions();
                        Vec::new()
                    }
                },
            };
            for text in ready {
                tokio::select! {
                    sent = output.lines.send(reply::line(text)) => if sent.is_err() {
                        self.ended.cancel();
                    },
                    // A client that reads nothing must not hold up the end.
                    () = stop.cancelled() => {}
                }
            }
            if self.ended.is_cancelled() && connection.in_flight.is_empty() {
                self.idle.cancel();
            }
        }
        while let Ok(true) = timeout(LAST_ANSWERS, async {
            if connection.in_flight.is_empty() {
                return false;
            }
            match connection.in_flight.next().await {
                Some(text) => output.lines.send(reply::line(text)).await.is_ok(),
                None => true,
            }
        })
        .await
        {}
        drop(output.lines);
        if timeout(LAST_ANSWERS, output.written).await.is_err() {
            tracing::debug!("answers were left unread");
        }
        Ok(())
    }
}
