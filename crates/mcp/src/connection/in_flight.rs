//! Decides whether a message of a server that names no request belongs to one call: only if no other call was
//! in flight since that call began. Requests of the broker itself do not count, since they concern no other
//! caller. Pure: no I/O.

use std::collections::BTreeSet;

/// The maximum number of abandoned calls that are known by their ids. After more, no message belongs to a
/// call until the connection ends.
const MAX_ABANDONED: usize = 1024;

/// The calls that a server may be working on.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Calls that wait for an answer.
    waiting: usize,
    /// The one that was alone since it began.
    only: Option<u64>,
    /// Calls whose answers are not awaited: they were cancelled or timed out.
    abandoned: BTreeSet<u64>,
    too_many_abandoned: bool,
}

impl InFlight {
    /// A call was given to the writer.
    pub(super) fn begin(&mut self, id: u64) {
        let is_alone = self.waiting == 0 && self.abandoned.is_empty() && !self.too_many_abandoned;
        self.only = is_alone.then_some(id);
        self.waiting += 1;
    }

    /// A call was answered or removed.
    pub(super) fn end(&mut self) {
        self.waiting -= 1;
        // If one was alone, it is the one that ended.
        self.only = None;
    }

    /// A removed call may still be worked on.
    pub(super) fn abandon(&mut self, id: u64) {
        if self.abandoned.len() < MAX_ABANDONED {
            self.abandoned.insert(id);
        } else {
            self.too_many_abandoned = true;
        }
        self.only = None;
    }

    /// An abandoned call was answered.
    pub(super) fn answered_late(&mut self, id: u64) {
        self.abandoned.remove(&id);
    }

    /// The call that was alone since it began.
    pub(super) fn only(&self) -> Option<u64> {
        self.only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_alone_only_if_nothing_else_was_in_flight_since_it_began() {
        let mut table = InFlight::default();
        table.begin(1);
        assert_eq!(table.only(), Some(1));
        table.begin(2);
        assert_eq!(table.only(), None);
        table.end();
        assert_eq!(table.only(), None, "another one was in flight with it");
        table.end();
        table.begin(3);
        assert_eq!(table.only(), Some(3));
        table.end();
        assert_eq!(table.only(), None);
    }

    #[test]
    fn abandoned_request_counts_as_in_flight_until_its_late_answer() {
        let mut table = InFlight::default();
        table.begin(1);
        table.end();
        table.abandon(1);
        table.begin(2);
        assert_eq!(table.only(), None);
        table.answered_late(1);
        assert_eq!(table.only(), None, "the first was in flight with it");
        table.end();
        table.begin(3);
        assert_eq!(table.only(), Some(3));
        for id in 10..=10 + MAX_ABANDONED as u64 {
            table.abandon(id);
        }
        for id in 10..=10 + MAX_ABANDONED as u64 {
            table.answered_late(id);
        }
        table.end();
        table.begin(4);
        assert_eq!(table.only(), None, "one of them has an unknown id");
    }
}
