//! The way of a job: claim, send, end, cancel.

use bytes::Bytes;

use crate::bounds::{MAX_ERROR_BYTES, MAX_UPSTREAM_BYTES};
use crate::clock::{Now, whole_millis, whole_millis_since};
use crate::error::Failure;
use crate::id::JobId;
use crate::job::{CancelOutcome, Claim, Dropped, Job, JobEnd, JobState};
use crate::store::Body;

use super::Engine;

/// The maximum bytes of a result that is stored while the disk is full: the room for ends has this much for each job, since
/// a job with a result seldom has an error.
const SMALL_BYTES: u64 = MAX_ERROR_BYTES as u64;

impl Engine {
    /// Claims a queued job whose cancel was not asked for.
    pub fn claim(&mut self, id: &JobId, now: Now) -> Result<Option<Claim>, Failure> {
        let job = self.store.load(id)?;
        let Some(mut job) = job.filter(|job| job.state == JobState::Queued && !job.cancel_asked)
        else {
            return Ok(None);
        };
        job.state = JobState::Running;
        job.fence += 1;
        job.started = Some(whole_millis(now.wall));
        if job.fence == 1 {
            self.store_state(&mut job, now)?;
        } else {
            self.store_counted_state(&mut job, now)?;
        }
        let args = self.store.body(id, Body::Args)?.unwrap_or_default();
        let fence = job.fence;
        Ok(Some(Claim { job, args, fence }))
    }

    /// Claims a job that a server executes as a task that outlived its broker.
    pub fn adopt(&mut self, id: &JobId, now: Now) -> Result<Option<Claim>, Failure> {
        let Some(&fence) = self.adoptable.get(id) else {
            return Ok(None);
        };
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(None);
        };
        job.fence += 1;
        job.updated = whole_millis(now.wall);
        self.store.update(&job)?;
        let (args, fence) = (Bytes::new(), job.fence);
        Ok(Some(Claim { job, args, fence }))
    }

    /// Marks a job as sent and erases its arguments. Returns `false` if the call must not be sent: the fence is stale, the
    /// job was sent before, or its cancel was asked for.
    pub fn mark_sent(&mut self, id: &JobId, fence: u64, now: Now) -> Result<bool, Failure> {
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(false);
        };
        if job.sent || job.cancel_asked {
            return Ok(false);
        }
        job.sent = true;
        job.args_bytes = 0;
        job.updated = whole_millis(now.wall);
        self.store.remove_body(id, Body::Args)?;
        self.store.update(&job)?;
        Ok(true)
    }

    /// Queues a claimed job again that was not sent.
    pub fn requeue(&mut self, id: &JobId, fence: u64, now: Now) -> Result<bool, Failure> {
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(false);
        };
        if job.sent || job.cancel_asked {
            return Ok(false);
        }
        job.state = JobState::Queued;
        self.store_counted_state(&mut job, now)?;
        Ok(true)
    }

    /// Says whether a claimed job waits for an answer of its caller.
    pub fn set_input_required(
        &mut self,
        id: &JobId,
        fence: u64,
        is_required: bool,
        now: Now,
    ) -> Result<bool, Failure> {
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(false);
        };
        let state = if is_required {
            JobState::InputRequired
        } else {
            JobState::Running
        };
        if job.state != state {
            job.state = state;
            self.store_counted_state(&mut job, now)?;
        }
        Ok(true)
    }

    /// Stores the task of the server that executes a claimed job, and whether it outlives this broker. Returns `false` if the
    /// fence is stale, or if the text has more than [`MAX_UPSTREAM_BYTES`].
    pub fn set_upstream(
        &mut self,
        id: &JobId,
        fence: u64,
        task: &str,
        survives: bool,
        now: Now,
    ) -> Result<bool, Failure> {
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(false);
        };
        if task.len() > MAX_UPSTREAM_BYTES {
            return Ok(false);
        }
        job.upstream = Some(task.to_owned());
        job.upstream_survives = survives;
        job.updated = whole_millis(now.wall);
        self.store.update(&job)?;
        Ok(true)
    }

    /// Ends a claimed job. Returns `false` if the fence is stale or the state is not an end.
    ///
    /// The end always fits. A result or an error without room is left out, and the job says so.
    pub fn finish(
        &mut self,
        id: &JobId,
        fence: u64,
        end: &JobEnd,
        now: Now,
    ) -> Result<bool, Failure> {
        let Some(mut job) = self.claimed(id, fence)? else {
            return Ok(false);
        };
        if !end.state.is_finished() {
            return Ok(false);
        }
        job.is_error = end.is_error;
        self.end(&mut job, end.state, end.error.clone(), now)?;
        if let Some(result) = &end.result {
            self.store_result(&mut job, result)?;
        }
        Ok(true)
    }

    /// Cancels a queued job, or asks the broker of a claimed job to end it.
    pub fn cancel(&mut self, id: &JobId, now: Now) -> Result<CancelOutcome, Failure> {
        let Some(mut job) = self.store.load(id)? else {
            return Ok(CancelOutcome::Unknown);
        };
        if job.state.is_finished() {
            return Ok(CancelOutcome::Finished(job.state));
        }
        if job.state == JobState::Queued {
            self.end(&mut job, JobState::Canceled, None, now)?;
            return Ok(CancelOutcome::Canceled);
        }
        if !job.cancel_asked {
            job.cancel_asked = true;
            job.updated = whole_millis(now.wall);
            self.store.update(&job)?;
        }
        Ok(CancelOutcome::Asked)
    }

    /// Stores the end of a job.
    pub(super) fn end(
        &mut self,
        job: &mut Job,
        state: JobState,
        error: Option<String>,
        now: Now,
    ) -> Result<(), Failure> {
        let ended = whole_millis(now.wall);
        job.state = state;
        job.ended = Some(ended);
        job.ended_since = Some(whole_millis_since(now.since));
        job.expires = ended.checked_add(job.ttl);
        job.args_bytes = 0;
        match error {
            Some(error) if error.len() > MAX_ERROR_BYTES => job.dropped = Some(Dropped::TooLarge),
            error => job.error = error,
        }
        self.store.remove_body(&job.id, Body::Args)?;
        self.push_lost(job, now)?;
        self.store_state(job, now)?;
        self.watch_expiry(job, now);
        Ok(())
    }

    /// Stores the result of an ended job, if it has room.
    fn store_result(&mut self, job: &mut Job, result: &Bytes) -> Result<(), Failure> {
        let bytes = result.len() as u64;
        if bytes > self.bounds.result_bytes {
            job.dropped = Some(Dropped::TooLarge);
        } else if (bytes > SMALL_BYTES && !self.store.reserve_room())
            || self.make_room(job.owner.as_deref(), bytes)?.is_err()
        {
            job.dropped = Some(Dropped::NoRoom);
        } else {
            // The events of this job may have made room for its result.
            if let Some(now) = self.store.load(&job.id)? {
                *job = now;
            }
            if job.dropped == Some(Dropped::Evicted) {
                job.dropped = None;
            }
            job.result_bytes = Some(bytes);
            self.store.put_body(&job.id, Body::Result, result)?;
        }
        self.store.update(job)
    }
}
