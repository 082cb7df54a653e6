//! The requests that wait for an answer, and the calls that wait until fewer are in flight. Pure: no
//! I/O.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use broker_memory::{Owner, TurnQueue};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::in_flight::InFlight;
use crate::events::RequestEvents;
use crate::overload::{AbandonedCall, AbandonedCalls, Overload, QUEUE_PART};

/// A raw result as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResult {
    /// JSON in UTF-8.
    pub result: Bytes,
    /// Whether it had invalid UTF-8 that was replaced.
    pub repaired: bool,
    /// Whether it is the result of a call, with `"isError": true` at its top level.
    pub is_error: bool,
}

/// The outcome of a request. `begun` says whether a byte of it may have been written.
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
    /// The memory budget has no room for the answer.
    OutOfMemory,
    /// It was cancelled by its caller.
    Cancelled { begun: bool },
    /// The call was not written, since the source takes no more calls of the caller.
    Overloaded(Overload),
    /// The connection has ended.
    Gone { begun: bool },
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A call: counts as in flight, and is cancelled when its caller is gone.
    Call,
    /// An internal request: sent at once, and cancelled when its caller is gone.
    Internal,
    /// A subscription: sent at once, and open until either side ends it.
    Subscription,
    /// A request of the handshake: sent at once and never cancelled.
    Opening,
}

/// A request before it is sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) line: Bytes,
    pub(crate) kind: RequestKind,
    /// Whose request it is.
    pub(crate) owner: Owner,
    pub(crate) events: Option<RequestEvents>,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// A call that waits until fewer are in flight.
#[derive(Debug)]
struct QueuedCall {
    request: Request,
    since: Instant,
}

/// A request that was given to the writer.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) kind: RequestKind,
    owner: Owner,
    events: Option<RequestEvents>,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// The table of one connection.
#[derive(Debug)]
pub(super) struct Table {
    waiting: BTreeMap<u64, PendingRequest>,
    queue: TurnQueue<QueuedCall>,
    calls: usize,
    max_calls: usize,
    /// The maximum number of calls in flight and queued together.
    limit: usize,
    in_flight: InFlight,
    abandoned: AbandonedCalls,
}

/// The decision on a request.
#[derive(Debug)]
pub(super) enum Admission {
    /// Its line is to be written now.
    Write(u64, Bytes),
    /// It waits for others.
    Queued,
    /// This one, or one that waited, has no place.
    Refused(Box<Request>, Overload),
}

