//! The limits on connections: their number, and which connection that waits for a request head is
//! closed when a new one needs its slot.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::peers::HalfOpen;

/// The maximum number of connections that are served, if the process may open enough files.
const MAX_CONNECTIONS: usize = 1024;
/// Files that are reserved for sources and the log: at least this many, and this part of the limit.
const MIN_OTHER_FILES: usize = 36;
const OTHER_FILES: usize = 4;
/// One slot in this many is reserved for connections that are only refused.
const REJECT_SLOT_RATIO: usize = 16;
/// Maximum time that a new connection waits for the slot of one that is being closed for it.
const HANDOVER_TIMEOUT: Duration = Duration::from_millis(100);
/// The minimum time between two log lines about too many connections.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// No complete head has arrived yet.
const NEW: u8 = 0;
/// A request is being worked on.
const BUSY: u8 = 1;
/// The reply is ready and not yet written.
const REPLYING: u8 = 2;
/// The connection waits for the next head.
const IDLE: u8 = 3;
/// The connection is being closed for another one.
const EVICTED: u8 = 4;

/// The slots for connections. Its owner accepts the connections.
#[derive(Debug)]
pub(super) struct ConnectionLimits {
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
    taken: Vec<Weak<Phase>>,
    sweep_at: usize,
    begun: Instant,
    warned: Option<Instant>,
}

/// The slot of a connection. A connection over the limit is refused everything except health.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    pub(super) over_limit: bool,
    pub(super) phase: Arc<Phase>,
    _permit: OwnedSemaphorePermit,
}

/// The current activity of a connection: written by the connection's own task, read when a slot is
/// needed.
#[derive(Debug)]
pub(super) struct Phase {
    now: AtomicU8,
    /// Milliseconds since `begun` at which it began to wait for a head.
    since: AtomicU64,
    begun: Instant,
    over_limit: bool,
    /// Until the first head has arrived.
    half_open: Mutex<Option<HalfOpen>>,
    /// Cancelled when the connection must end, alone or with all others.
    end: CancellationToken,
}

impl ConnectionLimits {
    /// The number of slots that a process with this many files may have.
    pub(super) fn new(files: usize) -> Self {
        let others = MIN_OTHER_FILES.max(files / OTHER_FILES);
        let all = files.saturating_sub(others);
        let refused = MAX_CONNECTIONS.min(all) / REJECT_SLOT_RATIO;
        let served = MAX_CONNECTIONS.min(all - refused.min(all));
        Self {
            served: Arc::new(Semaphore::new(served.max(1))),
            refused: Arc::new(Semaphore::new(refused.max(1))),
            taken: Vec::new(),
            sweep_at: 2 * MAX_CONNECTIONS,
            begun: Instant::now(),
            warned: None,
        }
    }

    /// A slot for a new connection. If all slots are taken, the connection that has waited longest
    /// for a head is closed. If no connection waits, the result is a slot to refuse the new
    /// connection, or `None`.
    pub(super) async fn take(
        &mut self,
        half_open: HalfOpen,
        end: CancellationToken,
    ) -> Option<ConnectionSlot> {
        let (over_limit, permit) = match self.permit(false).await {
            Some(permit) => (false, permit),
            None => {
                self.warn("too many connections; more are refused");
                (true, self.permit(true).await?)
            }
        };
        let phase = Arc::new(Phase {
            now: AtomicU8::new(NEW),
            since: AtomicU64::new(self.begun.elapsed().as_millis() as u64),
            begun: self.begun,
            over_limit,
            half_open: Mutex::new(Some(half_open)),
            end,
        });
        if self.taken.len() >= self.sweep_at {
            self.taken.retain(|phase| phase.strong_count() > 0);
        }
        self.taken.push(Arc::downgrade(&phase));
        Some(ConnectionSlot {
            over_limit,
            phase,
            _permit: permit,
        })
    }

    async fn permit(&mut self, over_limit: bool) -> Option<OwnedSemaphorePermit> {
        let slots = if over_limit {
            &self.refused
        } else {
            &self.served
        };
        if let Ok(permit) = slots.clone().try_acquire_owned() {
            return Some(permit);
        }
        let free = timeout(HANDOVER_TIMEOUT, slots.clone().acquire_owned());
        if !self.evict(over_limit) {
            return None;
        }
        self.warn(
            "too many connections; connections that wait for a request are closed for new ones",
        );
        free.await.ok()?.ok()
    }

    /// Closes the connection that has waited longest for a head: of those that never sent one, else
    /// of those that wait for another.
    fn evict(&self, over_limit: bool) -> bool {
        let taken = self.taken.iter().filter_map(Weak::upgrade);
        let waiting = taken.filter_map(|phase| {
            let now = phase.now.load(Ordering::Acquire);
            let waits = phase.over_limit == over_limit && matches!(now, NEW | IDLE);
            waits.then(|| (now, phase.since.load(Ordering::Relaxed), phase))
        });
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(now, since, _)| (*now, *since));
        // A connection whose head has just arrived stays.
        waiting.into_iter().any(|(now, _, phase)| phase.evict(now))
    }

    /// Logs a warning, at limited frequency.
    pub(super) fn warn(&mut self, what: &str) {
        let now = Instant::now();
        if self
            .warned
            .is_none_or(|warned| now - warned >= WARN_INTERVAL)
        {
            self.warned = Some(now);
            tracing::warn!("{what}");
        }
    }
}

