//! Applies another config completely or not at all. Changed sources start next to the running ones as candidates, are
//! compared with the lock without effect, and become active together; a retired source finishes its calls first.

use broker_mcp::{SourceFailure, SourceSettings, SourceSpec, State, Verdict};
use broker_model::SourceCause;
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::Fleet;
use crate::listing::tools;
use crate::sources::drift_state::CheckSettings;
use crate::sources::fleet::STOP_TIMEOUT;
use crate::sources::setup::PreparedConfig;
use crate::sources::slot::{Phase, RunningSource, SlotState};
use crate::sources::upstream::Upstream;

/// The maximum number of withdrawals that a refusal names.
const MAX_NAMED: usize = 3;

/// The result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadSummary {
    /// The sources whose processes were replaced, by path.
    pub replaced: Vec<&'static str>,
}

/// The reason why a reload was refused.
#[derive(Clone, Debug)]
pub enum ReloadError {
    /// These candidates would not have served the tools that the running sources serve.
    Refused(Vec<RefusedSource>),
    /// The broker has not started its sources, or is shutting down.
    NotRunning,
}

/// A candidate that cannot become active.
#[derive(Clone, Debug)]
pub struct RefusedSource {
    /// Its path.
    pub source: &'static str,
    /// The cause, from the closed list.
    pub cause: SourceCause,
    /// The message for people.
    pub message: String,
}

/// A source that was started for a reload.
struct Candidate {
    source: usize,
    running: Arc<RunningSource>,
}

/// A source that keeps its process, with its new settings.
struct UnchangedSource {
    source: usize,
    settings: SourceSettings,
    check_settings: CheckSettings,
}

impl Fleet {
    pub(crate) async fn reload(
        self: &Arc<Self>,
        mut prepared: PreparedConfig,
    ) -> Result<ReloadSummary, ReloadError> {
        let _turn = self.reloading.lock().await;
        let slots = self.slots.get().ok_or(ReloadError::NotRunning)?;
        let (mut unchanged, mut candidates) = (Vec::new(), Vec::new());
        for (source, (mut spec, check_settings)) in prepared.sources.drain(..).enumerate() {
            let running = slots[source].load_full();
            if let Some(current) = &running.spec {
                spec.timing = current.timing;
                if current.starts_the_same(&spec) {
                    unchanged.push(UnchangedSource {
                        source,
                        settings: SourceSettings::from(&spec),
                        check_settings,
                    });
                    continue;
                }
            }
            candidates.push(self.start_candidate(
                source,
                &running.upstream,
                spec,
                check_settings,
            )?);
        }
        let mut refused = Vec::new();
        for candidate in &candidates {
            if let Err(failure) = first_outcome(&candidate.running.upstream).await {
                refused.push(self.refused(candidate.source, &failure));
            }
        }
        let outcome = if self.shared.drain.is_closing() {
            Err(ReloadError::NotRunning)
        } else if !refused.is_empty() {
            Err(ReloadError::Refused(refused))
        } else {
            // This may have to wait for a verdict in progress.
            let fleet = self.clone();
            let moved = tokio::task::spawn_blocking(move || {
                let outcome = fleet.activate(&candidates, unchanged, prepared);
                (candidates, outcome)
            });
            match moved.await {
                Ok((back, outcome)) => {
                    candidates = back;
                    outcome
                }
                Err(_) => return Err(ReloadError::NotRunning),
            }
        };
        match outcome {
            Ok(left) => {
                candidates
                    .iter()
                    .for_each(|candidate| self.forget(&candidate.running.upstream));
                let replaced = candidates
                    .iter()
                    .map(|candidate| self.path(candidate.source))
                    .collect();
                left.into_iter().for_each(|running| self.retire(running));
                Ok(ReloadSummary { replaced })
            }
            Err(error) => {
                for candidate in &candidates {
                    candidate.running.upstream.stop_within(STOP_TIMEOUT).await;
                    self.forget(&candidate.running.upstream);
                }
                Err(error)
            }
        }
    }

    /// Starts a source without putting it into its slot.
    fn start_candidate(
        &self,
        source: usize,
        beside: &Upstream,
        spec: SourceSpec,
        check_settings: CheckSettings,
    ) -> Result<Candidate, ReloadError> {
        let phase = Phase::Candidate(Box::new(check_settings));
        let mut extra_upstreams = self.extra_upstreams();
        if self.shared.drain.is_closing() {
            return Err(ReloadError::NotRunning);
        }
        let running = self.start_source(source, spec, phase, Some(beside));
        extra_upstreams.push(running.upstream.clone());
        Ok(Candidate { source, running })
    }

