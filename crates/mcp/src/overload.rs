//! One caller's share of a source: its part of the queue, and calls that it abandoned. Pure: no I/O.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use broker_memory::{Account, Owner};
use tokio::time::Instant;

/// Callers share a queue so that one has at most this part of the places while another waits.
pub(crate) const QUEUE_PART: usize = 2;
/// Maximum time that a call whose caller left counts against the caller.
const MAX_ABANDONED_TIME: Duration = Duration::from_secs(60);

/// Why a source takes no more calls of a caller now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// The queue is full, or has the caller's part of it while others wait.
    Queue {
        /// The maximum number of calls in flight and queued together.
        limit: usize,
    },
    /// The server may still work on calls that callers left, and some are this caller's.
    Abandoned {
        /// The maximum number of such calls.
        limit: usize,
    },
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue { limit } => write!(
                f,
                "{limit} calls are in flight or queued, or this caller has its part of the queue"
            ),
            Self::Abandoned { limit } => write!(
                f,
                "the server may still work on {limit} calls whose callers left, this caller's among them"
            ),
        }
    }
}

/// A call whose caller left before its answer.
#[derive(Clone, Debug)]
pub(crate) struct AbandonedCall {
    account: Account,
    until: Instant,
}

impl AbandonedCall {
    /// Makes the record of a call that would have ended at `timeout`.
    pub(crate) fn new(account: Account, timeout: Instant) -> Self {
        let until = timeout.min(Instant::now() + MAX_ABANDONED_TIME);
        Self { account, until }
    }
}

/// The calls of one server whose callers left, by their ids.
#[derive(Debug)]
pub(crate) struct AbandonedCalls {
    calls: BTreeMap<u64, AbandonedCall>,
    limit: usize,
}

impl AbandonedCalls {
    /// Refuses calls of a caller that left some, from `limit` on.
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            calls: BTreeMap::new(),
            limit,
        }
    }

    pub(crate) fn add(&mut self, id: u64, call: AbandonedCall) {
        self.calls.insert(id, call);
    }

    /// Notes a late answer.
    pub(crate) fn answered(&mut self, id: u64) {
        self.calls.remove(&id);
    }

    /// Fails with the reason if a new call of this owner is refused.
    pub(crate) fn refuse(&mut self, owner: Owner) -> Result<(), Overload> {
        if self.calls.len() < self.limit {
            return Ok(());
        }
        let now = Instant::now();
        self.calls.retain(|_, call| call.until > now);
        let is_of_owner = |call: &AbandonedCall| call.account.owner() == owner;
        if self.calls.len() >= self.limit && self.calls.values().any(is_of_owner) {
            return Err(Overload::Abandoned { limit: self.limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_memory::MemoryBudget;

    #[tokio::test(start_paused = true)]
    async fn abandoned_calls_count_against_their_caller_until_an_answer_or_the_timeout() {
        let budget = MemoryBudget::new(1 << 20);
        let (one, other) = (budget.account(), budget.account());
        let mut calls = AbandonedCalls::new(2);
        let call = |seconds| {
            AbandonedCall::new(one.clone(), Instant::now() + Duration::from_secs(seconds))
        };
        calls.add(1, call(5));
        assert_eq!(calls.refuse(one.owner()), Ok(()));
        calls.add(2, call(3600));
        let refused = Err(Overload::Abandoned { limit: 2 });
        assert_eq!(calls.refuse(one.owner()), refused);
        assert_eq!(calls.refuse(other.owner()), Ok(()), "it left none");
        calls.answered(2);
        assert_eq!(calls.refuse(one.owner()), Ok(()), "one was answered");
        calls.add(3, call(3600));
        assert_eq!(calls.refuse(one.owner()), refused);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(
            calls.refuse(one.owner()),
            Ok(()),
            "one would have timed out"
        );
        calls.add(4, call(3600));
        assert_eq!(calls.refuse(one.owner()), refused);
        tokio::time::advance(MAX_ABANDONED_TIME).await;
        assert_eq!(calls.refuse(one.owner()), Ok(()), "after a minute");
    }
}
