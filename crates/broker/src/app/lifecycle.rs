//! One broker from its first child to its end: the gate of a plain start, serving, draining, going.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use broker_model::exit::Exit;
use broker_model::text;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::core::{Core, RefuseExit, StartOutcome};
use crate::logging::Output;
use crate::surface::http::Surface;
use broker_process::guard::Signals;

/// How long calls that are under way may take once the broker was told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// The most that passes from the order to stop to the end, threads apart: 12 s with those. What the
/// drain leaves of it is for the sources, whose graces shrink with it, and for the last replies.
const WHOLE: Duration = Duration::from_millis(11_500);
/// How long replies may take to leave once every call has ended; the least is kept free for them.
const LAST_REPLIES: Duration = Duration::from_secs(1);
const LAST_REPLIES_LEAST: Duration = Duration::from_millis(300);
/// What ending a process takes beyond its graces.
const SLACK: Duration = Duration::from_millis(200);
/// How long killing everything may take once the broker was interrupted twice.
const AT_ONCE: Duration = Duration::from_millis(500);

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

    /// Serves, and reloads, until a signal, a refused start, or the listener's end.
    pub(super) async fn until_end(
        mut self,
        mut signals: Signals,
        reloads: impl Future<Output = Infallible>,
        output: &Output,
    ) -> Exit {
        let exit = tokio::select! {
            never = reloads => match never {},
            exit = refusal(&self.core, output) => exit,
            () = signals.stop() => {
                tracing::info!("stopping");
                Exit::Ok
            }
            _ = &mut self.server => {
                tracing::error!("the listener ended by itself");
                Exit::Failure
            }
        };
        let core = self.core.clone();
        tokio::select! {
            () = self.end() => exit,
            () = signals.stop() => {
                tracing::warn!("interrupted twice: stopping at once");
                if timeout(AT_ONCE, core.close_within(Duration::ZERO)).await.is_err() {
                    tracing::warn!("sources were still stopping");
                }
                Exit::Interrupted
            }
        }
    }

    /// Refuses what is new, lets run what runs, fails the rest, stops the sources, and at last the
    /// listener, so that everybody hears why.
    async fn end(self) {
        let asked = Instant::now();
        self.surface.begin_shutdown();
        self.core.begin_shutdown();
        if timeout(DRAIN, self.core.drained()).await.is_err() {
            tracing::warn!("calls were still running after {} s", DRAIN.as_secs());
        }
        let time = time_to_close(asked.elapsed());
        let close = self.core.close_within(time.saturating_sub(SLACK));
        if timeout(time, close).await.is_err() {
            tracing::warn!("sources were still stopping after {time:.1?}");
        }
        self.stop.cancel();
        let time = WHOLE.saturating_sub(asked.elapsed()).min(LAST_REPLIES);
        if !self.server.is_finished() && timeout(time, self.server).await.is_err() {
            tracing::debug!("connections were still open");
        }
    }
}

/// What is left for stopping the sources, so long after the order to stop.
fn time_to_close(elapsed: Duration) -> Duration {
    WHOLE.saturating_sub(LAST_REPLIES_LEAST + elapsed)
}

/// Waits for the first verdict; ends only where it refuses the start.
pub(super) async fn refusal(core: &Core, output: &Output) -> Exit {
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
        RefuseExit::Unchecked => (
            Exit::Unchecked,
            "a source could not be compared with the lock",
        ),
    };
    let human = text!(
        "{}\nrefused to start: {}; `--ignore-broken-tool` serves what still matches",
        report.text(),
        why
    );
    output.report(&human, &report.to_json());
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_45_a_drain_that_ran_out_leaves_the_sources_a_second_and_all_is_over_in_twelve() {
        let after_drain = time_to_close(DRAIN);
        assert!(after_drain.saturating_sub(SLACK) >= Duration::from_secs(1));
        let end = DRAIN + after_drain + LAST_REPLIES_LEAST + super::super::LAST_BREATH;
        assert!(end <= Duration::from_secs(12), "{end:?}");
        assert_eq!(time_to_close(WHOLE), Duration::ZERO);
        // With nothing to wait for, every grace of a source fits in.
        assert!(time_to_close(Duration::ZERO) > Duration::from_secs(8));
    }
}
