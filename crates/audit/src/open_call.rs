//! A call with a place for its end line.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::AuditError;
use crate::facts::{CallEndFacts, CallFacts, CallOutcome};
use crate::queue::{CallLine, Place, Waiting};
use crate::shared::Shared;

/// A call whose end line has its place in the queue and its room in the file. One that is dropped without an end has an
/// end line with the outcome `abandoned` if it has a begin line, else none.
pub struct OpenCall {
    shared: Arc<Shared>,
    facts: Option<Arc<CallFacts>>,
    /// The number of the begin line.
    begin: Option<u64>,
    room: u64,
    lane: u64,
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall")
            .field("begin", &self.begin)
            .finish_non_exhaustive()
    }
}

impl OpenCall {
    pub(crate) const fn new(
        shared: Arc<Shared>,
        facts: Arc<CallFacts>,
        begin: Option<u64>,
        room: u64,
        lane: u64,
    ) -> Self {
        Self {
            shared,
            facts: Some(facts),
            begin,
            room,
            lane,
        }
    }

    /// Returns the number of the begin line, if there is one.
    pub const fn begin(&self) -> Option<u64> {
        self.begin
    }

    /// Hands the end line to the writer.
    pub(crate) fn finish(mut self, end: CallEndFacts) {
        self.hand_over(end);
    }

    fn hand_over(&mut self, end: CallEndFacts) {
        let Some(facts) = self.facts.take() else {
            return;
        };
        let line = CallLine::End {
            facts,
            begin: self.begin,
            end,
            room: self.room,
        };
        let (at, since) = self.shared.now();
        let mut state = self.shared.lock();
        state.queue.push(self.lane, Waiting { line, at, since });
        self.shared.wake(state, false);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if self.facts.is_none() {
            return;
        }
        if self.begin.is_none() {
            self.facts = None;
            self.shared.lock().queue.release(self.room);
            return;
        }
        self.hand_over(abandoned(true));
    }
}

/// A request for a place that waits for the writer.
pub(crate) struct PendingCall {
    pub(crate) shared: Arc<Shared>,
    pub(crate) facts: Arc<CallFacts>,
    pub(crate) reply: oneshot::Receiver<Place>,
    pub(crate) has_begin: bool,
    pub(crate) room: u64,
    pub(crate) lane: u64,
}

impl PendingCall {
    /// Waits for the writer.
    pub(crate) async fn wait(mut self) -> Result<OpenCall, AuditError> {
        let place = (&mut self.reply).await;
        self.open(place.unwrap_or(Err(AuditError::Closed)))
    }

    fn open(&self, place: Place) -> Result<OpenCall, AuditError> {
        let begin = place?;
        Ok(OpenCall::new(
            Arc::clone(&self.shared),
            Arc::clone(&self.facts),
            self.has_begin.then_some(begin),
            self.room,
            self.lane,
        ))
    }
}

impl Drop for PendingCall {
    /// Ends a call whose caller left before its begin line was written: it was not sent.
    fn drop(&mut self) {
        self.reply.close();
        if let Ok(place) = self.reply.try_recv()
            && let Ok(mut call) = self.open(place)
            && self.has_begin
        {
            call.hand_over(abandoned(false));
        }
    }
}

/// Returns the end of a call that was dropped.
pub(crate) const fn abandoned(sent: bool) -> CallEndFacts {
    CallEndFacts {
        outcome: CallOutcome::Abandoned,
        code: None,
        result: None,
        elapsed: Duration::ZERO,
        sent,
        maybe_executed: sent,
        job: None,
    }
}
