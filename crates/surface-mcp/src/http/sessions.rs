//! The table of legacy sessions: their number, in all and for each owner, and their end.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::session::{Session, SessionUse};
use super::session_id::SessionId;
use broker_core::{Broker, Identity};
use broker_surface::CallerShare;

/// The maximum number of sessions of all owners.
pub(super) const MAX_SESSIONS: usize = 10_000;
/// The maximum number of sessions of one identity, and of all loopback addresses together.
const MAX_OWN_SESSIONS: usize = 1_000;
/// The maximum number of sessions of one peer address, if callers are not authenticated.
const MAX_ADDRESS_SESSIONS: usize = 100;
/// The pause between two searches for idle sessions, as a part of the time that they may be idle, and its
/// limits.
const SWEEP_PARTS: u32 = 8;
const SWEEP_PAUSES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

/// Returns the maximum number of sessions of an owner.
const fn limit_of(owner: &CallerShare) -> usize {
    match owner {
        CallerShare::Subject(_) | CallerShare::Loopback => MAX_OWN_SESSIONS,
        CallerShare::Address(_) => MAX_ADDRESS_SESSIONS,
    }
}

/// Why no session is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// All places of the table are taken by sessions with open requests or streams.
    Table,
    /// All sessions of the owner have open requests or streams.
    Share { limit: usize },
}

/// The sessions of a broker, and the streams that stay open without an answer.
#[derive(Debug)]
pub(super) struct Sessions<B>(Mutex<Table<B>>);

impl<B> Default for Sessions<B> {
    fn default() -> Self {
        Self(Mutex::new(Table {
            sessions: HashMap::new(),
            shares: Shares::default(),
            streams: Shares::default(),
        }))
    }
}

/// An open stream of an owner; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct OwnedStream<B: Broker> {
    sessions: Arc<Sessions<B>>,
    owner: CallerShare,
}

impl<B: Broker> Drop for OwnedStream<B> {
    fn drop(&mut self) {
        self.sessions.lock().streams.remove(&self.owner);
    }
}

#[derive(Debug)]
struct Table<B> {
    sessions: HashMap<SessionId, Arc<Session<B>>>,
    shares: Shares,
    streams: Shares,
}

/// The number of each owner's sessions or streams, without an entry for zero.
#[derive(Debug, Default)]
struct Shares(HashMap<CallerShare, usize>);

impl Shares {
    /// Counts one more, if the owner may have it.
    fn add(&mut self, owner: &CallerShare) -> bool {
        let share = self.0.entry(owner.clone()).or_default();
        let has_room = *share < limit_of(owner);
        *share += usize::from(has_room);
        has_room
    }

    /// Whether the owner may have one more.
    fn has_room(&self, owner: &CallerShare) -> bool {
        self.0
            .get(owner)
            .is_none_or(|share| *share < limit_of(owner))
    }

    /// Counts one less.
    fn remove(&mut self, owner: &CallerShare) {
        if let Some(share) = self.0.get_mut(owner) {
            *share -= 1;
            if *share == 0 {
                self.0.remove(owner);
            }
        }
    }
}

impl<B: Broker> Sessions<B> {
    /// Adds a session. If its owner has as many as it may have, the owner's longest idle session ends for it. If the
    /// table is full, the longest idle session of the owner with the most sessions ends.
    pub(super) fn add(&self, session: Arc<Session<B>>) -> Result<(), Full> {
        let mut table = self.lock();
        let owner = session.owner();
        if table.sessions.len() >= MAX_SESSIONS && table.shares.has_room(owner) {
            let idle = table.longest_idle_of_most().ok_or(Full::Table)?;
            table.remove(idle, Session::end);
            tracing::debug!(session = ?idle, "an idle session ended for another caller's: the table was full");
        }
        if !table.shares.add(owner) {
            let limit = limit_of(owner);
            let idle = table.longest_idle(owner).ok_or(Full::Share { limit })?;
            table.remove(idle, Session::end);
            table.shares.add(owner);
            tracing::debug!(session = ?idle, "an idle session ended for a new one of its owner");
        }
        table.sessions.insert(session.id(), session);
        Ok(())
    }

