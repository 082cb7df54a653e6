//! The transport over standard input and output: one client, the program that started the broker. Reads
//! lines, passes them to the connection, and writes its answers in the order in which they are ready.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use broker_wire::write::Outgoing;
use broker_wire::{Frame, Framer, LineLimit, Peer};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

mod pipes;

use super::ClientContext;
use super::connection::Connection;
use crate::core::{Core, Identity};
use crate::surface::{Surface, SurfaceSettings};

/// Maximum time to write the last answers.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_millis(300);

/// The stdio surface.
#[derive(Debug)]
pub(crate) struct StdioSurface {
    shared: Arc<ClientContext>,
    line_bytes: LineLimit,
    ended: CancellationToken,
    idle: CancellationToken,
}

impl StdioSurface {
    /// A surface over `core`, which accepts lines of at most `limits.body_bytes`.
    pub(crate) fn new(core: Core, settings: SurfaceSettings) -> Self {
        let account = core.memory().whole_account();
        Self {
            shared: Arc::new(ClientContext::new(core, Identity::local(), account)),
            line_bytes: LineLimit::new(settings.body_bytes),
            ended: CancellationToken::new(),
            idle: CancellationToken::new(),
        }
    }

    /// Serves the client at the other ends of `input` and `output`, until the drain is finished.
    pub(crate) async fn serve_client(
        &self,
        input: impl io::Read + Send + 'static,
        output: impl io::Write + Send + 'static,
    ) -> io::Result<()> {
        let finished = self.shared.drain.finished();
        let limit = self.line_bytes.clone();
        let framer = Framer::new(Peer::Client, limit, self.shared.account.clone());
        let mut input = pipes::read(input, framer)?;
        let output = pipes::write(output)?;
        let mut connection = Connection::new(Arc::clone(&self.shared));
        loop {
            let ready = tokio::select! {
                // Answers first: a client that sends too much has to read first.
                biased;
                () = finished.cancelled() => break,
                ready = connection.in_flight.next(), if !connection.in_flight.is_empty() => {
                    ready.into_iter().collect()
                }
                frame = input.recv(), if !self.ended.is_cancelled() => match frame {
                    Some(frame) => self.take(&mut connection, frame),
                    None => {
                        self.ended.cancel();
                        connection.end_subscriptions();
                        Vec::new()
                    }
                },
            };
            for message in ready {
                tokio::select! {
                    sent = output.lines.send(message.into_line()) => if sent.is_err() {
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
                Some(message) => output.lines.send(message.into_line()).await.is_ok(),
                None => true,
            }
        })
        .await
        {}
        drop(output.lines);
        if timeout(LAST_ANSWERS_TIMEOUT, output.written).await.is_err() {
            tracing::debug!("the client did not read every reply");
        }
        Ok(())
    }

    /// Passes one line to the connection; returns the lines to send at once.
    fn take(&self, connection: &mut Connection, frame: Frame) -> Vec<Outgoing> {
        match frame {
            Frame::Line(line) => connection.take(&line),
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

impl Surface for StdioSurface {
    const NAME: &'static str = "standard input and output";
    const EXPLAINS_REFUSAL: bool = true;

    type Listener = ();

    fn apply(&self, settings: SurfaceSettings) {
        self.line_bytes.set(settings.body_bytes);
    }

    async fn serve(self: Arc<Self>, (): ()) -> io::Result<()> {
        self.serve_client(io::stdin(), io::stdout()).await
    }

    /// Ends when the input has ended, or the output is closed.
    fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    fn idle(&self) -> CancellationToken {
        self.idle.clone()
    }
}
