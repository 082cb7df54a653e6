//! The transport over standard input and output: one client, the program that started the broker. Reads lines, passes
//! them to the connection, and writes its answers as soon as they are ready.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use broker_core::{Account, Broker, Identity};
use broker_observe::ListChangedExec;
use broker_surface::{RequestIds, Surface};
use broker_wire::write::Outgoing;
use broker_wire::{Frame, Framer, LineLimit, Peer};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

mod input;
mod output;

use super::answer_limit::{AnswerLimit, Way};
use super::connection::Connection;
use super::{Client, ClientView};
use output::{Output, WriteAtOnce};

/// The maximum number of open requests of the client; more are refused.
const MAX_IN_FLIGHT: usize = 256;
/// Maximum time to write the last answers.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_millis(300);

/// The settings of the surface. A reload replaces the maxima of lines alone: the connection keeps the rest.
#[derive(Clone, Debug)]
pub struct StdioSettings {
    pub view: ClientView,
    /// The command that runs after the list of the client has changed.
    pub list_changed_exec: Option<Arc<ListChangedExec>>,
    /// The maximum bytes of a line of the client.
    pub line_bytes: usize,
    /// The maximum bytes of a line to the client.
    pub answer_bytes: usize,
}

/// The stdio surface.
#[derive(Debug)]
pub struct StdioSurface<B> {
    client: Arc<Client<B>>,
    account: Account,
    line_bytes: LineLimit,
    answer_bytes: LineLimit,
    ended: CancellationToken,
    idle: CancellationToken,
}

impl<B: Broker> StdioSurface<B> {
    /// Returns a surface over `core` for a client with this identity. It accepts lines of at most `line_bytes`.
    pub fn new(broker: B, identity: Identity, settings: StdioSettings) -> Self {
        let account = broker.services().memory().whole_account();
        let ids = Arc::new(RequestIds::random());
        let exec = settings.list_changed_exec.as_ref();
        let client = Client::new(broker, identity, settings.view, ids)
            // The connection is the session, and no client names it.
            .with_session_tools(exec, || "stdio".to_owned())
            .with_task_feed();
        Self {
            client: Arc::new(client),
            account,
            line_bytes: LineLimit::new(settings.line_bytes),
            answer_bytes: LineLimit::new(settings.answer_bytes),
            ended: CancellationToken::new(),
            idle: CancellationToken::new(),
        }
    }

    /// Serves the client at the other ends of `input` and `output`, until the drain is finished. `at_once` writes
    /// to `output` without a wait.
    pub async fn serve_client(
        &self,
        input: impl io::Read + Send + 'static,
        output: impl io::Write + Send + 'static,
        at_once: Option<WriteAtOnce>,
    ) -> io::Result<()> {
        let finished = self.client.broker.services().drain().finished();
        let limit = self.line_bytes.clone();
        let framer = Framer::new(Peer::Client, limit, self.account.clone());
        let mut input = input::read(input, framer)?;
        let mut output = Output::start(output, at_once)?;
        let (mut connection, mut messages) = Connection::new(
            Arc::clone(&self.client),
            self.account.clone(),
            MAX_IN_FLIGHT,
        );
        loop {
            let ready = tokio::select! {
                // Answers first: a client that sends too much has to read first.
                biased;
                () = finished.cancelled() => break,
                // The notifications of a request are sent before its answer.
                Some(message) = messages.recv() => vec![message],
                ready = connection.in_flight.next(), if !connection.in_flight.is_empty() => {
                    // The request may have sent one since the last look.
                    let before = std::iter::from_fn(|| messages.try_recv().ok());
                    before.chain(ready).collect()
                }
                frame = input.recv(), if !self.ended.is_cancelled() => match frame {
                    Some(frame) => {
                        connection.answer_bytes = self.answer_bytes.get();
                        self.take(&mut connection, frame)
                    }
                    None => {
                        self.ended.cancel();
                        connection.end_subscriptions();
                        Vec::new()
                    }
                },
            };
            for message in ready {
                let Some(message) = self.fit(message) else {
                    continue;
                };
                tokio::select! {
                    sent = output.send(message.into_line()) => if sent.is_err() {
                        self.ended.cancel();
                    },
                    // A client that does not read must not delay the end.
                    () = finished.cancelled() => {}
                }
            }
            if self.ended.is_cancelled() && connection.in_flight.is_empty() {
                self.idle.cancel();
            }
        }
        while let Ok(true) = timeout(LAST_ANSWERS_TIMEOUT, async {
            if connection.in_flight.is_empty() {
                return false;
            }
            match connection.in_flight.next().await {
                Some(message) => match self.fit(message) {
                    Some(message) => output.send(message.into_line()).await.is_ok(),
                    None => true,
                },
                None => true,
            }
        })
        .await
        {}
        let finish = output.finish();
        if timeout(LAST_ANSWERS_TIMEOUT, finish).await.is_err() {
            tracing::debug!("the client did not read every reply");
        }
        Ok(())
    }

    /// Returns a message that the client reads.
    fn fit(&self, message: Outgoing) -> Option<Outgoing> {
        let limit = AnswerLimit {
            way: Way::Line,
            // With the end of the line.
            bytes: self.answer_bytes.get() - 1,
        };
        limit.fit(message, || self.client.ids.next())
    }

    /// Passes one line to the connection; returns the lines to send at once.
    fn take(&self, connection: &mut Connection<B>, frame: Frame) -> Vec<Outgoing> {
        match frame {
            Frame::Line(line) => connection.take_text(&line),
            Frame::OutOfMemory {
                id,
                charge_error,
                needed,
            } => connection.memory_error_for_line(id.as_ref(), charge_error, needed),
            // Lines of a client are skipped at any length.
            Frame::Oversize { .. } | Frame::Endless => {
                connection.line_too_long(self.line_bytes.get())
            }
        }
    }
}

impl<B: Broker> Surface for StdioSurface<B> {
    const NAME: &'static str = "standard input and output";
    const EXPLAINS_REFUSAL: bool = true;

    type Listener = ();
    type Settings = StdioSettings;

    fn apply(&self, settings: StdioSettings) {
        self.line_bytes.set(settings.line_bytes);
        self.answer_bytes.set(settings.answer_bytes);
    }

    async fn serve(self: Arc<Self>, (): ()) -> io::Result<()> {
        let (output, at_once) = output::standard_output();
        self.serve_client(io::stdin(), output, at_once).await
    }

    /// Ends when the input has ended, or the output is closed.
    fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    fn idle(&self) -> CancellationToken {
        self.idle.clone()
    }
}
