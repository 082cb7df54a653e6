//! The events of a job.

use bytes::Bytes;

use crate::bounds::{EVENT_BYTES, MAX_PROGRESS_BYTES};
use crate::clock::{Now, whole_millis};
use crate::error::Failure;
use crate::id::JobId;
use crate::job::{EventKind, Job, JobEvent, JobState, NewEvent};

use super::Engine;

/// Returns the event of a state.
pub(super) fn status(state: JobState) -> NewEvent {
    NewEvent {
        kind: EventKind::Status,
        body: format!(r#"{{"status":"{}"}}"#, state.as_str()).into(),
    }
}

/// Gives a gap its body: the number of dropped events, as far as it is known when the gap is read.
pub(super) fn fill(event: &mut JobEvent, job: &Job) {
    if event.kind == EventKind::Gap {
        event.body = format!(r#"{{"dropped":{}}}"#, job.dropped_events).into();
    }
}

impl Engine {
    /// Adds events to a claimed job. Returns the number of its last event, or `None` if the fence is stale.
    ///
    /// Events beyond the bounds are dropped, and one gap is in their place.
    pub fn append(
        &mut self,
        id: &JobId,
        fence: u64,
        events: &[NewEvent],
        now: Now,
    ) -> Result<Option<u64>, Failure> {
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(None);
        };
        self.push_lost(&mut job, now)?;
        job.updated = whole_millis(now.wall);
        let mut unsaved = 0;
        for event in events {
            if event.kind == EventKind::Progress && event.body.len() <= MAX_PROGRESS_BYTES {
                job.progress = Some(event.body.clone());
            }
            if self.takes(&job, event, unsaved)? {
                job.events += 1;
                job.event_bytes += event.body.len() as u64;
                unsaved += event.body.len() as u64 + EVENT_BYTES;
                self.push(&mut job, event.clone(), now)?;
            } else {
                self.drop_events(&mut job, 1, now)?;
            }
        }
        self.store.update(&job)?;
        Ok(Some(job.last_seq))
    }

    /// Remembers events that were appended and then taken back with their group. The next change of the job shows them
    /// as dropped.
    pub fn lose_events(&mut self, id: &JobId, number: u64) {
        *self.lost_events.entry(id.clone()).or_default() += number;
    }

    /// Shows lost events as dropped.
    pub(super) fn push_lost(&mut self, job: &mut Job, now: Now) -> Result<(), Failure> {
        let Some(number) = self.lost_events.remove(&job.id) else {
            return Ok(());
        };
        self.shown_lost.push((job.id.clone(), number));
        self.drop_events(job, number, now)
    }

    /// Stores the job, and a change of its state that may come again and again: as an event if the bounds have room for it.
    pub(super) fn store_counted_state(&mut self, job: &mut Job, now: Now) -> Result<(), Failure> {
        let event = status(job.state);
        if !self.takes(job, &event, 0)? {
            job.updated = whole_millis(now.wall);
            return self.store.update(job);
        }
        job.events += 1;
        job.event_bytes += event.body.len() as u64;
        self.store_state(job, now)
    }

    /// Counts dropped events. The first ones get a gap.
    fn drop_events(&mut self, job: &mut Job, number: u64, now: Now) -> Result<(), Failure> {
        if job.dropped_events == 0 {
            let (kind, body) = (EventKind::Gap, Bytes::new());
            self.push(job, NewEvent { kind, body }, now)?;
        }
        job.dropped_events += number;
        Ok(())
    }

    /// Whether the bounds of the job, of its owner and of the store have room for an event, besides bytes that the row
    /// does not count yet. After a gap there is none.
    pub(super) fn takes(
        &mut self,
        job: &Job,
        event: &NewEvent,
        unsaved: u64,
    ) -> Result<bool, Failure> {
        let bytes = event.body.len() as u64;
        let is_within = job.dropped_events == 0
            && event.kind != EventKind::Gap
            && job.events < self.bounds.events
            && job.event_bytes + bytes <= self.bounds.event_bytes;
        if !is_within {
            return Ok(false);
        }
        let room = self.make_room(job.owner.as_deref(), unsaved + bytes + EVENT_BYTES)?;
        Ok(room.is_ok())
    }

    /// Adds an event behind the last one.
    pub(super) fn push(&mut self, job: &mut Job, event: NewEvent, now: Now) -> Result<(), Failure> {
        let seen = self.seen.get(&job.id).copied().unwrap_or_default();
        job.last_seq = job.last_seq.max(seen) + 1;
        job.updated = whole_millis(now.wall);
        if job.state.is_claimed() {
            self.seen.insert(job.id.clone(), job.last_seq);
        } else {
            self.seen.remove(&job.id);
        }
        let event = JobEvent {
            seq: job.last_seq,
            at: job.updated,
            kind: event.kind,
            body: event.body,
        };
        self.store.push_event(&job.id, &event)
    }
}
