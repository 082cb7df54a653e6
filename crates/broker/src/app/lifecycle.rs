//! The lifecycle of a broker: start, service, and the phases of the shutdown, the same for every
//! surface.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broker_model::exit::Exit;
use broker_model::text;
use broker_model::text::counted;
use broker_process::guard::{EndTimeout, Signals};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use super::failure::Failure;
use crate::core::{Broker, Core, RefusalCause, ServedCounts, StartOutcome};
use crate::logging::LogOutput;
use broker_surface::Surface;

/// The minimum of the time from the stop signal to the end, without threads: 12 s with them. The time that the
/// drain leaves is for the sources, whose graces are shortened to fit, and for the last replies.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(11_500);
/// The time behind a drain that used all of its time.
const AFTER_DRAIN_TIMEOUT: Duration = Duration::from_millis(1500);
/// The interval in which a drain that goes on prolongs the time of the shutdown.
const POSTPONE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time for calls to fail once their sources have stopped.
const CUT_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time to send replies once every call has ended, and the minimum that is reserved for
/// them.
const LAST_REPLIES_TIMEOUT: Duration = Duration::from_secs(1);
const MIN_LAST_REPLIES_TIMEOUT: Duration = Duration::from_millis(300);
/// The time that ending a process takes in addition to its graces.
const PROCESS_END_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time to kill all processes after the second interrupt.
const FORCED_STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// A broker that serves and whose sources are starting.
pub(super) struct Running<S> {
    core: Core,
    surface: Arc<S>,
    server: JoinHandle<io::Result<()>>,
    /// The time of calls in flight at the end of the broker. `None` means the time of the config in force.
    drain_timeout: Option<Duration>,
    /// The exit of a start that had failed before; its client gets the reason.
    failed: Option<Exit>,
}

impl<S: Surface> Running<S> {
    /// Starts the sources; listings are served from the catalog at once.
    pub(super) fn start(
        core: Core,
        surface: Arc<S>,
        listener: S::Listener,
        drain_timeout: Option<Duration>,
    ) -> Self {
        let server = tokio::spawn(Arc::clone(&surface).serve(listener));
        core.start();
        Self {
            core,
            surface,
            server,
            drain_timeout,
            failed: None,
        }
    }

    /// Answers the client of a start that had failed before, until it leaves or a signal arrives.
    pub(super) async fn until_refused_client_leaves(
        mut self,
        signals: Signals,
        exit: Exit,
        output: &LogOutput,
    ) -> Result<Exit, Failure> {
        self.failed = Some(exit);
        let no_reloads = std::future::pending();
        self.until_end(signals, no_reloads, None, output).await
    }

    /// Serves, and reloads, until a signal, a refused start, or the end of the surface. A surface that explains a
    /// refused start goes on until its client leaves; then the exit code is the code of the refusal. `served_config` is
    /// the config of `broker-gen serve`, for the remedies of a refused start.
    pub(super) async fn until_end(
        mut self,
        mut signals: Signals,
        reloads: impl Future<Output = Infallible>,
        served_config: Option<&Path>,
        output: &LogOutput,
    ) -> Result<Exit, Failure> {
        let ended = self.surface.ended();
        let refused = Cell::new(self.failed);
        let outcome = tokio::select! {
            // In this order, since a client that got a refusal may leave before this task runs again: the exit code is
            // the code of the refusal even if both are noticed at the same time.
            biased;
            never = reloads => match never {},
            exit = refusal::<S>(&self.core, served_config, output, &refused) => Ok(exit),
            () = signals.stop() => {
                tracing::info!("stopping");
                Ok(Exit::Ok)
            }
            () = ended.cancelled() => {
                tracing::info!("the input ended: stopping");
                Ok(Exit::Ok)
            }
            served = &mut self.server => Err(not_served::<S>(served)),
        };
        let outcome = outcome.map(|exit| refused.get().unwrap_or(exit));
        let asked = Instant::now();
        let client_left = ended.is_cancelled();
        if client_left && !self.server.is_finished() {
            self.answer_pending_requests(signals.end_timeout()).await;
        }
        let core = self.core.clone();
        tokio::select! {
            () = self.end(asked, client_left, signals.end_timeout()) => outcome,
            () = signals.stop() => {
                tracing::warn!("interrupted twice: stopping at once");
                if timeout(FORCED_STOP_TIMEOUT, core.close_within(Duration::ZERO)).await.is_err() {
                    tracing::warn!("sources were still stopping");
                }
                Ok(Exit::Interrupted)
            }
        }
    }

