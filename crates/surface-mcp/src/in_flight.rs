//! The requests in flight: one task each, found by the request's id for cancelling. Also collects the
//! answers of a batch. Owned by the connection.

use std::collections::HashMap;
use std::future::Future;

use broker_wire::Id;
use broker_wire::write::{Outgoing, batch as batch_of};
use tokio::task::{AbortHandle, Id as TaskId, JoinError, JoinSet};

use super::reply::{self, Answer, failed};
use broker_core::note_cancel_reason;

/// The id of a batch whose requests are not all answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchId(u64);

/// The table.
#[derive(Debug)]
pub(super) struct InFlight {
    /// The maximum number of open requests; more are refused.
    limit: usize,
    tasks: JoinSet<Answer>,
    requests: HashMap<TaskId, OpenRequest>,
    handles: HashMap<Id, AbortHandle>,
    batches: HashMap<BatchId, OpenBatch>,
    next_batch: u64,
}

#[derive(Debug)]
struct OpenRequest {
    id: Id,
    batch: Option<BatchId>,
    /// The token of its progress, as it was written.
    token: Option<Box<str>>,
}

#[derive(Debug, Default)]
struct OpenBatch {
    parts: Vec<Outgoing>,
    missing: usize,
}

impl InFlight {
    /// An empty table for at most `limit` open requests.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            tasks: JoinSet::new(),
            requests: HashMap::new(),
            handles: HashMap::new(),
            batches: HashMap::new(),
            next_batch: 0,
        }
    }

    /// The maximum number of open requests.
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a request of this id is open.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.handles.contains_key(id)
    }

    /// Whether an open request has this token for its progress.
    pub(super) fn has_token(&self, token: &str) -> bool {
        let mut tokens = self.requests.values().map(|open| open.token.as_deref());
        tokens.any(|known| known == Some(token))
    }

    /// Whether the limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.handles.len() >= self.limit
    }

    /// Whether no request is open.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts the task of a request.
    pub(super) fn begin(
        &mut self,
        id: Id,
        batch: Option<BatchId>,
        token: Option<Box<str>>,
        work: impl Future<Output = Answer> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(work);
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.missing += 1;
        }
        self.requests.insert(
            handle.id(),
            OpenRequest {
                id: id.clone(),
                batch,
                token,
            },
        );
        self.handles.insert(id, handle);
    }

    /// Cancels a request without an answer, for the reason that the client gave; ignores an id that is not open.
    pub(super) fn cancel(&mut self, id: &Id, reason: Option<&str>) {
        if let Some(handle) = self.handles.remove(id) {
            if let Some(reason) = reason {
                note_cancel_reason(handle.id(), reason);
            }
            handle.abort();
        }
    }

    /// Opens a batch for the following requests; [`InFlight::seal`] ends it.
    pub(super) fn open_batch(&mut self) -> BatchId {
        let batch = BatchId(self.next_batch);
        self.next_batch += 1;
        // The batch itself counts as a missing answer until it is sealed.
        self.batches.insert(
            batch,
            OpenBatch {
                parts: Vec::new(),
                missing: 1,
            },
        );
        batch
    }

    /// An answer that belongs to a batch.
    pub(super) fn add(&mut self, batch: BatchId, part: Outgoing) {
        if let Some(batch) = self.batches.get_mut(&batch) {
            batch.parts.push(part);
        }
    }

    /// Ends the batch; returns its answer, if it is already complete.
    pub(super) fn seal(&mut self, batch: BatchId) -> Option<Outgoing> {
        self.decrement(batch)
    }

    /// Waits for the end of a request; returns the line to send. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Outgoing> {
        let ended = self.tasks.join_next_with_id().await?;
        self.ended(ended)
    }

    fn ended(&mut self, ended: Result<(TaskId, Answer), JoinError>) -> Option<Outgoing> {
        let (task, answer) = match ended {
            Ok((task, answer)) => (task, Some(answer)),
            Err(error) if error.is_cancelled() => (error.id(), None),
            Err(error) => (error.id(), Some(Err(failed()))),
        };
        let OpenRequest { id, batch, .. } = self.requests.remove(&task)?;
        // A cancelled request gets no answer, even if its task has finished. Another request may use
        // its id by now.
        let open = self
            .handles
            .get(&id)
            .is_some_and(|handle| handle.id() == task);
        if open {
            self.handles.remove(&id);
        }
        let part = answer
            .filter(|_| open)
            .map(|answer| reply::answer(&id, answer));
        match batch {
            None => part,
            Some(batch) => {
                if let Some(part) = part {
                    self.add(batch, part);
                }
                self.decrement(batch)
            }
        }
    }

    fn decrement(&mut self, id: BatchId) -> Option<Outgoing> {
        let batch = self.batches.get_mut(&id)?;
        batch.missing -= 1;
        if batch.missing > 0 {
            return None;
        }
        let batch = self.batches.remove(&id)?;
        // A batch of notifications is not answered.
        (!batch.parts.is_empty()).then(|| batch_of(batch.parts))
    }
}
