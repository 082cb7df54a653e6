//! The sources of a catalog: what each serves now, and its processes. Starts and stops them, and watches each until its
//! first outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use broker_mcp::{DriftCheck, SourceFailure, SourceSpec, State, Status};
use broker_model::SourceCause;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Fleet;
use crate::admission::Policy;
use crate::snapshot::InForce;
use crate::sources::health::rank;
use crate::sources::slot::{Phase, RunningSource, SharedSlotState, SlotDriftCheck};
use crate::sources::startup_gate::REACH_TIMEOUT;
use crate::sources::upstream::Upstream;

/// Maximum time for the tasks of stopped sources to end. Every step of a stop is bounded; this bound
/// covers a step that is not.
const TASKS_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval of requests to the health view. A reload replaces sources, so their statuses are not awaited.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for a source to stop without a deadline: enough for all of its graces.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(8);

impl Fleet {
    /// Returns what is in force now. The terms are read first: a reload changes the view before them.
    pub(crate) fn in_force(&self) -> InForce {
        InForce {
            terms: self.terms.load_full(),
            view: self.drift_state.view.load_full(),
        }
    }

    /// Returns the access rules in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.terms.load().policy.clone()
    }

    /// Whether callers may see different entries.
    pub(crate) fn lists_may_differ(&self) -> bool {
        self.terms.load().policy.has_rules() || self.filters.are_set()
    }

    /// Returns the longest time that a call may take; `None` if the catalog has no tools.
    pub(crate) fn longest_timeout(&self) -> Option<Duration> {
        let terms = self.terms.load();
        terms.settings.iter().map(|tool| tool.timeout).max()
    }

    /// Returns the status of each process of a source.
    pub(super) fn statuses(&self, at: usize) -> Vec<Status> {
        let running = self.slots.get().map(|all| all[at].load_full());
        let statuses = running.map_or_else(Vec::new, |running| running.upstream.statuses());
        statuses.iter().map(|one| one.borrow().clone()).collect()
    }

    /// Returns the number of calls that wait for a place at the processes of a source.
    pub(super) fn waiting(&self, at: usize) -> usize {
        let running = self.slots.get().map(|all| all[at].load_full());
        running.map_or(0, |running| running.upstream.waiting())
    }

    /// Returns the last stderr lines of each process of a source; none for a source that is reached by a URL.
    pub(super) fn last_lines(&self, at: usize) -> Vec<Vec<String>> {
        let running = self.slots.get().map(|all| all[at].load_full());
        let is_process = |running: &Arc<RunningSource>| {
            let spec = running.spec.as_ref();
            spec.is_some_and(|spec| spec.endpoint.process().is_some())
        };
        let running = running.filter(is_process);
        running.map_or_else(Vec::new, |running| running.upstream.last_lines())
    }

    /// Returns the state of a source: the state of its best process.
    pub(crate) fn source_state(&self, at: usize) -> State {
        let states = self.statuses(at).into_iter().map(|status| status.state);
        states
            .min_by_key(|state| rank(*state))
            .unwrap_or(State::Starting)
    }

    /// Returns the reason why a source is not ready, or why it last ended: the failure of one of its processes.
    pub(crate) fn source_failure(&self, at: usize) -> Option<SourceFailure> {
        let mut statuses = self.statuses(at).into_iter();
        statuses.find_map(|status| status.failure)
    }

    /// Limits the grace of sources that are not yet started to `grace`, before and after SIGTERM.
    pub(crate) fn shorten_stop(&self, grace: Duration) {
        let mut specs = self.specs.lock().unwrap_or_else(PoisonError::into_inner);
        for spec in specs.iter_mut() {
            spec.timing.close_grace = spec.timing.close_grace.min(grace);
            spec.timing.term_grace = spec.timing.term_grace.min(grace);
        }
    }

    pub(crate) fn start_sources(self: &Arc<Self>) {
        let specs = std::mem::take(&mut *self.specs.lock().unwrap_or_else(PoisonError::into_inner));
        if specs.len() != self.catalog.sources.len() {
            return;
        }
        let slots = specs
            .into_iter()
            .enumerate()
            .map(|(source, spec)| self.start_source(source, spec, Phase::Active, None));
        self.adopt(slots.collect());
    }

    /// Starts a source. It shares its counters with the source in `beside` and may replace it.
    pub(crate) fn start_source(
        &self,
        source: usize,
        spec: SourceSpec,
        phase: Phase,
        beside: Option<&Upstream>,
    ) -> Arc<RunningSource> {
        let state = SharedSlotState::new(phase, spec.instances);
        let locked = Some(self.catalog.sources[source].protocol_version);
        let drift_check = |instance| -> Arc<dyn DriftCheck> {
            Arc::new(SlotDriftCheck {
                drift_state: self.drift_state.clone(),
                source,
                instance,
                state: state.clone(),
            })
        };
        let upstream = Upstream::start(&spec, locked, drift_check, &self.shared.tasks, beside);
        RunningSource::new(upstream, Some(spec), state)
    }

    /// Puts running sources into the slots and watches them.
    pub(crate) fn adopt(self: &Arc<Self>, slots: Vec<Arc<RunningSource>>) {
        let count = slots.len();
        let slots = slots.into_iter().map(ArcSwap::new).collect();
        if self.slots.set(slots).is_err() {
            return;
        }
        for source in 0..count {
            self.watch_first_outcome(source);
        }
        if self.filters.health.is_some() {
            let known = self.filters.offered_sources(self);
            self.shared
                .tasks
                .spawn(self.clone().watch_offered_sources(known));
        }
        if self.drift_state.gate.has_time_limit() {
            let (drift_state, draining) = (self.drift_state.clone(), self.shared.drain.draining());
            self.shared.tasks.spawn(async move {
                let waited = tokio::time::sleep(REACH_TIMEOUT);
                if draining.run_until_cancelled(waited).await.is_some() {
                    drift_state.stop_waiting();
                }
            });
        }
    }

    /// Counts a change of the tool list whenever the health view offers other sources than the known ones.
    async fn watch_offered_sources(self: Arc<Self>, mut known: Vec<bool>) {
        let draining = self.shared.drain.draining();
        let pause = || tokio::time::sleep(HEALTH_INTERVAL);
        while draining.run_until_cancelled(pause()).await.is_some() {
            let offered = catch_unwind(AssertUnwindSafe(|| self.filters.offered_sources(&self)));
            let Ok(now) = offered else {
                tracing::error!("the health view panicked; callers may not learn of other lists");
                continue;
            };
            if now != known {
                known = now;
                self.drift_state.count_tool_change();
            }
        }
    }

    /// Watches each process of a source until the source was checked or failed, whichever is first.
    fn watch_first_outcome(self: &Arc<Self>, source: usize) {
        let Some(running) = self.slots.get().map(|all| all[source].load_full()) else {
            return;
        };
        for status in running.upstream.statuses() {
            let (fleet, upstream) = (self.clone(), running.upstream.clone());
            self.shared
                .tasks
                .spawn(async move { fleet.first_outcome(source, upstream, status).await });
        }
    }

    /// Reports the failure of a source. The drift check reports verdicts.
    async fn first_outcome(
        &self,
        source: usize,
        upstream: Upstream,
        mut status: watch::Receiver<Status>,
    ) {
        while !self.drift_state.gate.is_settled(source) {
            let failure = {
                let status = status.borrow_and_update();
                match &status.failure {
                    _ if status.state == State::Stopping => Some(stopped()),
                    Some(failure) if status.attempts > 0 => Some(failure.clone()),
                    _ => None,
                }
            };
            if let Some(failure) = failure {
                let last = self.drift_state.gate.is_single_attempt(source);
                self.drift_state.failed(source, &failure);
                if last {
                    // A plain start makes one attempt for a source that it needs, and this one failed.
                    upstream.stop_within(STOP_TIMEOUT).await;
                }
                return;
            }
            if status.changed().await.is_err() {
                self.drift_state.failed(source, &stopped());
                return;
            }
        }
    }

    /// Stops all sources within about `time`; pending calls fail at once.
    pub(crate) async fn stop_sources(&self, time: Duration) {
        self.shared.drain.begin_closing();
        self.stop_upstreams(time).await;
        if self.slots.get().is_none() {
            return;
        }
        self.shared.tasks.close();
        if tokio::time::timeout(TASKS_TIMEOUT, self.shared.tasks.wait())
            .await
            .is_err()
        {
            tracing::error!(
                tasks = self.shared.tasks.len(),
                "tasks of stopped sources are still running"
            );
        }
    }

    /// Stops the processes of all sources within about `time`.
    pub(crate) async fn stop_upstreams(&self, time: Duration) {
        let Some(slots) = self.slots.get() else {
            return;
        };
        let mut stops = JoinSet::new();
        let extra_upstreams = self.extra_upstreams().clone();
        let active = slots.iter().map(|slot| slot.load().upstream.clone());
        for upstream in active.chain(extra_upstreams) {
            stops.spawn(async move { upstream.stop_within(time).await });
        }
        while let Some(ended) = stops.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "stopping a source failed");
            }
        }
    }
}

fn stopped() -> SourceFailure {
    SourceFailure::new(SourceCause::Stopped, "the broker stopped the source")
}
