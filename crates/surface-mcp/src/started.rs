//! The wait of a call for the outcome of the start.

use std::time::Duration;

use broker_core::Broker;
use tokio::time::timeout;

use super::Client;

/// Maximum time that a call waits for the sources to be compared with the lock: a client calls right
/// after its start, and a wait is better than an error. Shorter than the timeouts of clients.
const START_TIMEOUT: Duration = Duration::from_secs(50);

/// Waits for the outcome of the start, at most `START_TIMEOUT`.
pub(super) async fn started(client: &Client<impl Broker>) {
    let verdict = timeout(START_TIMEOUT, client.broker.services().first_verdict());
    let draining = client.broker.services().drain().draining();
    tokio::select! {
        // The next answer shows the outcome.
        _ = verdict => {}
        () = draining.cancelled() => {}
    }
}
