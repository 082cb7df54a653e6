//! The signals that the broker answers to: SIGTERM and Ctrl-C stop it, SIGHUP reloads its config.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;

/// Listens from its making on; nothing is lost between two waits.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// Listens for orders to reload, in the same way.
#[derive(Debug)]
pub(super) struct Hangups(Signal);

impl Signals {
    /// Takes the signals over from the system's defaults.
    pub(super) fn listen() -> Result<(Self, Hangups), Failure> {
        let take = |kind| {
            signal(kind)
                .map_err(|error| Failure::Internal(format!("cannot listen for signals: {error}")))
        };
        let stops = Self {
            terminate: take(SignalKind::terminate())?,
            interrupt: take(SignalKind::interrupt())?,
        };
        Ok((stops, Hangups(take(SignalKind::hangup())?)))
    }

    /// Waits for the next order to stop.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Hangups {
    /// Waits for the next order to reload; those that came in the meantime are one.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await
        }
    }
}
