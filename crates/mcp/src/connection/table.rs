//! Who waits for which answer, and who waits for a place at the server. Pure: it knows no pipe.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::progress::ProgressSink;

/// A raw result as the server gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResult {
    /// JSON in UTF-8.
    pub result: Bytes,
    /// Whether it came as other bytes, which had to be replaced to make it text.
    pub repaired: bool,
}

/// What became of a request. `begun` tells whether a byte of it may have left.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The raw result.
    Result(RawResult),
    /// The raw error.
    Error(Bytes),
    /// An answer that cannot be used.
    Broken(Cow<'static, str>),
    /// An answer over the limit.
    TooLarge,
    /// An answer for which there is no room in memory.
    NoRoom,
    /// It was given up at the waiter's wish.
    Cancelled { begun: bool },
    /// The connection is over.
    Gone { begun: bool },
}

/// What kind of request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call: takes one of the places at the server, is cancelled when nobody waits for it.
    Call,
    /// A request of our own: goes out at once, is cancelled when nobody waits for it.
    Own,
    /// A request that stays open until either side ends it: goes out at once.
    Subscription,
    /// A request that opens the connection: goes out at once and is never cancelled.
    Opening,
}

/// A request before it is sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) line: Bytes,
    pub(crate) kind: Kind,
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// A request that was handed on for writing.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) kind: Kind,
    progress: Option<ProgressSink>,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// The table of one connection.
#[derive(Debug)]
pub(super) struct Table {
    waiting: BTreeMap<u64, PendingRequest>,
    queue: VecDeque<Request>,
    calls: usize,
    max_calls: usize,
}

impl Table {
    /// At most `max_calls` calls are at the server at one time.
    pub(super) fn new(max_calls: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            queue: VecDeque::new(),
            calls: 0,
            max_calls,
        }
    }

    /// Takes a request in: the line to write now, or nothing while it queues.
    pub(super) fn admit(&mut self, request: Request) -> Option<(u64, Bytes)> {
        if request.kind == Kind::Call {
            if self.calls >= self.max_calls {
                self.queue.push_back(request);
                return None;
            }
            self.calls += 1;
        }
        let Request {
            id,
            line,
            kind,
            progress,
            reply,
        } = request;
        let waiting = PendingRequest {
            kind,
            progress,
            reply,
        };
        self.waiting.insert(id, waiting);
        Some((id, line))
    }

    /// The next queued call that has a place now.
    pub(super) fn next_queued(&mut self) -> Option<(u64, Bytes)> {
        if self.calls >= self.max_calls {
            return None;
        }
        let request = self.queue.pop_front()?;
        self.admit(request)
    }

    /// Takes out who waits for `id`; a call's place is free from then on.
    pub(super) fn remove(&mut self, id: u64) -> Option<PendingRequest> {
        let waiting = self.waiting.remove(&id)?;
        if waiting.kind == Kind::Call {
            self.calls -= 1;
        }
        Some(waiting)
    }

    /// What waits for `id`.
    pub(super) fn kind(&self, id: u64) -> Option<Kind> {
        self.waiting.get(&id).map(|waiting| waiting.kind)
    }

    /// The sink for the progress of a request that was sent.
    pub(super) fn progress(&self, id: u64) -> Option<&ProgressSink> {
        self.waiting.get(&id)?.progress.as_ref()
    }

    /// Takes a request out of the queue.
    pub(super) fn remove_queued(&mut self, id: u64) -> Option<Request> {
        let at = self.queue.iter().position(|request| request.id == id)?;
        self.queue.remove(at)
    }

    /// Everybody who still waits: at the server, then in the queue.
    pub(super) fn clear(&mut self) -> (BTreeMap<u64, PendingRequest>, VecDeque<Request>) {
        self.calls = 0;
        (
            std::mem::take(&mut self.waiting),
            std::mem::take(&mut self.queue),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64, kind: Kind) -> Request {
        let (reply, _) = oneshot::channel();
        Request {
            id,
            line: Bytes::from(id.to_string()),
            kind,
            progress: None,
            reply,
        }
    }

    #[test]
    fn calls_queue_in_order_and_own_requests_do_not() {
        let mut table = Table::new(2);
        assert!(table.admit(request(1, Kind::Call)).is_some());
        assert!(table.admit(request(2, Kind::Call)).is_some());
        assert!(table.admit(request(3, Kind::Call)).is_none());
        assert!(table.admit(request(4, Kind::Call)).is_none());
        assert!(table.admit(request(5, Kind::Own)).is_some());
        assert!(table.next_queued().is_none());
        assert!(table.remove(5).is_some());
        assert!(
            table.next_queued().is_none(),
            "an own request held no place"
        );
        assert!(table.remove(1).is_some());
        assert!(table.remove(1).is_none());
        assert_eq!(table.next_queued().map(|(id, _)| id), Some(3));
        assert!(table.remove_queued(4).is_some());
        assert!(table.remove(2).is_some());
        assert!(table.next_queued().is_none());
        let (waiting, queue) = table.clear();
        assert_eq!(
            (waiting.into_keys().collect::<Vec<_>>(), queue.len()),
            (vec![3], 0)
        );
    }
}
