//! A caller's handle to one session of an instance; it counts the calls.

use std::fmt;
use std::sync::Arc;

use crate::connection::RawResult;
use crate::events::CallEvents;
use crate::failure::CallFailure;
use crate::instance::Instance;
use crate::server_call::{CallTime, ServerCall};
use crate::session::Session;
use crate::status::Counters;
use crate::tasks::RemoteTask;

/// A session of a supervised instance, for a call that follows at once: it may end at any time, and its
/// calls then fail instead of going to the next session. Must not be kept: it keeps the process alive.
pub struct SessionHandle {
    session: Arc<Session>,
    counters: Arc<Counters>,
}

impl SessionHandle {
    pub(super) fn new(session: Arc<Session>, counters: Arc<Counters>) -> Self {
        session.add_handle();
        Self { session, counters }
    }

    /// Returns the session with the fewest calls among those that take calls now.
    ///
    /// Of two callers that find the same session free at one time, one chooses again: a handle is taken
    /// only while its session has the number of handles that the choice was made by.
    pub fn least_busy(instances: &[Instance]) -> Option<Self> {
        if let [one] = instances {
            return one.ready();
        }
        loop {
            let ready = instances.iter().filter_map(|instance| {
                let session = instance.0.live()?;
                let handles = session.handles();
                Some((instance, session, handles))
            });
            // A call that its caller has left can occupy a server without a handle.
            let (instance, session, handles) =
                ready.min_by_key(|(_, session, handles)| session.load().max(*handles))?;
            if session.add_handle_to(handles) {
                let counters = instance.0.counters.clone();
                return Some(Self { session, counters });
            }
        }
    }

    /// Returns the negotiated revision of MCP.
    pub fn revision(&self) -> &'static str {
        self.session.revision()
    }

    /// Calls a tool; see [`Session::call`].
    #[inline]
    pub async fn call(
        &self,
        call: ServerCall<'_>,
        time: impl Into<CallTime>,
    ) -> Result<RawResult, CallFailure> {
        self.counters.add_call();
        let result = self.session.call(call, time).await;
        self.counters.note_outcome(&result);
        result
    }

    /// Waits for the result of a task that the server made of a call. Fails with [`CallFailure::Task`] if the session has
    /// ended and another one may go on.
    pub async fn follow(
        &self,
        task: &RemoteTask,
        events: Option<&CallEvents>,
        time: CallTime,
    ) -> Result<RawResult, CallFailure> {
        let result = self.session.follow(task, events, time).await;
        self.counters.note_outcome(&result);
        result
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        self.session.remove_handle();
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").finish_non_exhaustive()
    }
}
