//! The exchange of messages on one stream, until the client, its right or the broker ends it.

use std::sync::Arc;

use broker_wire::write::Outgoing;
use tokio::sync::mpsc::{Receiver, Sender};

use super::table::SseLine;
use crate::Client;
use crate::connection::Connection;
use broker_core::{Account, Broker};
use broker_surface::StreamState;

/// The maximum number of open requests of a stream.
const MAX_IN_FLIGHT: usize = 32;

/// Handles the lines of a client, and sends what it gets to `output`. The open requests are cancelled at the end.
pub(super) async fn run(
    (client, state): (Arc<Client<impl Broker>>, Option<Arc<StreamState>>),
    (account, answer_bytes): (Account, usize),
    mut lines: Receiver<SseLine>,
    output: Sender<Outgoing>,
) {
    let broker = client.broker.clone();
    let (draining, finished) = (
        broker.services().drain().draining(),
        broker.services().drain().finished(),
    );
    let right_ended = broker.services().right_ended(&client.identity);
    let (connection, mut messages) = Connection::new(Arc::clone(&client), account, MAX_IN_FLIGHT);
    let mut connection = connection.taking_empty_initialize();
    connection.answer_bytes = answer_bytes;
    let exchange = async {
        let mut is_draining = false;
        loop {
            let ready: Vec<Outgoing> = tokio::select! {
                biased;
                () = draining.cancelled(), if !is_draining => {
                    is_draining = true;
                    connection.end_subscriptions();
                    Vec::new()
                }
                // The notifications of a request are sent before its answer.
                Some(message) = messages.recv() => vec![message],
                ready = connection.in_flight.next(), if !connection.in_flight.is_empty() => {
                    // The request may have sent one since the last look.
                    let before = std::iter::from_fn(|| messages.try_recv().ok());
                    before.chain(ready).collect()
                }
                line = lines.recv() => match line {
                    Some(SseLine { line, trace }) => {
                        connection.trace = trace;
                        connection.take(line)
                    }
                    None => return,
                },
            };
            for message in ready {
                // Waits while the client does not read.
                if output.send(message).await.is_err() {
                    return;
                }
            }
            if let Some(state) = &state {
                state.record(!connection.in_flight.is_empty());
            }
            if is_draining && connection.in_flight.is_empty() {
                return;
            }
        }
    };
    tokio::select! {
        () = exchange => {}
        () = output.closed() => {}
        () = finished.cancelled() => {}
        () = right_ended => {}
    }
}
