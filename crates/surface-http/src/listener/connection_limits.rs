//! The limits on connections: their number, and the choice of the waiting connection that is closed when a new one
//! needs its slot. A waiting connection has not sent a request head yet.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::connection_shares::ConnectionShares;
use super::peers::HalfOpen;
use broker_core::Owner;
use broker_surface::StreamState;

/// The maximum number of connections that are served, if the process may open enough files and the budget of memory is
/// large enough.
pub(crate) const MAX_CONNECTIONS: usize = 16_384;
/// The maximum number of connections of a listener for the metrics.
const MAX_METRICS_CONNECTIONS: usize = 32;
/// The memory that one connection may need.
const CONNECTION_BYTES: usize = 64 << 10;
/// The limit of open files that permits `MAX_CONNECTIONS`.
pub const WANTED_FILES: usize = (MAX_CONNECTIONS + MAX_CONNECTIONS / REJECT_SLOT_RATIO) * 4 / 3 + 1;
/// Files that are reserved for sources and the log: at least this many, and this part of the limit.
const MIN_OTHER_FILES: usize = 36;
const OTHER_FILES: usize = 4;
/// One slot in this many is reserved for connections that are only refused.
const REJECT_SLOT_RATIO: usize = 16;
/// Maximum time that a new connection waits for the slot of one that is being closed for it.
const HANDOVER_TIMEOUT: Duration = Duration::from_millis(100);
/// The minimum time between two log lines about too many connections.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// The value in place of the number of a caller before the first request.
const NO_OWNER: u64 = u64::MAX;

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
/// The connection is a stream that needs no request to stay open.
const STREAM: u8 = 5;

/// The slots for connections. Its owner accepts the connections.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
    shares: Arc<ConnectionShares>,
    taken: Vec<Weak<Phase>>,
    sweep_at: usize,
    next: u64,
    begun: Instant,
    warned: Option<Instant>,
}

/// The slot of a connection. A connection over the limit is refused everything except health.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) phase: Arc<Phase>,
    _permit: OwnedSemaphorePermit,
}

/// The current activity of a connection: written by the connection's own task, read when a slot is
/// needed.
#[derive(Debug)]
pub(crate) struct Phase {
    now: AtomicU8,
    /// The start of its wait for a head, in milliseconds since `begun`.
    since: AtomicU64,
    begun: Instant,
    over_limit: bool,
    /// Until the first head has arrived.
    half_open: Mutex<Option<HalfOpen>>,
    /// Its number, and the caller of its latest request.
    number: u64,
    owner: Mutex<Option<Owner>>,
    /// The number of this caller, or `NO_OWNER`.
    owner_number: AtomicU64,
    shares: Arc<ConnectionShares>,
    /// Whether its caller has too many connections.
    is_refused: AtomicBool,
    /// Its end is cancelled when the connection must end, alone or with all others.
    stream: Arc<StreamState>,
}

impl ConnectionLimits {
    /// The slots of a listener for the metrics.
    pub(crate) fn for_metrics() -> Self {
        let files = MIN_OTHER_FILES + MAX_METRICS_CONNECTIONS;
        Self::new(files, usize::MAX)
    }

    /// The slots that a process with this many files and this many bytes of memory for requests may have.
    pub(crate) fn new(files: usize, memory: usize) -> Self {
        let others = MIN_OTHER_FILES.max(files / OTHER_FILES);
        let all = files.saturating_sub(others);
        let most = MAX_CONNECTIONS.min(memory / CONNECTION_BYTES);
        let refused = most.min(all) / REJECT_SLOT_RATIO;
        let served = most.min(all - refused.min(all)).max(1);
        let free = Arc::new(Semaphore::new(served));
        Self {
            shares: ConnectionShares::new(Arc::clone(&free)),
            served: free,
            refused: Arc::new(Semaphore::new(refused.max(1))),
            taken: Vec::new(),
            sweep_at: 2 * served,
            next: 0,
            begun: Instant::now(),
            warned: None,
        }
    }