    /// Counts a stream of an owner. An owner may have as many streams as sessions.
    pub(super) fn begin_stream(
        self: &Arc<Self>,
        owner: CallerShare,
    ) -> Result<OwnedStream<B>, Full> {
        if !self.lock().streams.add(&owner) {
            let limit = limit_of(&owner);
            return Err(Full::Share { limit });
        }
        Ok(OwnedStream {
            sessions: Arc::clone(self),
            owner,
        })
    }

    /// The session of this id, if it belongs to the caller. It does not end as idle while it is used.
    pub(super) fn use_session(&self, id: SessionId, identity: &Identity) -> Option<SessionUse<B>> {
        let table = self.lock();
        let session = table.sessions.get(&id)?;
        session
            .identity()
            .is_same_caller(identity)
            .then(|| SessionUse::new(Arc::clone(session)))
    }

    /// Ends a session when its caller loses the right to call. Calls that were sent run to their end.
    pub(super) fn end_with_right(self: &Arc<Self>, session: Arc<Session<B>>) {
        let Some(revoked) = session.identity().revocation() else {
            return;
        };
        let (revoked, sessions) = (revoked.revoked.clone(), Arc::clone(self));
        tokio::spawn(async move {
            tokio::select! {
                () = session.ended().cancelled() => {}
                () = revoked.cancelled() => sessions.revoke(session.id()),
            }
        });
    }

    /// Ends a session and leaves its requests to core: core discards or cancels them.
    fn revoke(&self, id: SessionId) {
        self.lock().remove(id, Session::revoke);
        tracing::debug!(session = ?id, "a session ended with the right of its caller");
    }

    /// Ends a session and cancels its requests.
    pub(super) fn end(&self, id: SessionId) {
        self.lock().remove(id, Session::end);
    }

    /// Ends all sessions that were idle for `time`.
    fn end_idle(&self, time: Duration) {
        let mut table = self.lock();
        let now = Instant::now();
        let idle: Vec<_> = table
            .sessions
            .values()
            .filter(|session| {
                session
                    .idle_since()
                    .is_some_and(|since| now - since >= time)
            })
            .map(|session| session.id())
            .collect();
        for id in &idle {
            table.remove(*id, Session::end);
        }
        if !idle.is_empty() {
            tracing::debug!(count = idle.len(), "idle sessions ended");
        }
        // Memory of a flood is returned.
        if table.sessions.capacity() > 2 * table.sessions.len() {
            table.sessions.shrink_to_fit();
        }
    }

    /// Ends idle sessions for as long as it runs. `idle` gives the time that a session may be idle; another
    /// time takes effect after one pause.
    pub(super) async fn keep_swept(&self, idle: impl Fn() -> Duration) {
        loop {
            let time = idle();
            let pause = time / SWEEP_PARTS;
            sleep(pause.clamp(*SWEEP_PAUSES.start(), *SWEEP_PAUSES.end())).await;
            self.end_idle(time);
        }
    }

    /// The number of sessions.
    pub(super) fn count(&self) -> usize {
        self.lock().sessions.len()
    }

    /// The number of streams.
    pub(super) fn stream_count(&self) -> usize {
        self.lock().streams.0.values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, Table<B>> {
        // The table is valid after a panic: every change of it is made in one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Broker> Table<B> {
    /// The session of `owner` that has had neither a request nor a stream for the longest time.
    fn longest_idle(&self, owner: &CallerShare) -> Option<SessionId> {
        let own = self.sessions.values();
        own.filter(|session| session.owner() == owner)
            .filter_map(|session| Some((session.idle_since()?, session.id())))
            .min_by_key(|(since, _)| *since)
            .map(|(_, id)| id)
    }

    /// The same of the owner with the most sessions that has an idle one.
    fn longest_idle_of_most(&self) -> Option<SessionId> {
        let share = |session: &Session<B>| self.shares.0.get(session.owner()).copied();
        let sessions = self.sessions.values();
        sessions
            .filter_map(|session| {
                let since = session.idle_since()?;
                Some((share(session), Reverse(since), session.id()))
            })
            .max_by_key(|(share, since, _)| (*share, *since))
            .map(|(_, _, id)| id)
    }

    fn remove(&mut self, id: SessionId, end: impl FnOnce(&Session<B>)) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        end(&session);
        self.shares.remove(session.owner());
    }
}
