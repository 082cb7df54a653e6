//! The place of a source: whoever sits there takes its calls, and its listings count. While one takes
//! over from another, the newcomer is judged without effect, and the one that left is not listened to.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_mcp::{Judge, Launch, Verdict};
use broker_model::Snapshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::upstream::Upstream;
use super::verdict::{Judged, Reviewed, Verdicts};

/// A source in its place. Every call holds it as long as it runs.
pub(super) struct Seat {
    pub(super) upstream: Upstream,
    /// How it was started; nothing for a stand-in.
    pub(super) launch: Option<Launch>,
    pub(super) standing: Arc<Standing>,
    /// Cancelled once nobody holds the seat any more.
    pub(super) left: CancellationToken,
    _guard: DropGuard,
}

/// What a source's listings count for.
pub(super) struct Standing(Mutex<State>);

pub(super) enum State {
    /// Its verdicts decide what is served.
    Serving,
    /// They are only noted down.
    Trial(Box<Trial>),
    /// They count for nothing.
    Left,
}

/// A source that may take over.
pub(super) struct Trial {
    pub(super) reviewed: Reviewed,
    pub(super) latest: Option<Judged>,
}

/// Judges one source, as far as its standing goes.
pub(super) struct SourceJudge {
    pub(super) verdicts: Arc<Verdicts>,
    pub(super) source: usize,
    pub(super) standing: Arc<Standing>,
}

impl Seat {
    pub(super) fn new(
        upstream: Upstream,
        launch: Option<Launch>,
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
    pub(super) fn new(state: State) -> Arc<Self> {
        Arc::new(Self(Mutex::new(state)))
    }

    /// Locked for as long as a listing is judged, so that no verdict is under way when it changes.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Judge for SourceJudge {
    fn judge(&self, snapshot: &Snapshot) -> Verdict {
        match &mut *self.standing.state() {
            State::Serving => self.verdicts.judge(self.source, snapshot),
            State::Trial(trial) => {
                let judged = self.verdicts.assess(self.source, &trial.reviewed, snapshot);
                trial.latest.insert(judged).verdict.clone()
            }
            State::Left => Verdict::Serve,
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat")
            .field("launch", &self.launch)
            .finish_non_exhaustive()
    }
}
