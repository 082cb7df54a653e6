//! Another config in force, whole or not at all. Changed sources start beside those that run, are compared
//! with the lock without effect, and take over together; a source that leaves finishes its calls first.

use broker_mcp::{Settings, SourceFailure, SourceSpec, State, Verdict};
use broker_model::SourceCause;
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::Inner;
use crate::sources::lifecycle::STOP;
use crate::sources::seat::{Place, Role, Seat};
use crate::sources::setup::Prepared;
use crate::sources::upstream::Upstream;
use crate::sources::verdict::Reviewed;

/// Withdrawals that a refusal names.
const NAMED: usize = 3;

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// The sources that have another process now, by path.
    pub replaced: Vec<&'static str>,
}

/// Why nothing was changed.
#[derive(Clone, Debug)]
pub enum ReloadError {
    /// These sources would not have served what the running ones do.
    Refused(Vec<Refused>),
    /// The broker has not started its sources, or is going down.
    NotRunning,
}

/// A source that could not take over.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Its path.
    pub source: &'static str,
    /// Why, from the closed list.
    pub cause: SourceCause,
    /// The same for people.
    pub message: String,
}

/// A source on trial.
struct Newcomer {
    source: usize,
    seat: Arc<Seat>,
}

/// What a reload sets for a source that keeps its process.
struct Kept {
    source: usize,
    settings: Settings,
    reviewed: Reviewed,
}

impl Inner {
    pub(crate) async fn reload(
        self: &Arc<Self>,
        mut prepared: Prepared,
    ) -> Result<Reloaded, ReloadError> {
        let _turn = self.reloading.lock().await;
        let seats = self.seats.get().ok_or(ReloadError::NotRunning)?;
        let (mut kept, mut newcomers) = (Vec::new(), Vec::new());
        for (source, (mut launch, reviewed)) in prepared.sources.drain(..).enumerate() {
            let seat = seats[source].load_full();
            if let Some(running) = &seat.launch {
                launch.timing = running.timing;
                if running.starts_the_same(&launch) {
                    kept.push(Kept {
                        source,
                        settings: Settings::from(&launch),
                        reviewed,
                    });
                    continue;
                }
            }
            newcomers.push(self.invite(source, &seat.upstream, launch, reviewed)?);
        }
        let mut refused = Vec::new();
        for newcomer in &newcomers {
            if let Err(failure) = first_outcome(&newcomer.seat.upstream).await {
                refused.push(self.refused(newcomer.source, &failure));
            }
        }
        let outcome = if self.drain.is_closing() {
            Err(ReloadError::NotRunning)
        } else if !refused.is_empty() {
            Err(ReloadError::Refused(refused))
        } else {
            // A verdict may be under way, and is waited for.
            let inner = self.clone();
            let moved = tokio::task::spawn_blocking(move || {
                let outcome = inner.take_over(&newcomers, kept, prepared);
                (newcomers, outcome)
            });
            match moved.await {
                Ok((back, outcome)) => {
                    newcomers = back;
                    outcome
                }
                Err(_) => return Err(ReloadError::NotRunning),
            }
        };
        match outcome {
            Ok(left) => {
                newcomers
                    .iter()
                    .for_each(|new| self.forget(&new.seat.upstream));
                let replaced = newcomers.iter().map(|new| self.path(new.source)).collect();
                left.into_iter().for_each(|seat| self.see_off(seat));
                Ok(Reloaded { replaced })
            }
            Err(error) => {
                for newcomer in &newcomers {
                    newcomer.seat.upstream.stop_within(STOP).await;
                    self.forget(&newcomer.seat.upstream);
                }
                Err(error)
            }
        }
    }

    /// Starts a source on trial.
    fn invite(
        &self,
        source: usize,
        beside: &Upstream,
        launch: SourceSpec,
        reviewed: Reviewed,
    ) -> Result<Newcomer, ReloadError> {
        let role = Role::Trial(Box::new(reviewed));
        let mut guests = self.guests();
        if self.drain.is_closing() {
            return Err(ReloadError::NotRunning);
        }
        let seat = self.seat(source, launch, role, Some(beside));
        guests.push(seat.upstream.clone());
        Ok(Newcomer { source, seat })
    }