    /// Waits for the answers to a client that has closed its input. The drain begins after that, since
    /// it would refuse requests that wait for a source; no new ones can arrive.
    async fn answer_pending_requests(&self, end: EndTimeout) {
        let idle = self.surface.idle();
        let _postponed = postponed(end);
        // The calls that are left are named when they have failed.
        let _: Result<(), Elapsed> = timeout(self.drain_timeout(), idle.cancelled()).await;
    }

    /// Returns the time of calls in flight at the end of the broker: the time of the command line, or without it the time of
    /// the config in force.
    fn drain_timeout(&self) -> Duration {
        let configured = || self.core.services().drain().time();
        self.drain_timeout.unwrap_or_else(configured)
    }

    /// The phases of the shutdown: first new calls are refused and calls in flight continue; then the
    /// remaining calls fail and the sources stop; last the surface sends the replies and ends, so that
    /// callers get the reason. If the client has closed its input, its calls have already had their
    /// time.
    async fn end(self, asked: Instant, client_left: bool, end: EndTimeout) {
        let drain_timeout = self.drain_timeout();
        if client_left {
            self.core.services().drain().begin_draining();
        } else {
            let _postponed = postponed(end);
            drain(&self.core, drain_timeout).await;
        }
        let time = time_to_close(drain_timeout, asked.elapsed());
        let close = self
            .core
            .close_within(time.saturating_sub(PROCESS_END_TIMEOUT));
        if timeout(time, close).await.is_err() {
            tracing::warn!("sources were still stopping after {time:.1?}");
        }
        warn_of_cut_calls(&self.core, drain_timeout).await;
        self.core.services().drain().finish();
        let time = shutdown_time(drain_timeout)
            .saturating_sub(asked.elapsed())
            .min(LAST_REPLIES_TIMEOUT);
        if !self.server.is_finished() && timeout(time, self.server).await.is_err() {
            tracing::debug!("replies were still being sent");
        }
    }
}

/// Refuses new calls, and waits at most `time` for those in flight.
pub(super) async fn drain(core: &Core, time: Duration) {
    core.services().drain().begin_draining();
    // The calls that are left are named when they have failed.
    let _: Result<(), Elapsed> = timeout(time, core.services().drain().drained()).await;
}

/// The task that prolongs the time of the shutdown; ended when dropped.
struct Postponed(JoinHandle<()>);

impl Drop for Postponed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Prolongs the time of the shutdown until the result is dropped. A task does so: if no thread of the runtime is free for
/// it, the shutdown makes no progress.
fn postponed(end: EndTimeout) -> Postponed {
    Postponed(tokio::spawn(async move {
        let mut interval = tokio::time::interval(POSTPONE_INTERVAL);
        loop {
            interval.tick().await;
            end.postpone();
        }
    }))
}

/// Names the calls that were cut by the end, whose time was `drain_timeout`.
pub(super) async fn warn_of_cut_calls(core: &Core, drain_timeout: Duration) {
    let drain = core.services().drain();
    // A source that has stopped fails its calls a moment later.
    let _: Result<(), Elapsed> = timeout(CUT_TIMEOUT, drain.drained()).await;
    let cut = drain.cut_calls();
    if cut.count == 0 {
        return;
    }
    let named = cut.named.iter();
    let named: Vec<String> = named.map(|(path, id)| format!("{path} ({id})")).collect();
    let others = match cut.count - named.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    tracing::warn!(
        "calls were still running after {} s and failed: {}{others}; `drain_timeout` and `--drain` give them more time",
        drain_timeout.as_secs_f32(),
        named.join(", ")
    );
}