impl Table {
    /// Makes a table that allows at most `max_calls` calls in flight, and `places` in the queue.
    pub(super) fn new(max_calls: usize, places: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            queue: TurnQueue::new(places, QUEUE_PART),
            calls: 0,
            max_calls,
            limit: max_calls + places,
            abandoned: AbandonedCalls::new(max_calls),
            in_flight: InFlight::default(),
        }
    }

    /// Adds a request.
    pub(super) fn admit(&mut self, request: Request) -> Admission {
        if request.kind == RequestKind::Call {
            if let Err(overload) = self.abandoned.refuse(request.owner) {
                return Admission::Refused(Box::new(request), overload);
            }
            if self.calls >= self.max_calls {
                let since = Instant::now();
                let owner = request.owner;
                let pushed = self.queue.push(owner, QueuedCall { request, since });
                let refused = match pushed {
                    Ok(None) => return Admission::Queued,
                    Ok(Some(refused)) | Err(refused) => refused,
                };
                let limit = self.limit;
                return Admission::Refused(Box::new(refused.request), Overload::Queue { limit });
            }
        }
        let (id, line) = self.begin(request);
        Admission::Write(id, line)
    }

    /// Notes that a request is written now, and returns its line.
    fn begin(&mut self, request: Request) -> (u64, Bytes) {
        let Request {
            id,
            line,
            kind,
            owner,
            events,
            reply,
        } = request;
        let waiting = PendingRequest {
            kind,
            owner,
            events,
            reply,
        };
        if kind == RequestKind::Call {
            self.calls += 1;
            self.in_flight.begin(id, owner);
        }
        self.waiting.insert(id, waiting);
        (id, line)
    }

    /// Returns the next queued call, if it may be sent now, and the time that it has waited.
    pub(super) fn next_queued(&mut self) -> Option<(u64, Bytes, Duration)> {
        if self.calls >= self.max_calls {
            return None;
        }
        let QueuedCall { request, since } = self.queue.pop()?;
        let waited = since.elapsed();
        let (id, line) = self.begin(request);
        Some((id, line, waited))
    }

    /// Removes the pending request `id`; a call no longer counts as in flight.
    pub(super) fn remove(&mut self, id: u64) -> Option<PendingRequest> {
        let waiting = self.waiting.remove(&id)?;
        if waiting.kind == RequestKind::Call {
            self.calls -= 1;
            self.in_flight.end(waiting.owner);
        }
        Some(waiting)
    }

    /// Notes that the server may still work on the removed call `id`; `left` if its caller left.
    pub(super) fn abandon(&mut self, id: u64, left: Option<AbandonedCall>) {
        self.in_flight.abandon(id);
        if let Some(call) = left {
            self.abandoned.add(id, call);
        }
    }

    /// Notes a late answer to request `id`.
    pub(super) fn answered_late(&mut self, id: u64) {
        self.in_flight.answered_late(id);
        self.abandoned.answered(id);
    }

    /// Returns the call that was the only one in flight since it began.
    pub(super) fn only_call(&self) -> Option<u64> {
        self.in_flight.only()
    }

    /// Returns the kind of the pending request `id`.
    pub(super) fn kind(&self, id: u64) -> Option<RequestKind> {
        self.waiting.get(&id).map(|waiting| waiting.kind)
    }

    /// Returns the events of a request that was sent.
    pub(super) fn events(&mut self, id: u64) -> Option<&mut RequestEvents> {
        self.waiting.get_mut(&id)?.events.as_mut()
    }

    /// Removes a request from the queue.
    pub(super) fn remove_queued(&mut self, id: u64) -> Option<Request> {
        let queued = self.queue.remove_any(|queued| queued.request.id == id);
        queued.map(|queued| queued.request)
    }

    /// Removes all requests, in flight and in the queue.
    pub(super) fn clear(&mut self) -> (BTreeMap<u64, PendingRequest>, Vec<Request>) {
        self.calls = 0;
        (
            std::mem::take(&mut self.waiting),
            self.queue.drain().map(|queued| queued.request).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64, kind: RequestKind) -> Request {
        let (reply, _) = oneshot::channel();
        Request {
            id,
            line: Bytes::from(id.to_string()),
            kind,
            owner: Owner::BROKER,
            events: None,
            reply,
        }
    }

    fn is_written(admission: Admission) -> bool {
        match admission {
            Admission::Write(..) => true,
            Admission::Queued => false,
            Admission::Refused(_, overload) => panic!("{overload}"),
        }
    }

    #[test]
    fn request_table_queues_calls_in_order_and_admits_internal_requests() {
        let mut table = Table::new(2, 256);
        assert!(is_written(table.admit(request(1, RequestKind::Call))));
        assert!(is_written(table.admit(request(2, RequestKind::Call))));
        assert!(!is_written(table.admit(request(3, RequestKind::Call))));
        assert!(!is_written(table.admit(request(4, RequestKind::Call))));
        assert!(is_written(table.admit(request(5, RequestKind::Internal))));
        assert!(table.next_queued().is_none());
        assert!(table.remove(5).is_some());
        assert!(
            table.next_queued().is_none(),
            "an own request held no place"
        );
        assert!(table.remove(1).is_some());
        assert!(table.remove(1).is_none());
        assert_eq!(table.next_queued().map(|(id, ..)| id), Some(3));
        assert!(table.remove_queued(4).is_some());
        assert!(table.remove(2).is_some());
        assert!(table.next_queued().is_none());
        let (waiting, queue) = table.clear();
        assert_eq!(
            (waiting.into_keys().collect::<Vec<_>>(), queue.len()),
            (vec![3], 0)
        );
    }

    #[test]
    fn call_is_alone_while_the_broker_sends_requests_too() {
        let mut table = Table::new(2, 256);
        table.admit(request(1, RequestKind::Internal));
        table.admit(request(2, RequestKind::Call));
        table.admit(request(3, RequestKind::Internal));
        assert_eq!(table.only_call(), Some(2));
        table.remove(1);
        assert_eq!(table.only_call(), Some(2));
        table.admit(request(4, RequestKind::Call));
        assert_eq!(table.only_call(), None);
    }
}