    /// Makes all candidates active, or keeps all current sources. Returns the sources that they replaced.
    fn activate(
        &self,
        candidates: &[Candidate],
        unchanged: Vec<UnchangedSource>,
        prepared: PreparedConfig,
    ) -> Result<Vec<Arc<RunningSource>>, ReloadError> {
        let slots = self.slots.get().ok_or(ReloadError::NotRunning)?;
        let mut states: Vec<_> = candidates
            .iter()
            .map(|candidate| candidate.running.state.lock())
            .collect();
        let refused: Vec<_> = candidates
            .iter()
            .zip(&states)
            .filter_map(|(candidate, state)| {
                self.check_candidate(candidate.source, state, &prepared)
            })
            .collect();
        if !refused.is_empty() {
            return Err(ReloadError::Refused(refused));
        }
        let mut left = Vec::new();
        for (candidate, state) in candidates.iter().zip(&mut states) {
            let Phase::Candidate(check_settings) =
                std::mem::replace(&mut state.phase, Phase::Active)
            else {
                continue;
            };
            let before = slots[candidate.source].load_full();
            before.state.lock().phase = Phase::Retired;
            self.extra_upstreams().push(before.upstream.clone());
            // The slot changes before the view: a call to a restored tool must not reach the source that caused the
            // withdrawal.
            slots[candidate.source].store(candidate.running.clone());
            self.drift_state
                .set_check_settings(candidate.source, *check_settings);
            if let Some(assessment) = state.assessment() {
                self.drift_state.accept(candidate.source, assessment);
            }
            left.push(before);
        }
        for kept in unchanged {
            let running = slots[kept.source].load();
            running.upstream.set(kept.settings);
            let state = running.state.lock();
            self.drift_state
                .set_check_settings(kept.source, kept.check_settings);
            // The last findings are applied again under the new config.
            if let Some(assessment) = state.assessment() {
                self.drift_state.accept(kept.source, assessment);
            }
        }
        self.drift_state.hide(prepared.hidden);
        let before = self.terms.swap(prepared.terms.clone());
        let (view, now) = (self.drift_state.view.load(), prepared.terms);
        let is_served = |tool| view.is_served(tool);
        let (old, new) = (&before.settings, &now.settings);
        if now.policy.has_rules() || tools::is_listed_otherwise(self.catalog, is_served, old, new) {
            self.drift_state.count_tool_change();
        }
        self.shared.memory.set_limit(prepared.memory_bytes);
        self.shared.drain.set_time(prepared.drain_time);
        Ok(left)
    }

    /// Returns the reason if a candidate must not become active: it would withdraw tools that are served.
    fn check_candidate(
        &self,
        source: usize,
        state: &SlotState,
        prepared: &PreparedConfig,
    ) -> Option<RefusedSource> {
        let refuse = |message: String| {
            let failure = SourceFailure::new(SourceCause::DriftSource, message);
            Some(self.refused(source, &failure))
        };
        let assessment = state.assessment().filter(|_| state.is_complete());
        let Some(assessment) = assessment else {
            return refuse("it was not compared with the lock".to_owned());
        };
        if let Verdict::WithdrawSource { message } = &assessment.verdict {
            return refuse(message.clone());
        }
        let view = self.drift_state.view.load();
        let Phase::Candidate(check_settings) = &state.phase else {
            return refuse("it was not compared with the lock".to_owned());
        };
        let withdrawn = assessment.withdrawn_by(check_settings.text_drift);
        let lost: Vec<String> = withdrawn
            .iter()
            .filter(|(tool, _)| {
                !prepared.hidden.contains(tool)
                    && !view.is_hidden(**tool)
                    && view.withdrawn(**tool).is_none()
            })
            .map(|(tool, why)| {
                let path = self.catalog.entry(self.catalog.item(*tool).entry).path;
                format!("`{path}` would be withdrawn: {}", why.reason.internal)
            })
            .collect();
        match lost.len() {
            0 => None,
            count if count > MAX_NAMED => refuse(format!(
                "{}; and {} more",
                lost[..MAX_NAMED].join("; "),
                count - MAX_NAMED
            )),
            _ => refuse(lost.join("; ")),
        }
    }

    /// Stops a replaced source after its last calls have ended.
    fn retire(self: &Arc<Self>, running: Arc<RunningSource>) {
        let (left, upstream) = (running.left.clone(), running.upstream.clone());
        drop(running);
        let fleet = self.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = left.cancelled() => {}
                () = fleet.shared.drain.drained() => {}
            }
            upstream.stop_within(STOP_TIMEOUT).await;
            fleet.forget(&upstream);
        });
    }

    pub(crate) fn extra_upstreams(&self) -> MutexGuard<'_, Vec<Upstream>> {
        self.extra_upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, upstream: &Upstream) {
        self.extra_upstreams().retain(|known| !known.is(upstream));
    }

    fn path(&self, source: usize) -> &'static str {
        self.catalog.sources[source].path
    }

    fn refused(&self, source: usize, failure: &SourceFailure) -> RefusedSource {
        RefusedSource {
            source: self.path(source),
            cause: failure.cause,
            message: failure.message.clone(),
        }
    }
}

/// Waits until every process of a source serves; fails if one does not.
async fn first_outcome(source: &Upstream) -> Result<(), SourceFailure> {
    for mut status in source.statuses() {
        let outcome = status
            .wait_for(|status| status.attempts > 0 || status.state == State::Stopping)
            .await
            .map(|status| (status.state, status.failure.clone()));
        match outcome {
            Ok((State::Ready, _)) => {}
            Ok((_, Some(failure))) => return Err(failure),
            Ok((_, None)) | Err(_) => {
                let message = "it was stopped before it was ready";
                return Err(SourceFailure::new(SourceCause::Stopped, message));
            }
        }
    }
    Ok(())
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => {
                let mut lead = "";
                for one in refused {
                    write!(f, "{lead}`{}`: {}: {}", one.source, one.cause, one.message)?;
                    lead = "\n";
                }
                Ok(())
            }
            Self::NotRunning => f.write_str("the broker is not running"),
        }
    }
}

impl std::error::Error for ReloadError {}
