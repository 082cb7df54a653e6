//! One broker from its first child to its end: the gate of a plain start, serving, draining, going.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::signals::Signals;
use crate::core::{Core, RefuseExit, StartOutcome};
use crate::exit::Exit;
use crate::logging::Output;
use crate::surface::http::Surface;

/// How long calls that are under way may take once the broker was told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long stopping the sources may take; each source has its own, shorter bounds.
const CLOSE: Duration = Duration::from_secs(15);
/// How long replies may take to leave once every call has ended.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// A broker that listens and whose sources are starting.
pub(super) struct Running {
    core: Core,
    surface: Arc<Surface>,
    server: JoinHandle<()>,
    stop: CancellationToken,
}

impl Running {
    /// Answers at once, from the catalog, and starts the sources.
    pub(super) fn start(core: Core, surface: Arc<Surface>, listener: TcpListener) -> Self {
        let stop = CancellationToken::new();
        let server = tokio::spawn(Arc::clone(&surface).serve(listener, stop.clone()));
        core.start();
        Self {
            core,
            surface,
            server,
            stop,
        }
    }

    /// Serves until a signal, a refused start, or the listener's end.
    pub(super) async fn until_end(mut self, mut signals: Signals, output: &Output) -> Exit {
        let exit = tokio::select! {
            exit = refusal(&self.core, output) => exit,
            () = signals.stop() => {
                tracing::info!("stopping");
                Exit::Fine
            }
            _ = &mut self.server => {
                tracing::error!("the listener ended by itself");
                Exit::Failure
            }
        };
        tokio::select! {
            () = self.end() => exit,
            () = signals.stop() => {
                tracing::warn!("interrupted twice: stopping at once");
                Exit::Interrupted
            }
        }
    }

    /// Refuses what is new, lets run what runs, fails the rest, stops the sources, and at last the
    /// listener, so that everybody hears why.
    async fn end(self) {
        self.surface.begin_shutdown();
        self.core.begin_shutdown();
        if timeout(DRAIN, self.core.drained()).await.is_err() {
            tracing::warn!("calls were still running after {} s", DRAIN.as_secs());
        }
        if timeout(CLOSE, self.core.close()).await.is_err() {
            tracing::warn!("sources were still stopping after {} s", CLOSE.as_secs());
        }
        self.stop.cancel();
        if !self.server.is_finished() && timeout(LAST_REPLIES, self.server).await.is_err() {
            tracing::debug!("connections were still open");
        }
    }
}

/// Waits for the first verdict; ends only where it refuses the start.
async fn refusal(core: &Core, output: &Output) -> Exit {
    let StartOutcome { report, refuse } = core.first_verdict().await;
    let Some(reason) = refuse else {
        tracing::info!("ready");
        return std::future::pending().await;
    };
    let (exit, why) = match reason {
        RefuseExit::Drift => (
            Exit::Drift,
            "what the sources offer is not what was reviewed",
        ),
        RefuseExit::Unchecked => (Exit::Source, "a source could not be held against the lock"),
    };
    let human = format!(
        "{report}\nrefused to start: {why}; `--ignore-broken-tool` serves what still matches"
    );
    output.report(&human, &report.to_json());
    exit
}
