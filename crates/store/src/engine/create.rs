//! The creation of a job.

use subtle::ConstantTimeEq as _;

use crate::bounds::usage_of;
use crate::clock::{Now, whole_millis, whole_millis_since};
use crate::error::{Failure, FullLimit, StoreError};
use crate::job::{Created, Job, JobStart, JobState, NewJob};
use crate::store::Body;

use super::Engine;

impl Engine {
    /// Stores a new job, or returns the one that has its idempotency key.
    ///
    /// The inner error is a refusal: the store is as it was.
    pub fn create(
        &mut self,
        new: &NewJob,
        now: Now,
    ) -> Result<Result<Created, StoreError>, Failure> {
        if let Some(created) = self.find_same(new)? {
            return Ok(Ok(created));
        }
        if !self.store.reserve_room() {
            return Ok(Err(StoreError::NoSpace));
        }
        let owner = new.owner.as_deref();
        let max = self.bounds.unfinished;
        if self.store.total()?.unfinished() >= max {
            let limit = FullLimit::Unfinished;
            return Ok(Err(StoreError::Full { limit, max }));
        }
        let max = self.bounds.queued_per_owner;
        let is_queued = new.start == JobStart::Queued;
        if is_queued && self.store.usage(owner)?.queued >= max {
            let limit = FullLimit::Queued;
            return Ok(Err(StoreError::OwnerFull { limit, max }));
        }
        let mut job = job_of(new, now);
        if let Err(full) = self.make_room(owner, usage_of(&job).bytes)? {
            return Ok(Err(full.error()));
        }
        self.store.insert(&job)?;
        if is_queued {
            self.store.put_body(&job.id, Body::Args, &new.args)?;
        }
        self.store_state(&mut job, now)?;
        Ok(Ok(Created::New(Box::new(job))))
    }

    /// Returns the job of an owner with this path and this idempotency key.
    pub fn find_key(&mut self, owner: &str, path: &str, key: &str) -> Result<Option<Job>, Failure> {
        self.store.find_key(owner, path, key)
    }

    /// Returns the answer for a job that exists: with the same key, or with the same id.
    fn find_same(&mut self, new: &NewJob) -> Result<Option<Created>, Failure> {
        if let (Some(owner), Some(key)) = (&new.owner, &new.key)
            && let Some(job) = self.store.find_key(owner, &new.path, key)?
        {
            let has_same: bool = job.args_sha256.ct_eq(&new.args_sha256).into();
            return Ok(Some(if has_same {
                Created::Replayed(Box::new(job))
            } else {
                Created::OtherArguments(job.id)
            }));
        }
        let job = self.store.load(&new.id)?;
        Ok(job.map(|job| Created::OtherArguments(job.id)))
    }
}

/// Returns the job as it is stored first.
fn job_of(new: &NewJob, now: Now) -> Job {
    let created = whole_millis(now.wall);
    let (state, sent, fence) = match new.start {
        JobStart::Queued => (JobState::Queued, false, 0),
        JobStart::Sent => (JobState::Running, true, 1),
    };
    Job {
        id: new.id.clone(),
        owner: new.owner.clone(),
        path: new.path.clone(),
        tool_digest: new.tool_digest.clone(),
        catalog_digest: new.catalog_digest.clone(),
        args_sha256: new.args_sha256,
        meta: new.meta.clone(),
        key: new.key.clone(),
        caller: new.caller.clone(),
        trace: new.trace.clone(),
        upstream: None,
        upstream_survives: false,
        state,
        sent,
        cancel_asked: false,
        fence,
        created,
        started: sent.then_some(created),
        ended: None,
        ended_since: None,
        updated: created,
        ttl: whole_millis_since(new.ttl),
        expires: None,
        progress: None,
        last_seq: 0,
        events: 0,
        event_bytes: 0,
        dropped_events: 0,
        is_error: false,
        error: None,
        result_bytes: None,
        dropped: None,
        args_bytes: if sent { 0 } else { new.args.len() as u64 },
    }
}
