//! The open streams, by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_wire::ClientLine;
use tokio::sync::mpsc;

use super::super::session_id::SessionId;
use broker_core::{CallTrace, Identity};

/// The open streams. Their number is limited by the shares of their owners.
#[derive(Debug, Default)]
pub(in crate::http) struct SseTable(Mutex<HashMap<SessionId, Entry>>);

#[derive(Debug)]
struct Entry {
    /// The caller that opened the stream.
    identity: Identity,
    lines: mpsc::Sender<SseLine>,
}

/// A line of a client.
#[derive(Debug)]
pub(super) struct SseLine {
    pub(super) line: ClientLine,
    /// The trace context of the request that brought it.
    pub(super) trace: Option<Box<CallTrace>>,
}

/// The place of a stream in the table. Dropping it removes the stream from the table.
#[derive(Debug)]
pub(super) struct SsePlace {
    table: Arc<SseTable>,
    id: SessionId,
}

impl Drop for SsePlace {
    fn drop(&mut self) {
        self.table.lock().remove(&self.id);
    }
}

impl SseTable {
    /// Adds a stream that this caller opened.
    pub(super) fn add(
        self: &Arc<Self>,
        id: SessionId,
        identity: Identity,
        lines: mpsc::Sender<SseLine>,
    ) -> SsePlace {
        self.lock().insert(id, Entry { identity, lines });
        SsePlace {
            table: Arc::clone(self),
            id,
        }
    }

    /// Returns the sender to a stream for messages of a caller. A stream of another caller is unknown. A stream that
    /// the same caller opened with other rights is unknown too, since the calls of a stream have the rights at its
    /// opening.
    pub(super) fn lines(
        &self,
        id: SessionId,
        identity: &Identity,
    ) -> Option<mpsc::Sender<SseLine>> {
        let table = self.lock();
        let entry = table.get(&id)?;
        let is_same = entry.identity.subject() == identity.subject()
            && entry.identity.has_same_right(identity);
        is_same.then(|| entry.lines.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        // Each change is one operation on the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
