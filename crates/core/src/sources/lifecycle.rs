//! Starts and stops the sources, and watches each until its first outcome.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use broker_mcp::{Judge, SourceFailure, SourceSpec, State, Status};
use broker_model::SourceCause;
use broker_wire::Era;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Inner;
use crate::sources::seat::{Role, Seat, SourceJudge, Standing};
use crate::sources::upstream::Upstream;

/// How long the tasks of stopped sources have to end. Every step of a stop has a bound of its own;
/// this one is for a bound that was forgotten.
const TASKS_GRACE: Duration = Duration::from_secs(20);
/// How long a source has to stop where nobody is in a hurry: enough for all of its graces.
pub(crate) const STOP: Duration = Duration::from_secs(8);

impl Inner {
    /// Sources that are still to be started get `grace` to leave once they are stopped, and as much
    /// again after SIGTERM.
    pub(crate) fn shorten_stop(&self, grace: Duration) {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        for launch in launches.iter_mut() {
            launch.timing.close_grace = launch.timing.close_grace.min(grace);
            launch.timing.term_grace = launch.timing.term_grace.min(grace);
        }
    }

    pub(crate) fn start_sources(self: &Arc<Self>) {
        let launches =
            std::mem::take(&mut *self.launches.lock().unwrap_or_else(PoisonError::into_inner));
        if launches.len() != self.catalog.sources.len() {
            return;
        }
        let seats = launches
            .into_iter()
            .enumerate()
            .map(|(source, launch)| self.seat(source, launch, Role::Serving, None));
        self.adopt(seats.collect());
    }

    /// Starts a source. Beside another, whose place it may take, both count together.
    pub(crate) fn seat(
        &self,
        source: usize,
        launch: SourceSpec,
        role: Role,
        beside: Option<&Upstream>,
    ) -> Arc<Seat> {
        let standing = Standing::new(role, launch.instances);
        // The one that it had when it was locked is tried first.
        let era = Era::of_revision(self.catalog.sources[source].protocol_version);
        let judge = |instance| -> Arc<dyn Judge> {
            Arc::new(SourceJudge {
                verdicts: self.verdicts.clone(),
                source,
                instance,
                standing: standing.clone(),
            })
        };
        let upstream = Upstream::start(&launch, era, judge, &self.tasks, beside);
        Seat::new(upstream, Some(launch), standing)
    }

    /// Takes over running sources and watches them.
    pub(crate) fn adopt(self: &Arc<Self>, seats: Vec<Arc<Seat>>) {
        let count = seats.len();
        let seats = seats.into_iter().map(ArcSwap::new).collect();
        if self.seats.set(seats).is_err() {
            return;
        }
        for source in 0..count {
            self.watch_first_outcome(source);
        }
    }

    /// Watches each process of a source until the source was judged or failed, whichever is first.
    fn watch_first_outcome(self: &Arc<Self>, source: usize) {
        let Some(seat) = self.seats.get().map(|all| all[source].load_full()) else {
            return;
        };
        for status in seat.upstream.statuses() {
            let (inner, upstream) = (self.clone(), seat.upstream.clone());
            self.tasks
                .spawn(async move { inner.first_outcome(source, upstream, status).await });
        }
    }

    /// A verdict is settled by the judge; here only failures are.
    async fn first_outcome(
        &self,
        source: usize,
        upstream: Upstream,
        mut status: watch::Receiver<Status>,
    ) {
        while !self.verdicts.gate.is_settled(source) {
            let failure = {
                let status = status.borrow_and_update();
                match &status.failure {
                    _ if status.state == State::Stopping => Some(stopped()),
                    Some(failure) if status.attempts > 0 => Some(failure.clone()),
                    _ => None,
                }
            };
            if let Some(failure) = failure {
                let last = self.verdicts.gate.is_strict(source);
                self.verdicts.failed(source, &failure);
                if last {
                    // A plain start makes one attempt a source, and it is lost already.
                    upstream.stop_within(STOP).await;
                }
                return;
            }
            if status.changed().await.is_err() {
                self.verdicts.failed(source, &stopped());
                return;
            }
        }
    }

    /// Everything stops within about `time`; what waits for an answer fails at once.
    pub(crate) async fn stop_sources(&self, time: Duration) {
        self.drain.begin_closing();
        let Some(seats) = self.seats.get() else {
            return;
        };
        let mut stops = JoinSet::new();
        let guests = self.guests().clone();
        let seated = seats.iter().map(|seat| seat.load().upstream.clone());
        for upstream in seated.chain(guests) {
            stops.spawn(async move { upstream.stop_within(time).await });
        }
        while let Some(ended) = stops.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "stopping a source failed");
            }
        }
        self.tasks.close();
        if tokio::time::timeout(TASKS_GRACE, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::error!(
                tasks = self.tasks.len(),
                "tasks of stopped sources are still running"
            );
        }
    }
}

fn stopped() -> SourceFailure {
    SourceFailure::new(SourceCause::Stopped, "the broker stopped the source")
}
