//! Why the tools of a source cannot be called now, as descriptions say it.

use std::time::{Duration, SystemTime};

use broker_mcp::{State, Status};

use crate::Fleet;
use crate::sources::health::rank;

/// The time after which to call a source again that is being started.
const STARTING_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Why the tools of a source cannot be called now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    cause: &'static str,
    /// When a call may succeed; `None` if the source does not become ready by itself.
    retry_after: Option<Duration>,
}

impl Unavailable {
    /// Returns the member of a description, with its name.
    pub(crate) fn member(&self) -> String {
        let cause = self.cause;
        match self.retry_after {
            // Rounded up: an earlier call would be refused again.
            Some(wait) => {
                let seconds = wait.as_millis().div_ceil(1000).max(1);
                format!(r#""unavailable":{{"cause":"{cause}","retry_after_s":{seconds}}}"#)
            }
            None => format!(r#""unavailable":{{"cause":"{cause}"}}"#),
        }
    }

    /// Reads the status of a process; `None` if it takes calls.
    fn from_status(status: &Status, now: SystemTime) -> Option<Self> {
        let cause = status.failure.as_ref().map(|failure| failure.cause);
        let next = status
            .next_attempt
            .and_then(|at| at.duration_since(now).ok());
        let (default, retry_after) = match status.state {
            // A server over HTTP asks for a pause.
            State::Ready => ("unreachable", Some(next?)),
            // Calls wait for a start; one after a failure may fail again.
            State::Starting => (cause?.as_str(), Some(STARTING_RETRY_DELAY)),
            State::Backoff => ("unreachable", Some(next.unwrap_or_default())),
            State::Failed | State::Withdrawn => ("unreachable", None),
            State::Stopping => ("stopped", None),
        };
        Some(Self {
            cause: cause.map_or(default, |cause| cause.as_str()),
            retry_after,
        })
    }
}

impl Fleet {
    /// Returns why the tools of a source cannot be called now; `None` if they can.
    pub(crate) fn unavailable(&self, source: usize) -> Option<Unavailable> {
        if self.slots.get()?[source].load().upstream.is_usable() {
            return None;
        }
        let now = SystemTime::now();
        let mut statuses = self.statuses(source);
        statuses.sort_by_key(|status| rank(status.state));
        let unavailable = statuses.first()?;
        Unavailable::from_status(unavailable, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_mcp::SourceFailure;
    use broker_model::SourceCause;
    use std::sync::Arc;

    fn status(state: State, cause: Option<SourceCause>, next: Option<u64>) -> Status {
        let now = SystemTime::UNIX_EPOCH;
        Status {
            state,
            since: now,
            failure: cause.map(|cause| SourceFailure::new(cause, "it failed")),
            attempts: 1,
            verdicts: 1,
            next_attempt: next.map(|millis| now + Duration::from_millis(millis)),
            restarts: 0,
            counters: Arc::default(),
        }
    }

    #[test]
    fn source_that_takes_no_calls_has_a_cause_and_a_time() {
        for (state, cause, next, expected) in [
            (State::Ready, None, None, None),
            (State::Starting, None, None, None),
            (
                State::Ready,
                None,
                Some(2001),
                Some(r#"{"cause":"unreachable","retry_after_s":3}"#),
            ),
            (
                State::Starting,
                Some(SourceCause::Exited),
                None,
                Some(r#"{"cause":"exited","retry_after_s":5}"#),
            ),
            (
                State::Backoff,
                Some(SourceCause::Hung),
                Some(900),
                Some(r#"{"cause":"hung","retry_after_s":1}"#),
            ),
            (
                State::Failed,
                Some(SourceCause::NeedsAuth),
                None,
                Some(r#"{"cause":"needs_auth"}"#),
            ),
            (State::Stopping, None, None, Some(r#"{"cause":"stopped"}"#)),
        ] {
            let found =
                Unavailable::from_status(&status(state, cause, next), SystemTime::UNIX_EPOCH);
            let member = found.map(|found| found.member());
            let expected = expected.map(|value| format!(r#""unavailable":{value}"#));
            assert_eq!(member, expected, "{state:?}");
        }
    }
}
