//! The state of a stream of a client that stays open without a request: whether it is idle, and the signal that ends it
//! when its place is given to another caller.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The value for a stream with an open request.
const BUSY: u64 = u64::MAX;

/// The state of the stream on one connection. The stream writes it, and the table of connections reads it.
#[derive(Debug)]
pub struct StreamState {
    begun: Instant,
    /// The end of the last request, in milliseconds since `begun`, or `BUSY`.
    idle_since: AtomicU64,
    ended: CancellationToken,
}

impl StreamState {
    /// Returns the state of an idle stream. `ended` ends the stream. Times of several streams compare if they have the
    /// same `begun`.
    pub fn new(begun: Instant, ended: CancellationToken) -> Self {
        Self {
            begun,
            idle_since: AtomicU64::new(begun.elapsed().as_millis() as u64),
            ended,
        }
    }

    /// Records whether the stream has open requests.
    #[inline]
    pub fn record(&self, has_requests: bool) {
        let was_busy = self.idle_since.load(Ordering::Relaxed) == BUSY;
        match has_requests {
            true if !was_busy => self.idle_since.store(BUSY, Ordering::Relaxed),
            false if was_busy => {
                let now = self.begun.elapsed().as_millis() as u64;
                self.idle_since.store(now, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Returns the end of its last request, in milliseconds since `begun`; `None` if it has an open one.
    #[inline]
    pub fn idle_since(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Relaxed)).filter(|since| *since != BUSY)
    }

    /// Cancelled when the stream must end.
    #[inline]
    pub const fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stream_is_idle_since_its_last_request_ended() {
        let state = StreamState::new(Instant::now(), CancellationToken::new());
        assert_eq!(state.idle_since(), Some(0));
        tokio::time::advance(Duration::from_secs(1)).await;
        state.record(false);
        assert_eq!(state.idle_since(), Some(0), "it had no request");
        state.record(true);
        assert_eq!(state.idle_since(), None);
        state.record(false);
        assert_eq!(state.idle_since(), Some(1000));
    }
}