    /// Everything changes here, or nothing. Gives the seats that were left.
    fn take_over(
        &self,
        newcomers: &[Newcomer],
        kept: Vec<Kept>,
        prepared: Prepared,
    ) -> Result<Vec<Arc<Seat>>, ReloadError> {
        let seats = self.seats.get().ok_or(ReloadError::NotRunning)?;
        let mut places: Vec<_> = newcomers
            .iter()
            .map(|new| new.seat.standing.place())
            .collect();
        let refused: Vec<_> = newcomers
            .iter()
            .zip(&places)
            .filter_map(|(new, place)| self.objection(new.source, place, &prepared))
            .collect();
        if !refused.is_empty() {
            return Err(ReloadError::Refused(refused));
        }
        let mut left = Vec::new();
        for (new, place) in newcomers.iter().zip(&mut places) {
            let Role::Trial(reviewed) = std::mem::replace(&mut place.role, Role::Serving) else {
                continue;
            };
            let before = seats[new.source].load_full();
            before.standing.place().role = Role::Left;
            self.guests().push(before.upstream.clone());
            // The seat first, then what is served: a call that sees a tool come back must not reach
            // the one for which it was withdrawn.
            seats[new.source].store(new.seat.clone());
            self.verdicts.set_reviewed(new.source, *reviewed);
            if let Some(judged) = place.judged() {
                self.verdicts.accept(new.source, judged);
            }
            left.push(before);
        }
        for same in kept {
            let seat = seats[same.source].load();
            seat.upstream.set(same.settings);
            let place = seat.standing.place();
            self.verdicts.set_reviewed(same.source, same.reviewed);
            // The findings so far are judged again under the new config.
            if let Some(judged) = place.judged() {
                self.verdicts.accept(same.source, judged);
            }
        }
        self.verdicts.hide(prepared.hidden);
        self.settings.store(Arc::new(prepared.tools));
        self.memory.set_limit(prepared.memory_bytes);
        Ok(left)
    }

    /// Why a source on trial may not take over: it would take away what is served.
    fn objection(&self, source: usize, place: &Place, prepared: &Prepared) -> Option<Refused> {
        let refuse = |message: String| {
            let failure = SourceFailure::new(SourceCause::DriftSource, message);
            Some(self.refused(source, &failure))
        };
        let judged = place.judged().filter(|_| place.is_complete());
        let Some(judged) = judged else {
            return refuse("it was not compared with the lock".to_owned());
        };
        if let Verdict::WithdrawSource { message } = &judged.verdict {
            return refuse(message.clone());
        }
        let view = self.verdicts.view.load();
        let Role::Trial(reviewed) = &place.role else {
            return refuse("it was not compared with the lock".to_owned());
        };
        let withdrawn = judged.withdrawn_by(reviewed.text_drift);
        let lost: Vec<String> = withdrawn
            .iter()
            .filter(|(tool, _)| {
                !prepared.hidden.contains(tool)
                    && !view.is_hidden(**tool)
                    && view.withdrawn(**tool).is_none()
            })
            .map(|(tool, why)| {
                let path = self.catalog.entry(self.catalog.tool(*tool).entry).path;
                format!("`{path}` would be withdrawn: {}", why.reason.logged)
            })
            .collect();
        match lost.len() {
            0 => None,
            count if count > NAMED => refuse(format!(
                "{}; and {} more",
                lost[..NAMED].join("; "),
                count - NAMED
            )),
            _ => refuse(lost.join("; ")),
        }
    }

    /// Lets the last calls of a seat end, then stops who sat there.
    fn see_off(self: &Arc<Self>, seat: Arc<Seat>) {
        let (left, upstream) = (seat.left.clone(), seat.upstream.clone());
        drop(seat);
        let inner = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = left.cancelled() => {}
                () = inner.drain.drained() => {}
            }
            upstream.stop_within(STOP).await;
            inner.forget(&upstream);
        });
    }

    pub(crate) fn guests(&self) -> MutexGuard<'_, Vec<Upstream>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, guest: &Upstream) {
        self.guests().retain(|known| !known.is(guest));
    }

    fn path(&self, source: usize) -> &'static str {
        self.catalog.sources[source].path
    }

    fn refused(&self, source: usize, failure: &SourceFailure) -> Refused {
        Refused {
            source: self.path(source),
            cause: failure.cause,
            message: failure.message.clone(),
        }
    }
}

/// Waits until every process of a source serves, or why one does not.
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
