//! The sessions of legacy clients, and their streams.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::events::Log;
use crate::script::Script;
use crate::state::Handshake;

const MAX_SESSIONS: usize = 10_000;
/// Maximum number of streams of a session that can be resumed; older ones are dropped.
const MAX_STREAMS: u64 = 1000;

pub(crate) struct Session {
    /// Empty for the session that all clients share if the server mints none.
    pub(crate) id: String,
    pub(crate) handshake: Handshake,
    /// The value of `end_sessions` at its start.
    epoch: u64,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    opened: u64,
    by_number: HashMap<u64, Arc<Log>>,
    /// The stream of GET that was opened last.
    standalone: Option<Arc<Log>>,
}

impl Session {
    fn new(id: String, handshake: Handshake, epoch: u64) -> Self {
        Self {
            id,
            handshake,
            epoch,
            streams: Mutex::default(),
        }
    }

    fn has_ended(&self, script: &Script) -> bool {
        self.epoch != script.http.end_sessions
    }

    /// Opens a stream, which stays in memory until the session ends, so that it can be resumed.
    pub(crate) fn open_stream(&self) -> Arc<Log> {
        let mut streams = self.streams();
        streams.opened += 1;
        let log = Log::new(streams.opened);
        streams.by_number.insert(log.number, Arc::clone(&log));
        let dropped = log.number.saturating_sub(MAX_STREAMS);
        streams.by_number.remove(&dropped);
        log
    }

    /// Opens a stream for messages that are not part of a request.
    pub(crate) fn open_standalone(&self) -> Arc<Log> {
        let log = self.open_stream();
        self.streams().standalone = Some(Arc::clone(&log));
        log
    }

    /// The stream for messages that are not part of a request.
    pub(crate) fn standalone(&self) -> Option<Arc<Log>> {
        self.streams().standalone.clone()
    }

    /// The stream of this event id, and the number of events up to it.
    pub(crate) fn resumed(&self, last_event: &str) -> Option<(Arc<Log>, u64)> {
        let (number, read) = last_event.split_once('-')?;
        let log = self.streams().by_number.get(&number.parse().ok()?).cloned();
        Some((log?, read.parse().ok()?))
    }

    fn end(&self) {
        for log in self.streams().by_number.values() {
            log.finish();
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    shared: Arc<Session>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            shared: Arc::new(Session::new(String::new(), Handshake::needless(), 0)),
        }
    }
}

impl Sessions {
    /// Opens a session with a random id; `None` if there are too many.
    pub(crate) fn open(&self, script: &Script) -> Option<Arc<Session>> {
        let id = format!("{:016x}{:016x}", random(), random());
        let epoch = script.http.end_sessions;
        let session = Arc::new(Session::new(id.clone(), Handshake::default(), epoch));
        let mut open = self.lock();
        if open.len() >= MAX_SESSIONS {
            return None;
        }
        open.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The session of this id; ends it if the script says so.
    pub(crate) fn find(&self, id: &str, script: &Script) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        if session.has_ended(script) {
            self.end(id);
            return None;
        }
        Some(session)
    }

    /// The session of all clients.
    pub(crate) fn shared(&self) -> &Arc<Session> {
        &self.shared
    }

    /// Ends a session and its streams.
    pub(crate) fn end(&self, id: &str) {
        let ended = self.lock().remove(id);
        if let Some(session) = ended {
            session.end();
        }
    }

    /// The id of another session, or one that no session has.
    pub(crate) fn other(&self, id: &str) -> String {
        let open = self.lock();
        let other = open.keys().find(|known| *known != id).cloned();
        other.unwrap_or_else(|| format!("{:016x}", random()))
    }

    /// The sessions that exist.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let shared = std::iter::once(Arc::clone(&self.shared));
        shared.chain(self.lock().values().cloned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number from the keys that the standard library makes for its hash maps.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
