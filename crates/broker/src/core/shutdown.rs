//! Counts calls in flight and refuses new ones once the broker goes down. One word holds both facts,
//! so that no call slips in between the last look at the count and the stop.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

const STOPPING: usize = 1;
const ONE_CALL: usize = 2;

/// How many calls are in flight, and whether others may begin.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    word: AtomicUsize,
    empty: Notify,
}

/// A call in flight; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket<'a>(&'a InFlight);

impl InFlight {
    /// Counts a call in; `None` once the broker goes down.
    pub(super) fn enter(&self) -> Option<Ticket<'_>> {
        let before = self.word.fetch_add(ONE_CALL, Ordering::AcqRel);
        let ticket = Ticket(self);
        (before & STOPPING == 0).then_some(ticket)
    }

    /// No further call may begin.
    pub(super) fn stop(&self) {
        if self.word.fetch_or(STOPPING, Ordering::AcqRel) < ONE_CALL {
            self.empty.notify_waiters();
        }
    }

    /// Whether [`InFlight::stop`] was said.
    pub(super) fn is_stopping(&self) -> bool {
        self.word.load(Ordering::Acquire) & STOPPING != 0
    }

    /// Waits until it was stopped and no call is in flight.
    pub(super) async fn drained(&self) {
        loop {
            let mut wake = std::pin::pin!(self.empty.notified());
            // Registered before the look, so that a notification in between is not lost.
            wake.as_mut().enable();
            if self.word.load(Ordering::Acquire) == STOPPING {
                return;
            }
            wake.await;
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.0.word.fetch_sub(ONE_CALL, Ordering::AcqRel) == ONE_CALL | STOPPING {
            self.0.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn drained_when_the_last_call_ends_and_none_begins_after() {
        let calls = Arc::new(InFlight::default());
        let first = calls.enter().unwrap();
        let second = calls.enter().unwrap();
        calls.stop();
        assert!(calls.is_stopping());
        assert!(calls.enter().is_none());
        let waiter = tokio::spawn({
            let calls = calls.clone();
            async move { calls.drained().await }
        });
        drop(first);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(second);
        tokio::time::timeout(std::time::Duration::from_secs(10), waiter)
            .await
            .unwrap()
            .unwrap();
    }
}
