//! Decides whether a message of a server that names no request belongs to one call: only if no other call was
//! in flight since that call began, and no other caller used the server a moment before. Requests of the broker itself
//! do not count, since they concern no other caller. Pure: no I/O.

use std::collections::BTreeSet;
use std::time::Duration;

use broker_memory::Owner;
use tokio::time::Instant;

/// The maximum number of abandoned calls that are known by their ids. After more, no message belongs to a
/// call until the connection ends.
const MAX_ABANDONED: usize = 1024;
/// The time after another caller's last use during which a message may still concern that use.
const AFTERMATH: Duration = Duration::from_secs(5);

/// The calls that a server may be working on.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Calls that wait for an answer.
    waiting: usize,
    /// The one that was alone since it began.
    only: Option<(u64, Owner)>,
    /// The caller that used the server last, and the last use by any other.
    last: Option<(Owner, Instant)>,
    before: Option<(Owner, Instant)>,
    /// Calls whose answers are not awaited: they were cancelled or timed out.
    abandoned: BTreeSet<u64>,
    too_many_abandoned: bool,
}

impl InFlight {
    /// Records a call that was given to the writer.
    pub(super) fn begin(&mut self, id: u64, owner: Owner) {
        let is_alone = self.waiting == 0 && self.abandoned.is_empty() && !self.too_many_abandoned;
        self.only = is_alone.then_some((id, owner));
        self.waiting += 1;
        self.used(owner);
    }

    /// Records the end of a call that was answered or removed.
    pub(super) fn end(&mut self, owner: Owner) {
        self.waiting -= 1;
        self.used(owner);
        // If one was alone, it is the one that ended.
        self.only = None;
    }

    /// Records a removed call that the server may still work on.
    pub(super) fn abandon(&mut self, id: u64) {
        if self.abandoned.len() < MAX_ABANDONED {
            self.abandoned.insert(id);
        } else {
            self.too_many_abandoned = true;
        }
        self.only = None;
    }

    /// Records the answer to an abandoned call.
    pub(super) fn answered_late(&mut self, id: u64) {
        self.abandoned.remove(&id);
    }

    /// Returns the call that was alone since it began, if no other caller used the server within the last seconds.
    pub(super) fn only(&self) -> Option<u64> {
        let (id, owner) = self.only?;
        let other = [self.last, self.before].into_iter().flatten();
        let is_recent = |at: Instant| at.elapsed() < AFTERMATH;
        let has_recent = other
            .filter(|(other, _)| !other.is_like(owner))
            .any(|(_, at)| is_recent(at));
        (!has_recent).then_some(id)
    }

    fn used(&mut self, owner: Owner) {
        let now = Instant::now();
        match self.last {
            Some((last, _)) if !last.is_like(owner) => self.before = self.last,
            _ => {}
        }
        self.last = Some((owner, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_memory::MemoryBudget;

    const ONE: Owner = Owner::BROKER;

    #[test]
    fn request_is_alone_only_if_nothing_else_was_in_flight_since_it_began() {
        let mut table = InFlight::default();
        table.begin(1, ONE);
        assert_eq!(table.only(), Some(1));
        table.begin(2, ONE);
        assert_eq!(table.only(), None);
        table.end(ONE);
        assert_eq!(table.only(), None, "another one was in flight with it");
        table.end(ONE);
        table.begin(3, ONE);
        assert_eq!(table.only(), Some(3));
        table.end(ONE);
        assert_eq!(table.only(), None);
    }

    #[test]
    fn abandoned_request_counts_as_in_flight_until_its_late_answer() {
        let mut table = InFlight::default();
        table.begin(1, ONE);
        table.end(ONE);
        table.abandon(1);
        table.begin(2, ONE);
        assert_eq!(table.only(), None);
        table.answered_late(1);
        assert_eq!(table.only(), None, "the first was in flight with it");
        table.end(ONE);
        table.begin(3, ONE);
        assert_eq!(table.only(), Some(3));
        for id in 10..=10 + MAX_ABANDONED as u64 {
            table.abandon(id);
        }
        for id in 10..=10 + MAX_ABANDONED as u64 {
            table.answered_late(id);
        }
        table.end(ONE);
        table.begin(4, ONE);
        assert_eq!(table.only(), None, "one of them has an unknown id");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_on_this_machine_are_one_caller_for_messages() {
        let budget = MemoryBudget::new(1 << 20);
        let (one, other) = (budget.local_account(), budget.local_account());
        assert_ne!(one.owner(), other.owner(), "each has a share");
        let mut table = InFlight::default();
        table.begin(1, other.owner());
        table.end(other.owner());
        table.begin(2, one.owner());
        assert_eq!(table.only(), Some(2));
        table.end(one.owner());
        table.begin(3, budget.account().owner());
        assert_eq!(
            table.only(),
            None,
            "a caller with a credential is another one"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn message_after_the_use_of_another_caller_belongs_to_no_call() {
        let budget = MemoryBudget::new(1 << 20);
        let (one, other) = (budget.account(), budget.account());
        let mut table = InFlight::default();
        table.begin(1, other.owner());
        assert_eq!(table.only(), Some(1));
        table.end(other.owner());
        table.begin(2, one.owner());
        assert_eq!(table.only(), None, "the other caller has just used it");
        table.end(one.owner());
        tokio::time::advance(Duration::from_secs(4)).await;
        table.begin(3, one.owner());
        assert_eq!(table.only(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(table.only(), Some(3));
        table.end(one.owner());
        table.begin(4, other.owner());
        assert_eq!(table.only(), None);
        tokio::time::advance(AFTERMATH).await;
        assert_eq!(table.only(), Some(4));
    }
}
