//! The active upstream of a source. During a reload a candidate is checked without effect; listings of
//! a retired source are ignored.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use broker_mcp::{DriftCheck, SourceFailure, SourceSpec, Verdict};
use broker_model::Snapshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::sources::change_observer::Change;
use crate::sources::drift_state::{Assessment, CheckSettings, DriftState};
use crate::sources::upstream::Upstream;

/// The slot of a source: the running source that takes its calls. A reload replaces it.
pub(crate) type SourceSlot = ArcSwap<RunningSource>;

/// A source whose processes were started. Every call holds it until the call ends.
pub(crate) struct RunningSource {
    pub(crate) upstream: Upstream,
    /// The specification that it was started with; `None` for a fake.
    pub(crate) spec: Option<SourceSpec>,
    pub(crate) state: Arc<SharedSlotState>,
    /// Cancelled when the last reference to this source is dropped.
    pub(crate) left: CancellationToken,
    _guard: DropGuard,
}

/// The phase of a source and the last assessment of each of its processes.
pub(crate) struct SharedSlotState(Mutex<SlotState>);

pub(crate) struct SlotState {
    pub(crate) phase: Phase,
    /// By process. A tool that one process must not serve is not served by any, since any process may
    /// get the call.
    latest: Box<[Option<Assessment>]>,
}

pub(crate) enum Phase {
    /// Its verdicts decide what is served.
    Active,
    /// Its verdicts are recorded without effect until it becomes active with these settings.
    Candidate(Box<CheckSettings>),
    /// Its verdicts have no effect.
    Retired,
}

/// The drift check of one process; the phase of its source decides about the effect.
pub(crate) struct SlotDriftCheck {
    pub(crate) drift_state: Arc<DriftState>,
    pub(crate) source: usize,
    pub(crate) instance: usize,
    pub(crate) state: Arc<SharedSlotState>,
}

impl RunningSource {
    pub(crate) fn new(
        upstream: Upstream,
        spec: Option<SourceSpec>,
        state: Arc<SharedSlotState>,
    ) -> Arc<Self> {
        let left = CancellationToken::new();
        Arc::new(Self {
            upstream,
            spec,
            state,
            _guard: left.clone().drop_guard(),
            left,
        })
    }
}

impl SharedSlotState {
    /// Makes the state of a source with this many processes.
    pub(crate) fn new(phase: Phase, instances: usize) -> Arc<Self> {
        let latest = (0..instances).map(|_| None).collect();
        Arc::new(Self(Mutex::new(SlotState { phase, latest })))
    }

    /// Locks the state. It is locked while a listing is checked, so that the phase does not change during a check.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotState {
    /// Returns the assessment over all processes: the worst report, and every tool that one of them must not serve.
    pub(crate) fn assessment(&self) -> Option<Assessment> {
        let all = || self.latest.iter().flatten();
        let worst = all().max_by_key(|assessment| {
            (
                assessment.is_refused(),
                assessment.withdrawn.len(),
                assessment.changed_texts.len(),
            )
        })?;
        let withdrawn = all()
            .flat_map(|assessment| assessment.withdrawn.clone())
            .collect();
        let changed_texts = all()
            .flat_map(|assessment| assessment.changed_texts.clone())
            .collect();
        Some(Assessment {
            withdrawn,
            changed_texts,
            ..worst.clone()
        })
    }

    /// Whether every process was checked.
    pub(crate) fn is_complete(&self) -> bool {
        self.latest.iter().all(Option::is_some)
    }
}

impl DriftCheck for SlotDriftCheck {
    fn check(&self, snapshot: &Snapshot) -> Verdict {
        let mut state = self.state.lock();
        let assessment = match &state.phase {
            Phase::Active => self.drift_state.assess(self.source, None, snapshot),
            Phase::Candidate(check_settings) => {
                self.drift_state
                    .assess(self.source, Some(check_settings), snapshot)
            }
            // A process that still starts in that source was not checked against the lock.
            Phase::Retired => {
                return Verdict::WithdrawSource {
                    message: "a reload replaced the process".to_owned(),
                };
            }
        };
        let verdict = assessment.verdict.clone();
        state.latest[self.instance] = Some(assessment);
        if let (Phase::Active, Some(assessment)) = (&state.phase, state.assessment()) {
            self.drift_state.accept(self.source, assessment);
        }
        verdict
    }

    fn lost(&self, failure: &SourceFailure) {
        let cause = failure.cause;
        self.tell(|source| Change::SourceDown { source, cause });
    }

    fn restored(&self) {
        self.tell(|source| Change::SourceUp { source });
    }
}

impl SlotDriftCheck {
    /// Tells the observer a change of the source, unless a reload has replaced it or may take it back.
    fn tell(&self, change: impl FnOnce(&'static str) -> Change<'static>) {
        if let Phase::Active = self.state.lock().phase {
            self.drift_state.tell(self.source, change);
        }
    }
}

impl fmt::Debug for RunningSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningSource")
            .field("launch", &self.spec)
            .finish_non_exhaustive()
    }
}
