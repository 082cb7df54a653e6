//! A handle by which a caller uses one session of a source; it counts the calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::connection::RawResult;
use crate::failure::CallFailure;
use crate::session::{Session, ToolCall};
use crate::status::Counters;

/// A session of a supervised source, for a call that follows at once: it may end at any time, and its
/// calls then fail instead of going to the next session. Must not be kept: it keeps the process alive.
pub struct SessionHandle {
    session: Arc<Session>,
    counters: Arc<Counters>,
}

impl SessionHandle {
    pub(super) fn new(session: Arc<Session>, counters: Arc<Counters>) -> Self {
        Self { session, counters }
    }

    /// The number of its calls, including waiting ones.
    pub fn load(&self) -> usize {
        self.session.load()
    }

    /// Calls a tool; see [`Session::call`].
    pub async fn call(
        &self,
        call: ToolCall<'_>,
        timeout: Duration,
    ) -> Result<RawResult, CallFailure> {
        self.counters.add_call();
        let result = self.session.call(call, timeout).await;
        if result.is_err() {
            self.counters.add_failure();
        }
        result
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").finish_non_exhaustive()
    }
}