    /// A slot for a new connection. If all slots are taken, the connection that has waited longest
    /// for a head is closed. If no connection waits, the result is a slot to refuse the new
    /// connection, or `None`.
    pub(crate) async fn take(
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
            number: self.next,
            owner: Mutex::new(None),
            owner_number: AtomicU64::new(NO_OWNER),
            shares: Arc::clone(&self.shares),
            is_refused: AtomicBool::new(over_limit),
            stream: Arc::new(StreamState::new(self.begun, end)),
        });
        self.next += 1;
        if self.taken.len() >= self.sweep_at {
            self.taken.retain(|phase| phase.strong_count() > 0);
        }
        self.taken.push(Arc::downgrade(&phase));
        Some(ConnectionSlot {
            phase,
            _permit: permit,
        })
    }

    /// Closes the connections that wait too long for a head, and forgets those that have ended.
    pub(crate) fn close_silent(&mut self, first: Duration, next: Duration) {
        self.taken.retain(|phase| match phase.upgrade() {
            Some(phase) => {
                phase.close_if_silent(first, next);
                true
            }
            None => false,
        });
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
        if !self.evict(over_limit) && (over_limit || !self.shares.close_idle_streams()) {
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
    pub(crate) fn warn(&mut self, what: &str) {
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
    pub(crate) fn begin_request(&self) -> bool {
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
    #[inline]
    pub(crate) fn end_request(&self) {
        self.change(BUSY, REPLYING);
    }

    /// Records that the reply is a stream that stays open without a request.
    pub(crate) fn begin_stream(&self) {
        self.change(BUSY, STREAM);
    }

    /// Records that the stream has ended.
    pub(crate) fn end_stream(&self) {
        self.change(STREAM, REPLYING);
        self.end_request();
    }

    /// Records that all of the reply was written.
    #[inline]
    pub(crate) fn written(&self) {
        if self.now.load(Ordering::Relaxed) == REPLYING {
            let since = self.begun.elapsed().as_millis() as u64;
            self.since.store(since, Ordering::Relaxed);
            self.change(REPLYING, IDLE);
        }
    }

    /// Closes the connection if it waits longer for its first head than `first`, or longer for another one than `next`.
    fn close_if_silent(&self, first: Duration, next: Duration) {
        let now = self.now.load(Ordering::Acquire);
        let since = Duration::from_millis(self.since.load(Ordering::Relaxed));
        let waited = self.begun.elapsed().saturating_sub(since);
        let is_silent = match now {
            NEW => waited >= first,
            IDLE => waited >= next,
            _ => false,
        };
        if is_silent && self.evict(now) {
            tracing::debug!("a connection that waited too long for a request is closed");
        }
    }

    /// Cancelled when the connection must end.
    pub(crate) fn end(&self) -> &CancellationToken {
        self.stream.ended()
    }

    /// The state of the stream that the connection may become.
    pub(crate) const fn stream(&self) -> &Arc<StreamState> {
        &self.stream
    }

    /// Counts the connection for the caller of its latest request. Returns whether the request may be served.
    #[inline]
    pub(crate) fn claim(self: &Arc<Self>, owner: Owner) -> bool {
        // The latest request was one of the same caller, as nearly always.
        if self.owner_number.load(Ordering::Relaxed) == owner.number() {
            return true;
        }
        let may_have = !self.over_limit && self.shares.claim(self, owner);
        self.is_refused.store(!may_have, Ordering::Relaxed);
        may_have
    }

    /// Whether requests are refused and the connection is closed behind the reply.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn owner(&self) -> Option<Owner> {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_owner(&self, owner: Option<Owner>) {
        let number = owner.map_or(NO_OWNER, Owner::number);
        self.owner_number.store(number, Ordering::Relaxed);
        let mut known = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        *known = owner;
    }

    /// Returns the end of the stream's last request, in milliseconds since `begun`, if the connection is an idle
    /// stream.
    pub(crate) fn idle_stream_since(&self) -> Option<u64> {
        let is_stream = self.now.load(Ordering::Acquire) == STREAM;
        is_stream.then(|| self.stream.idle_since()).flatten()
    }

    /// Closes the connection if it is a stream.
    pub(crate) fn close_stream(&self) -> bool {
        self.evict(STREAM)
    }

    /// Whether the connection is closed to make room for another.
    pub(crate) fn is_evicted(&self) -> bool {
        self.now.load(Ordering::Acquire) == EVICTED
    }

    fn evict(&self, before: u8) -> bool {
        let evicted = self.change(before, EVICTED);
        if evicted {
            self.stream.ended().cancel();
        }
        evicted
    }

    fn change(&self, from: u8, to: u8) -> bool {
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        self.now.compare_exchange(from, to, done, failed).is_ok()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if let Some(owner) = self.phase.owner() {
            self.phase.shares.forget(owner, self.phase.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::peers::Peers;
    use super::*;

    async fn take(limits: &mut ConnectionLimits) -> Option<ConnectionSlot> {
        let memory = broker_core::MemoryBudget::new(1 << 20);
        let loopback = "127.0.0.1".parse().unwrap();
        let (_, half_open) = Peers::new(memory, false).connect(loopback).unwrap();
        limits.take(half_open, CancellationToken::new()).await
    }

    #[test]
    fn connection_limit_leaves_files_for_other_uses() {
        for files in [0, 40, 64, 256, 1024, 4096, usize::MAX] {
            let limits = ConnectionLimits::new(files, usize::MAX);
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
        let plenty = ConnectionLimits::new(usize::MAX, usize::MAX);
        assert_eq!(plenty.served.available_permits(), MAX_CONNECTIONS);
    }

    #[tokio::test]
    async fn connection_over_the_limit_is_refused_and_then_closed() {
        let mut limits = ConnectionLimits::new(64, usize::MAX);
        let mut taken = Vec::new();
        while let Some(slot) = take(&mut limits).await {
            assert!(slot.phase.begin_request());
            taken.push(slot);
        }
        let over_limit = taken.iter().filter(|slot| slot.phase.over_limit).count();
        assert_eq!((over_limit, taken.len() - over_limit), (1, 27));
        taken.remove(0);
        assert!(
            take(&mut limits)
                .await
                .is_some_and(|slot| !slot.phase.over_limit)
        );
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
        let mut limits = ConnectionLimits::new(64, usize::MAX);
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
        assert!(
            take(&mut limits)
                .await
                .is_some_and(|slot| slot.phase.over_limit)
        );
        assert!(!open[25].is_evicted() && !open[24].is_evicted());
    }
}
