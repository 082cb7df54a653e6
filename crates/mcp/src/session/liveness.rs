//! Whether the server of a session is alive: timeouts of its calls, and the request that it must answer.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use broker_memory::{Account, Owner};
use broker_wire::Era;
use tokio::time::{Instant, sleep_until};

use super::Session;
use crate::connection::RequestKind;
use crate::failure::RequestError;
use crate::request;
use crate::server_call::CallTime;
use crate::timeout_streak::{Suspicion, TimeoutStreak};

/// Maximum time for a silent server to answer the broker.
pub(crate) const HANG_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

impl Session {
    /// Counts a timeout of a call, if the server had most of the tool's time: a caller may wait for less.
    pub(super) fn note_timeout(&self, time: CallTime, account: Option<&Account>) {
        if time.first() * 2 < time.after_progress() {
            return;
        }
        let owner = account.map_or(Owner::BROKER, Account::owner);
        self.timeouts()
            .timed_out(self.reads(), owner, Instant::now());
        self.timed_out.notify_one();
    }

    /// Returns when timeouts in a row suffice to ask the server whether it hangs.
    pub(crate) async fn suspected(&self) -> Suspicion {
        loop {
            let suspicion = self.timeouts().suspicion(self.reads());
            let due = async {
                match suspicion {
                    Some(suspicion) => {
                        sleep_until(suspicion.due).await;
                        suspicion
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                suspicion = due => return suspicion,
                () = self.timed_out.notified() => {}
            }
        }
    }

    /// Forgets the timeouts of a suspicion: the server is alive.
    pub(crate) fn forget(&self, suspicion: &Suspicion) {
        self.timeouts().forget(suspicion);
    }

    fn timeouts(&self) -> MutexGuard<'_, TimeoutStreak> {
        // Whole values are written, so a panic elsewhere leaves a usable state.
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that changes whenever bytes of the server arrive.
    pub(crate) fn reads(&self) -> u64 {
        self.link.reads()
    }

    /// Whether calls are in progress.
    pub(crate) fn has_calls(&self) -> bool {
        self.load() > 0 || self.handles() > 0
    }

    /// Asks the server for any answer; whether there is none in time.
    pub(crate) async fn ignores_probe(&self) -> bool {
        let kind = RequestKind::Internal;
        let answered = match self.era() {
            Era::Legacy => {
                let (method, line) = (request::PING, request::ping);
                self.link
                    .request(kind, method, line, HANG_PROBE_TIMEOUT)
                    .await
            }
            Era::Modern => {
                let line = |id| request::discover(id, &self.spec.extensions);
                self.link
                    .request(kind, request::DISCOVER, line, HANG_PROBE_TIMEOUT)
                    .await
            }
        };
        matches!(answered, Err(RequestError::Timeout { .. }))
    }
}
