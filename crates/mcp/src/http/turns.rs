//! The turns of calls to a server over HTTP: at most `max_in_flight` are under way, the others wait, in turns by
//! caller.

use std::sync::{Mutex, MutexGuard, PoisonError};

use broker_memory::{Owner, TurnQueue};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::Counters;
use crate::overload::{AbandonedCall, AbandonedCalls, Overload, QUEUE_PART};

/// Permits for calls, and the calls that wait for one.
#[derive(Debug)]
pub(super) struct CallTurns {
    state: Mutex<State>,
    max_in_flight: usize,
    /// The maximum number of calls in flight and queued together.
    limit: usize,
    /// Notified when no call is under way.
    over: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    queue: TurnQueue<Waiting>,
    next: u64,
    abandoned: AbandonedCalls,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    /// Gets the permit, or is dropped to refuse the call.
    turn: oneshot::Sender<()>,
}

/// The permit of a call; given on when it is dropped.
#[derive(Debug)]
pub(super) struct CallPermit<'a>(&'a CallTurns);

/// A place in the queue; given up when it is dropped.
struct Place<'a> {
    turns: &'a CallTurns,
    owner: Owner,
    number: u64,
    turn: oneshot::Receiver<()>,
}

impl CallTurns {
    /// Makes permits for `max_in_flight` calls, and `places` for calls that wait.
    pub(super) fn new(max_in_flight: usize, places: usize) -> Self {
        Self {
            state: Mutex::new(State {
                free: max_in_flight,
                queue: TurnQueue::new(places, QUEUE_PART),
                next: 0,
                abandoned: AbandonedCalls::new(max_in_flight),
            }),
            max_in_flight,
            limit: max_in_flight + places,
            over: Notify::new(),
        }
    }

    /// Waits for the turn of a call.
    pub(super) async fn permit(
        &self,
        owner: Owner,
        counters: &Counters,
    ) -> Result<CallPermit<'_>, Overload> {
        let Some(mut place) = self.enter(owner)? else {
            return Ok(CallPermit(self));
        };
        let queued = Instant::now();
        match (&mut place.turn).await {
            Ok(()) => {
                counters.add_waited(queued.elapsed());
                Ok(CallPermit(self))
            }
            Err(_) => Err(Overload::Queue { limit: self.limit }),
        }
    }

    /// Takes a permit, or a place in the queue.
    fn enter(&self, owner: Owner) -> Result<Option<Place<'_>>, Overload> {
        let mut state = self.lock();
        state.abandoned.refuse(owner)?;
        if state.free > 0 {
            state.free -= 1;
            return Ok(None);
        }
        let (turn, receiver) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        let pushed = state.queue.push(owner, Waiting { number, turn });
        drop(state);
        match pushed {
            // Its call is refused by the drop.
            Ok(dropped) => drop(dropped),
            Err(_) => return Err(Overload::Queue { limit: self.limit }),
        }
        Ok(Some(Place {
            turns: self,
            owner,
            number,
            turn: receiver,
        }))
    }

    /// Counts a call whose caller left.
    pub(super) fn abandon(&self, id: u64, call: AbandonedCall) {
        self.lock().abandoned.add(id, call);
    }

    fn give_on(&self) {
        let mut state = self.lock();
        while let Some(next) = state.queue.pop() {
            // Its call may have ended meanwhile.
            if next.turn.send(()).is_ok() {
                return;
            }
        }
        state.free += 1;
        if state.free == self.max_in_flight {
            self.over.notify_waiters();
        }
    }

    /// Returns when no call is under way.
    pub(super) async fn are_over(&self) {
        loop {
            let over = self.over.notified();
            if self.lock().free == self.max_in_flight {
                return;
            }
            over.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.give_on();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let is_it = |waiting: &Waiting| waiting.number == self.number;
        let was_waiting = self.turns.lock().queue.remove(self.owner, is_it).is_some();
        // A turn that came and that was not taken goes to the next call.
        if !was_waiting && self.turn.try_recv().is_ok() {
            self.turns.give_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_memory::MemoryBudget;
    use std::pin::pin;
    use std::time::Duration;
    use tokio::time::timeout;

    /// Whether a future is still not ready, once it was polled.
    async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
        timeout(Duration::ZERO, future).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn call_gets_the_turn_of_its_caller() {
        let budget = MemoryBudget::new(1 << 20);
        let (many, few) = (budget.account(), budget.account());
        let (turns, counters) = (CallTurns::new(1, 4), Counters::default());
        let first = turns.permit(many.owner(), &counters).await.unwrap();
        let mut flood: Vec<_> = (0..4)
            .map(|_| Box::pin(turns.permit(many.owner(), &counters)))
            .collect();
        for waiting in &mut flood {
            assert!(is_pending(waiting).await);
        }
        let full = Overload::Queue { limit: 5 };
        assert_eq!(
            turns.permit(many.owner(), &counters).await.unwrap_err(),
            full
        );
        // Another caller gets the place of the last one, and the turn after the next.
        let mut other = pin!(turns.permit(few.owner(), &counters));
        assert!(is_pending(&mut other).await);
        assert_eq!(flood.pop().unwrap().await.unwrap_err(), full);
        drop(first);
        let second = flood.remove(0).await.unwrap();
        assert!(is_pending(&mut other).await);
        drop(second);
        assert!(other.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn turn_that_is_not_taken_goes_to_the_next_call() {
        let (turns, counters) = (CallTurns::new(1, 4), Counters::default());
        let first = turns.permit(Owner::BROKER, &counters).await.unwrap();
        let mut second = Box::pin(turns.permit(Owner::BROKER, &counters));
        let mut third = Box::pin(turns.permit(Owner::BROKER, &counters));
        assert!(is_pending(&mut second).await && is_pending(&mut third).await);
        drop(first);
        drop(second);
        drop(third.await.unwrap());
        let mut left = Box::pin(turns.permit(Owner::BROKER, &counters));
        drop(left.as_mut().await.unwrap());
        assert_eq!(turns.lock().free, 1);
    }
}
