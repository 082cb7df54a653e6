//! The session id of a link to a legacy server, and a source's pace of opening sessions in place of lost ones.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::header::HeaderValue;
use tokio::time::Instant;

/// Minimum time between two sessions of a source that follow lost ones.
const MIN_REOPEN_INTERVAL: Duration = Duration::from_secs(10);

/// The session id of a link; empty before the handshake, and for a server without sessions.
#[derive(Debug, Default)]
pub(super) struct SessionId(RwLock<Option<HeaderValue>>);

impl SessionId {
    /// Returns the current id.
    pub(super) fn get(&self) -> Option<HeaderValue> {
        // Whole values are written, so a panic elsewhere leaves a usable state.
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Keeps the id of an answer to `initialize`, if it is the first one.
    pub(super) fn open(&self, id: HeaderValue) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        current.get_or_insert(id);
    }

    /// Replaces the id of a request by the id of its answer. An id that is no longer the current one is not replaced:
    /// another answer was faster.
    pub(super) fn rotate(&self, sent: &HeaderValue, named: HeaderValue) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref() == Some(sent) {
            *current = Some(named);
        }
    }
}

/// A source's pace of opening sessions in place of lost ones. All of its links share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReopenPace(Arc<Mutex<Option<Instant>>>);

impl ReopenPace {
    /// Reserves the time of the next session, and returns the wait until then.
    pub(crate) fn reserve(&self, now: Instant) -> Duration {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = last.map_or(now, |last| now.max(last + MIN_REOPEN_INTERVAL));
        *last = Some(next);
        next - now
    }

    /// Records that the next session is opened later than it was reserved.
    pub(crate) fn postpone(&self, until: Instant) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(Some(until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_is_rotated_only_from_the_current_one() {
        let id = HeaderValue::from_static;
        let session = SessionId::default();
        session.rotate(&id("a"), id("b"));
        assert_eq!(session.get(), None);
        session.open(id("a"));
        session.open(id("other"));
        session.rotate(&id("a"), id("b"));
        session.rotate(&id("a"), id("c"));
        assert_eq!(session.get(), Some(id("b")));
    }

    #[test]
    fn lost_sessions_are_followed_by_one_in_ten_seconds() {
        let (pace, start) = (ReopenPace::default(), Instant::now());
        let reserve = |second| pace.reserve(start + Duration::from_secs(second)).as_secs();
        assert_eq!(reserve(0), 0);
        assert_eq!(reserve(1), 9, "of another instance of the source");
        assert_eq!(reserve(1), 19);
        assert_eq!(reserve(40), 0);
        pace.postpone(start + Duration::from_secs(48));
        assert_eq!(reserve(49), 9);
    }
}