impl Phase {
    /// Records that the head of a request has arrived. False if the connection is being closed.
    pub(super) fn begin_request(&self) -> bool {
        let before = self.now.load(Ordering::Relaxed);
        if before == NEW {
            let mut half_open = self
                .half_open
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            drop(half_open.take());
        }
        before != EVICTED && self.change(before, BUSY)
    }

    /// Records that the reply is ready.
    pub(super) fn end_request(&self) {
        self.change(BUSY, REPLYING);
    }

    /// Records that all of the reply was written.
    pub(super) fn written(&self) {
        if self.now.load(Ordering::Relaxed) == REPLYING {
            let since = self.begun.elapsed().as_millis() as u64;
            self.since.store(since, Ordering::Relaxed);
            self.change(REPLYING, IDLE);
        }
    }

    /// Cancelled when the connection must end.
    pub(super) fn end(&self) -> &CancellationToken {
        &self.end
    }

    /// Whether the connection is closed to make room for another.
    pub(super) fn is_evicted(&self) -> bool {
        self.now.load(Ordering::Acquire) == EVICTED
    }

    fn evict(&self, before: u8) -> bool {
        let evicted = self.change(before, EVICTED);
        if evicted {
            self.end.cancel();
        }
        evicted
    }

    fn change(&self, from: u8, to: u8) -> bool {
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        self.now.compare_exchange(from, to, done, failed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::peers::Peers;
    use super::*;

    async fn take(limits: &mut ConnectionLimits) -> Option<ConnectionSlot> {
        let memory = crate::core::MemoryBudget::new(1 << 20);
        let loopback = "127.0.0.1".parse().unwrap();
        let (_, half_open) = Peers::new(memory, false).connect(loopback).unwrap();
        limits.take(half_open, CancellationToken::new()).await
    }

    #[test]
    fn connection_limit_leaves_files_for_other_uses() {
        for files in [0, 40, 64, 256, 1024, 4096, usize::MAX] {
            let limits = ConnectionLimits::new(files);
            let (served, refused) = (
                limits.served.available_permits(),
                limits.refused.available_permits(),
            );
            assert!(served >= 1 && refused >= 1);
            assert!(served <= MAX_CONNECTIONS, "{served} of {files} files");
            if files >= 64 {
                assert!(served + refused + MIN_OTHER_FILES <= files, "{files}");
            }
        }
        let plenty = ConnectionLimits::new(usize::MAX);
        assert_eq!(plenty.served.available_permits(), MAX_CONNECTIONS);
    }

    #[tokio::test]
    async fn connection_over_the_limit_is_refused_and_then_closed() {
        let mut limits = ConnectionLimits::new(64);
        let mut taken = Vec::new();
        while let Some(slot) = take(&mut limits).await {
            assert!(slot.phase.begin_request());
            taken.push(slot);
        }
        let over_limit = taken.iter().filter(|slot| slot.over_limit).count();
        assert_eq!((over_limit, taken.len() - over_limit), (1, 27));
        taken.remove(0);
        assert!(take(&mut limits).await.is_some_and(|slot| !slot.over_limit));
    }

    /// Holds a slot like a connection task, until it must end.
    async fn hold(limits: &mut ConnectionLimits) -> Arc<Phase> {
        let slot = take(limits).await.unwrap();
        let phase = Arc::clone(&slot.phase);
        tokio::spawn(async move {
            let end = slot.phase.end().clone();
            end.cancelled().await;
            drop(slot);
        });
        phase
    }

    #[tokio::test]
    async fn connection_waiting_longest_for_a_head_is_closed_at_the_limit() {
        let mut limits = ConnectionLimits::new(64);
        let mut open = Vec::new();
        for n in 0..27 {
            open.push(hold(&mut limits).await);
            open[n].since.store(100 - n as u64, Ordering::Relaxed);
        }
        // The oldest is idle, the next is busy, one never sent a head.
        for at in [26, 25, 24] {
            assert!(open[at].begin_request());
        }
        open[26].end_request();
        open[26].written();
        open[24].end_request();
        assert!(!hold(&mut limits).await.over_limit);
        assert!(open[23].is_evicted() && !open[23].begin_request());
        assert_eq!(open.iter().filter(|one| one.is_evicted()).count(), 1);
        // If all have sent a head, an idle one is closed; a busy one never is.
        for phase in &open[..23] {
            assert!(phase.begin_request());
        }
        let last = hold(&mut limits).await;
        assert!(!last.over_limit);
        let newest: Vec<_> = limits.taken.iter().filter_map(Weak::upgrade).collect();
        for phase in &newest {
            phase.begin_request();
        }
        assert!(take(&mut limits).await.is_some_and(|slot| slot.over_limit));
        assert!(!open[25].is_evicted() && !open[24].is_evicted());
    }
}
