//! Finds a server that hangs: after timeouts in a row without a byte of it, the server is asked for a sign of life once no
//! call is within its time any more. A silent server is started again.

use std::sync::Arc;
use std::time::Duration;

use broker_model::SourceCause;
use tokio::time::sleep;

use super::recheck::IDLE_CHECK_INTERVAL;
use super::supervisor::Supervisor;
use crate::failure::SourceFailure;
use crate::session::{HANG_PROBE_TIMEOUT, Session};
use crate::status::State;
use crate::timeout_streak::Suspicion;

/// The time without a byte after which new calls wait for the end of the others, so that a server under load is asked too.
const MAX_BUSY_TIME: Duration = Duration::from_secs(300);

impl Supervisor {
    /// Returns when the server hangs.
    pub(super) async fn watch_for_hang(&self, session: &Arc<Session>) -> SourceFailure {
        loop {
            let suspicion = session.suspected().await;
            if self.is_silent(session, &suspicion).await {
                self.shared.counters.add_hang();
                return hung();
            }
            session.forget(&suspicion);
            self.resume_calls(session);
        }
    }

    /// Waits until no call is within its time, then asks the server. Whether it sent no byte until the end. No call is sent
    /// while the server is asked, so that its restart ends none.
    async fn is_silent(&self, session: &Arc<Session>, suspicion: &Suspicion) -> bool {
        loop {
            if session.reads() != suspicion.reads {
                return false;
            }
            let is_overdue = suspicion.first.elapsed() >= MAX_BUSY_TIME;
            if is_overdue || !session.has_calls() {
                self.pause_calls();
                if !session.has_calls() {
                    break;
                }
                if !is_overdue {
                    self.resume_calls(session);
                }
            }
            sleep(IDLE_CHECK_INTERVAL).await;
        }
        tracing::info!(source = %self.shared.name, "calls time out and the server is silent; the broker asks it for a sign of life");
        session.ignores_probe().await && session.reads() == suspicion.reads
    }

    /// Lets new calls wait.
    fn pause_calls(&self) {
        if self.shared.status.borrow().state != State::Ready {
            return;
        }
        self.shared.set_live(None);
        let message =
            "calls time out and the server is silent; the broker asks it for a sign of life";
        let failure = SourceFailure::new(SourceCause::Hung, message).public();
        self.shared.update(|status| {
            status.state = State::Starting;
            status.failure = Some(failure);
        });
    }

    /// Sends calls again, unless another reason refuses them.
    fn resume_calls(&self, session: &Arc<Session>) {
        let is_paused = {
            let status = self.shared.status.borrow();
            let cause = status.failure.as_ref().map(|failure| failure.cause);
            status.state == State::Starting && cause == Some(SourceCause::Hung)
        };
        if !is_paused {
            return;
        }
        self.shared.set_live(Some(session.clone()));
        self.shared.update(|status| {
            status.state = State::Ready;
            status.failure = None;
        });
    }
}

fn hung() -> SourceFailure {
    let message = format!(
        "calls timed out one after the other, and the server sent no byte since and no answer to the broker within {} s",
        HANG_PROBE_TIMEOUT.as_secs()
    );
    SourceFailure::new(SourceCause::Hung, message).public()
}
