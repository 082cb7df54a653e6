//! The signals that the broker answers to. Ctrl-C is SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;

/// Listens from its making on; nothing is lost between two waits.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes the signals over from the system's defaults.
    pub(super) fn listen() -> Result<Self, Failure> {
        let take = |kind| {
            signal(kind)
                .map_err(|error| Failure::Internal(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            terminate: take(SignalKind::terminate())?,
            interrupt: take(SignalKind::interrupt())?,
            hangup: take(SignalKind::hangup())?,
        })
    }

    /// Waits for the next order to stop.
    pub(super) async fn stop(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    tracing::warn!("SIGHUP: reloading is not supported yet; nothing changed");
                }
            }
        }
    }
}
