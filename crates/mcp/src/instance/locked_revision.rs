//! A server that answers in another protocol revision than it was locked with is asked again from time to time, in a
//! session next to the one that serves. Once it has the locked revision again, another session takes over.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use broker_process::StderrTail;
use broker_wire::Era;
use tokio::time::sleep;

use super::recheck::IDLE_CHECK_INTERVAL;
use super::supervisor::{Supervisor, random_fraction};
use crate::era_hint::EraHint;
use crate::failure::SourceFailure;
use crate::opening::Opening;
use crate::session::{Session, stopped};

/// The maximum relative deviation of the time between two questions, in either direction.
const JITTER: f64 = 0.2;

impl Supervisor {
    /// Returns the session that takes over, once the server answers in the locked revision again. Its listing was
    /// compared with the lock.
    pub(super) async fn watch_for_locked_revision(&self, session: &Arc<Session>) -> Arc<Session> {
        let is_known = |revision: &&str| Era::from_revision(revision).is_some();
        let locked = self.locked.filter(is_known);
        let Some(locked) = locked.filter(|it| *it != session.revision()) else {
            return std::future::pending().await;
        };
        let timing = self.spec.timing;
        let mut wait = timing.revision_probe;
        loop {
            let strayed = 1.0 - JITTER + 2.0 * JITTER * random_fraction();
            sleep(wait.mul_f64(strayed)).await;
            wait = (2 * wait).min(timing.revision_probe_cap);
            session.pause_ended().await;
            let _permit = self.spec.concurrency.restart().await;
            match self.open_again(locked).await {
                Ok(Some(next)) => return next,
                Ok(None) => {
                    tracing::debug!(source = %self.shared.name, "the server does not answer in the locked revision");
                }
                Err(failure) => {
                    tracing::debug!(source = %self.shared.name, %failure, "the server has no session in the locked revision");
                }
            }
        }
    }

    /// Opens a session in the locked revision; `None` if the server has another one. The first session only asks, so
    /// that an answer in another revision does not replace the last lines of the process that serves.
    async fn open_again(
        &self,
        locked: &'static str,
    ) -> Result<Option<Arc<Session>>, SourceFailure> {
        let hint = Era::from_revision(locked).map_or_else(EraHint::default, EraHint::known);
        let asking = Opening {
            tail: &StderrTail::new(self.spec.redactor.clone()),
            counters: &Arc::default(),
            second_try: false,
            ..self.opening()
        };
        let asked = Session::open_supervised(&self.spec, hint, &asking).await?;
        let has_locked = asked.revision() == locked;
        asked.stop().await;
        if !has_locked {
            return Ok(None);
        }
        let opened = Session::open_supervised(&self.spec, hint, &self.opening()).await?;
        let next = Arc::new(opened);
        if next.revision() != locked {
            next.shut_down(stopped()).await;
            return Ok(None);
        }
        let compared = async {
            let snapshot = next.snapshot().await?;
            self.check_listing(&next, snapshot, false).await
        };
        match compared.await {
            Ok(()) => Ok(Some(next)),
            Err(failure) => {
                next.shut_down(failure.clone()).await;
                Err(failure)
            }
        }
    }

    /// Ends the session that another one replaces, after its calls.
    pub(super) fn retire(&self, session: Arc<Session>) {
        let stopping = self.shared.stopping.clone();
        self.tasks.spawn(async move {
            let unused = async {
                while session.has_calls() {
                    sleep(IDLE_CHECK_INTERVAL).await;
                }
            };
            stopping.run_until_cancelled(unused).await;
            session.shut_down(stopped()).await;
        });
    }
}
