//! The queue in front of the thread of a store. It has a bound: a caller waits for a place.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::error::StoreError;

use super::request::Request;

/// The maximum number of requests that wait.
const MAX_WAITING: usize = 1_024;

/// A request with its place, which is free again once the request is answered.
pub(super) struct Waiting {
    pub(super) request: Box<dyn Request>,
    _place: OwnedSemaphorePermit,
}

/// The queue.
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    places: std::sync::Arc<Semaphore>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Waiting>,
    is_closing: bool,
    /// The thread has ended.
    has_ended: bool,
    /// The reason why the store answers no more.
    failed: Option<String>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            places: std::sync::Arc::new(Semaphore::new(MAX_WAITING)),
            ended: Notify::new(),
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl Queue {
    /// Adds a request, once there is a place for it.
    pub(super) async fn push(&self, request: Box<dyn Request>) -> Result<(), StoreError> {
        let places = std::sync::Arc::clone(&self.places);
        let Ok(place) = places.acquire_owned().await else {
            return Err(self.error());
        };
        let mut state = self.lock();
        if state.is_closing || state.has_ended {
            drop(state);
            return Err(self.error());
        }
        state.requests.push_back(Waiting {
            request,
            _place: place,
        });
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Takes up to `max` requests. Waits for the first one, at most for the time. Returns `None` when the queue is closed and
    /// empty.
    pub(super) fn take(&self, max: usize, timeout: Duration) -> Option<Vec<Waiting>> {
        let mut state = self.lock();
        if state.requests.is_empty() && !state.is_closing {
            let is_idle = |state: &mut State| state.requests.is_empty() && !state.is_closing;
            let waited = self.wake.wait_timeout_while(state, timeout, is_idle);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if state.requests.is_empty() && state.is_closing {
            return None;
        }
        let number = state.requests.len().min(max);
        Some(state.requests.drain(..number).collect())
    }

    /// Returns the number of requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().requests.len()
    }

    /// Takes no more requests. The thread answers those that wait, and ends.
    pub(super) fn close(&self) {
        self.lock().is_closing = true;
        self.wake.notify_one();
    }

    /// Waits until the thread has ended.
    pub(super) async fn closed(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.lock().has_ended {
                return;
            }
            ended.await;
        }
    }

    /// Says that the thread has ended. Requests that wait are dropped, and their callers ask for the reason.
    pub(super) fn end(&self) {
        let waiting = {
            let mut state = self.lock();
            state.has_ended = true;
            std::mem::take(&mut state.requests)
        };
        self.places.close();
        drop(waiting);
        self.ended.notify_waiters();
    }

    /// Stores the reason why the store answers no more. The first one is kept.
    pub(super) fn fail(&self, reason: &str) {
        self.lock().failed.get_or_insert_with(|| reason.to_owned());
    }

    /// Whether the store has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    /// Returns the reason why the store answers no more.
    pub(super) fn failed(&self) -> Option<String> {
        let state = self.lock();
        let ended = || "it is closed".to_owned();
        state
            .failed
            .clone()
            .or_else(|| (state.has_ended || state.is_closing).then(ended))
    }

    /// Returns the error of a request that got no answer.
    pub(super) fn error(&self) -> StoreError {
        let reason = self
            .failed()
            .unwrap_or_else(|| "its thread has failed; start the broker again".to_owned());
        StoreError::Unavailable { reason }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
