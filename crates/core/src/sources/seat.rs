//! The place of a source: the one that is in it takes the calls, and its listings count. While another
//! takes over, the new one is judged without effect; the listings of the one that left have no effect.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_mcp::{Judge, SourceSpec, Verdict};
use broker_model::Snapshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::sources::upstream::Upstream;
use crate::sources::verdict::{Judged, Reviewed, Verdicts};

/// A source in its place. Every call holds it as long as it runs.
pub(crate) struct Seat {
    pub(crate) upstream: Upstream,
    /// How it was started; nothing for a stand-in.
    pub(crate) launch: Option<SourceSpec>,
    pub(crate) standing: Arc<Standing>,
    /// Cancelled once nobody holds the seat any more.
    pub(crate) left: CancellationToken,
    _guard: DropGuard,
}

/// What a source's listings count for, and what its processes last listed.
pub(crate) struct Standing(Mutex<Place>);

pub(crate) struct Place {
    pub(crate) role: Role,
    /// By process. What one of them may not serve none serves, since any may get the call.
    latest: Box<[Option<Judged>]>,
}

pub(crate) enum Role {
    /// Its verdicts decide what is served.
    Serving,
    /// They are only noted down, until it may take over with this.
    Trial(Box<Reviewed>),
    /// They count for nothing.
    Left,
}

/// Judges one process of a source, as far as the source's standing goes.
pub(crate) struct SourceJudge {
    pub(crate) verdicts: Arc<Verdicts>,
    pub(crate) source: usize,
    pub(crate) instance: usize,
    pub(crate) standing: Arc<Standing>,
}

impl Seat {
    pub(crate) fn new(
        upstream: Upstream,
        launch: Option<SourceSpec>,
        standing: Arc<Standing>,
    ) -> Arc<Self> {
        let left = CancellationToken::new();
        Arc::new(Self {
            upstream,
            launch,
            standing,
            _guard: left.clone().drop_guard(),
            left,
        })
    }
}

impl Standing {
    /// Of a source with so many processes.
    pub(crate) fn new(role: Role, instances: usize) -> Arc<Self> {
        let latest = (0..instances).map(|_| None).collect();
        Arc::new(Self(Mutex::new(Place { role, latest })))
    }

    /// Locked for as long as a listing is judged, so that no verdict is under way when it changes.
    pub(crate) fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// What was found so far over all processes: the report of the worst, and everything that one of
    /// them may not serve.
    pub(crate) fn judged(&self) -> Option<Judged> {
        let all = || self.latest.iter().flatten();
        let worst = all().max_by_key(|judged| {
            (
                judged.is_refused(),
                judged.withdrawn.len(),
                judged.changed_texts.len(),
            )
        })?;
        let withdrawn = all().flat_map(|judged| judged.withdrawn.clone()).collect();
        let changed_texts = all()
            .flat_map(|judged| judged.changed_texts.clone())
            .collect();
        Some(Judged {
            withdrawn,
            changed_texts,
            ..worst.clone()
        })
    }

    /// Whether every process was judged.
    pub(crate) fn is_complete(&self) -> bool {
        self.latest.iter().all(Option::is_some)
    }
}

impl Judge for SourceJudge {
    fn judge(&self, snapshot: &Snapshot) -> Verdict {
        let mut place = self.standing.place();
        let judged = match &place.role {
            Role::Serving => self.verdicts.assess(self.source, None, snapshot),
            Role::Trial(reviewed) => self.verdicts.assess(self.source, Some(reviewed), snapshot),
            // A process that still starts in that source was not checked against the lock.
            Role::Left => {
                return Verdict::WithdrawSource {
                    message: "a reload replaced the process".to_owned(),
                };
            }
        };
        let verdict = judged.verdict.clone();
        place.latest[self.instance] = Some(judged);
        if let (Role::Serving, Some(judged)) = (&place.role, place.judged()) {
            self.verdicts.accept(self.source, judged);
        }
        verdict
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat")
            .field("launch", &self.launch)
            .finish_non_exhaustive()
    }
}