/// The failure of a surface that ended by itself.
fn not_served<S: Surface>(served: Result<io::Result<()>, JoinError>) -> Failure {
    let reason = match served {
        Ok(Ok(())) => "it ended unexpectedly".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Failure::Internal(format!("{} cannot be served: {reason}", S::NAME))
}

/// The time from the stop signal to the end, without threads.
fn shutdown_time(drain_timeout: Duration) -> Duration {
    SHUTDOWN_TIMEOUT.max(drain_timeout + AFTER_DRAIN_TIMEOUT)
}

/// The remaining time for stopping the sources, `elapsed` after the stop signal.
fn time_to_close(drain_timeout: Duration, elapsed: Duration) -> Duration {
    shutdown_time(drain_timeout)
        .saturating_sub(elapsed)
        .min(SHUTDOWN_TIMEOUT)
        .saturating_sub(MIN_LAST_REPLIES_TIMEOUT)
}

/// Waits for the outcome of the start; if it is refused, reports that and sets `refused`. Returns only if
/// that ends the broker at once.
async fn refusal<S: Surface>(
    core: &Core,
    served_config: Option<&Path>,
    output: &LogOutput,
    refused: &Cell<Option<Exit>>,
) -> Exit {
    if refused.get().is_some() {
        return std::future::pending().await;
    }
    let StartOutcome { mut report, refuse } = core.services().first_verdict().await;
    let Some(reason) = refuse else {
        tracing::info!("ready: {}", shown_counts(core.served()));
        return std::future::pending().await;
    };
    let (exit, why, more) = match reason {
        RefusalCause::Drift => (
            Exit::Drift,
            "the tools of the sources differ from the lock",
            "",
        ),
        RefusalCause::Unchecked => (
            Exit::Unchecked,
            "a source could not be compared with the lock",
            "`\"on_unreachable\": \"serve\"` in the config serves the other sources, ",
        ),
    };
    if let Some(config) = served_config {
        report.name_config(&config.to_string_lossy());
        report.name_serve();
    }
    let human = text!(
        "{}\nrefused to start: {}; {}`--ignore-broken-tool` serves the tools that still match",
        broker_doctor::report_text(&report),
        why,
        more
    );
    output.drift_report(&human, &report);
    refused.set(Some(exit));
    if !S::EXPLAINS_REFUSAL {
        return exit;
    }
    core.stop_after_refusal().await;
    tracing::info!("the sources are stopped; calls get `start_refused` until the client leaves");
    std::future::pending().await
}

/// The numbers of served tools and sources, each with the total if something is not served.
fn shown_counts(counts: ServedCounts) -> String {
    let ServedCounts {
        sources,
        all_sources,
        tools,
        all_tools,
    } = counts;
    let of_sources = counted(all_sources, "source");
    if (tools, sources) == (all_tools, all_sources) {
        format!("{} of {of_sources}", counted(tools, "tool"))
    } else {
        let of_tools = counted(all_tools, "tool");
        format!("{tools} of {of_tools}, {sources} of {of_sources}")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the time of a shutdown if drain, sources and threads use all of their time.
    pub(in crate::app) fn longest_shutdown(drain_timeout: Duration) -> Duration {
        let after_drain = time_to_close(drain_timeout, drain_timeout);
        drain_timeout
            + after_drain
            + MIN_LAST_REPLIES_TIMEOUT
            + super::super::RUNTIME_SHUTDOWN_TIMEOUT
    }

    #[test]
    fn ready_counts_are_shown_as_parts_only_if_something_is_not_served() {
        let counts = |tools, sources| ServedCounts {
            sources,
            all_sources: 2,
            tools,
            all_tools: 8,
        };
        assert_eq!(shown_counts(counts(8, 2)), "8 tools of 2 sources");
        assert_eq!(shown_counts(counts(7, 2)), "7 of 8 tools, 2 of 2 sources");
        assert_eq!(shown_counts(counts(3, 1)), "3 of 8 tools, 1 of 2 sources");
        let one = ServedCounts {
            sources: 1,
            all_sources: 1,
            tools: 1,
            all_tools: 1,
        };
        assert_eq!(shown_counts(one), "1 tool of 1 source");
    }

    #[test]
    fn shutdown_after_a_full_drain_ends_within_two_more_seconds() {
        for drain in [10, 30, 60, 600].map(Duration::from_secs) {
            let after_drain = time_to_close(drain, drain);
            assert!(after_drain.saturating_sub(PROCESS_END_TIMEOUT) >= Duration::from_secs(1));
            let end = longest_shutdown(drain);
            assert!(end <= drain + Duration::from_secs(2), "{end:?}");
            assert_eq!(time_to_close(drain, shutdown_time(drain)), Duration::ZERO);
            // Without calls, every grace of a source fits, and the end does not take the time of the drain.
            let at_once = time_to_close(drain, Duration::ZERO);
            assert!(at_once > Duration::from_secs(8) && at_once < SHUTDOWN_TIMEOUT);
        }
    }
}
