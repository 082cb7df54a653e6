//! The events of one call that wait for their receiver, and the last progress of its server. A call without an event pays for
//! the allocation of the whole only, so that every call that may become a job can have one.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use serde_json::Number;
use tokio::time::Instant;

/// The maximum number of events of one request in a second; further ones are dropped.
const MAX_EVENTS_PER_SECOND: u32 = 50;

/// A bounded queue with many senders and one receiver.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    capacity: usize,
    state: Mutex<State<E>>,
}

#[derive(Debug)]
struct State<E> {
    waiting: VecDeque<E>,
    /// Wakes the receiver that waits for an event.
    receiver: Option<Waker>,
    /// Whether the receiver is gone.
    is_closed: bool,
    rate: TokenBucket,
    /// The highest progress of the request so far.
    highest: Option<Number>,
    /// When it was reached.
    progressed: Option<Instant>,
}

impl<E> EventQueue<E> {
    /// Makes a queue that holds at most `capacity` events, and at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                receiver: None,
                is_closed: false,
                rate: TokenBucket::default(),
                highest: None,
                progressed: None,
            }),
        }
    }

    /// Adds an event that is made only if there is room for it; false if it was dropped.
    pub(crate) fn push(&self, event: impl FnOnce() -> E, now: Instant) -> bool {
        let mut state = self.state();
        if state.is_closed || state.waiting.len() >= self.capacity || !state.rate.take(now) {
            return false;
        }
        drop(state);
        // Made without the lock, since its text is masked.
        let event = event();
        let mut state = self.state();
        if state.is_closed || state.waiting.len() >= self.capacity {
            return false;
        }
        state.waiting.push_back(event);
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        true
    }

    /// Returns the next event, once there is one. Of several receivers at one time only the last one is woken.
    pub(crate) fn recv(&self) -> impl Future<Output = E> {
        // Smaller than a wait for a notification: the future of each call of an MCP client holds it.
        poll_fn(|cx| {
            let mut state = self.state();
            match state.waiting.pop_front() {
                Some(event) => Poll::Ready(event),
                None => {
                    state.receiver = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    /// Returns the next event, if there is one.
    pub(crate) fn pop(&self) -> Option<E> {
        self.state().waiting.pop_front()
    }

    /// Drops the events that wait, and each later one.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
    }

    /// Forgets the progress of an earlier request.
    pub(crate) fn begin_request(&self) {
        let mut state = self.state();
        (state.highest, state.progressed) = (None, None);
    }

    /// Notes the progress of the request if it has grown.
    pub(crate) fn note_progress(&self, progress: &Number, now: Instant) {
        let mut state = self.state();
        if grows(state.highest.as_ref(), progress) {
            state.highest = Some(progress.clone());
            state.progressed = Some(now);
        }
    }

    /// Returns when the progress of the request last grew.
    pub(crate) fn progressed(&self) -> Option<Instant> {
        self.state().progressed
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allows [`MAX_EVENTS_PER_SECOND`] at once, and as many again in each second.
#[derive(Debug, Default)]
struct TokenBucket {
    /// The time when it was or will be full; without it, it is full.
    full_at: Option<Instant>,
}

impl TokenBucket {
    const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / MAX_EVENTS_PER_SECOND as u64);
    const BURST: Duration = Duration::from_secs(1);

    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now)) + Self::INTERVAL;
        let allowed = full_at - now <= Self::BURST;
        if allowed {
            self.full_at = Some(full_at);
        }
        allowed
    }
}

/// Whether progress has increased.
fn grows(last: Option<&Number>, now: &Number) -> bool {
    let Some(last) = last else {
        return true;
    };
    match (last.as_i128(), now.as_i128()) {
        (Some(last), Some(now)) => now > last,
        _ => now.as_f64() > last.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_limited_to_fifty_in_a_second() {
        let start = Instant::now();
        let mut bucket = TokenBucket::default();
        let taken = |bucket: &mut TokenBucket, at: Duration| {
            (0..200).filter(|_| bucket.take(start + at)).count()
        };
        assert_eq!(taken(&mut bucket, Duration::ZERO), 50);
        assert_eq!(taken(&mut bucket, Duration::from_millis(100)), 5);
        assert_eq!(taken(&mut bucket, Duration::from_secs(60)), 50);
    }

    #[test]
    fn progress_grows_only_if_it_is_higher() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        assert!(grows(None, &number("0")));
        for (last, now, expected) in [
            ("1", "2", true),
            ("1", "1", false),
            ("2", "1", false),
            ("1", "1.5", true),
            ("1.0", "1", false),
            ("9007199254740992", "9007199254740993", true),
        ] {
            assert_eq!(grows(Some(&number(last)), &number(now)), expected, "{now}");
        }
    }

    #[tokio::test]
    async fn events_are_received_in_their_order_and_the_queue_is_bounded() {
        let (queue, now) = (EventQueue::new(2), Instant::now());
        assert!(queue.push(|| 1, now) && queue.push(|| 2, now));
        assert!(
            !queue.push(|| panic!("an event without room is not made"), now),
            "the queue is full"
        );
        assert_eq!(queue.recv().await, 1);
        assert!(queue.push(|| 3, now));
        assert_eq!(
            (queue.recv().await, queue.pop(), queue.pop()),
            (2, Some(3), None)
        );
        let (received, ()) = tokio::join!(queue.recv(), async {
            tokio::task::yield_now().await;
            assert!(queue.push(|| 4, now), "its receiver waits");
        });
        assert_eq!(received, 4);
        assert!(queue.push(|| 5, now));
        queue.close();
        assert!(
            !queue.push(|| 6, now) && queue.pop().is_none(),
            "the receiver is gone"
        );
    }

    #[test]
    fn progress_of_a_request_begins_again_with_the_next_one() {
        let (queue, start) = (EventQueue::<()>::new(1), Instant::now());
        let later = start + Duration::from_secs(1);
        queue.note_progress(&5.into(), start);
        queue.note_progress(&5.into(), later);
        assert_eq!(queue.progressed(), Some(start), "it did not grow");
        queue.begin_request();
        assert_eq!(queue.progressed(), None);
        queue.note_progress(&1.into(), later);
        assert_eq!(queue.progressed(), Some(later));
    }
}
