//! The rules of jobs over a store: states, fences, bounds, expiry. They are the same for each store.

mod create;
mod events;
mod recover;
mod run;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;

use crate::bounds::{Bounds, usage_of};
use crate::clock::Now;
use crate::error::{Failure, FullLimit, StoreError};
use crate::expiry::Expiry;
use crate::id::JobId;
use crate::job::{Dropped, Events, Job, JobEvent, ListQuery, Page, QueuedOwner, Usage};
use crate::store::{Body, EndedJob, Store};

/// The maximum number of jobs that one group of changes removes at their expiry.
const MAX_EXPIRED: usize = 256;
/// The maximum bytes of events that are read at once; one event may be longer.
const MAX_READ_BYTES: usize = 256 << 10;

/// A store with the rules.
pub struct Engine {
    store: Box<dyn Store>,
    bounds: Bounds,
    expiry: Expiry,
    /// Jobs that a server executes as a task that outlived its broker, with their fences: an adoption changes the fence.
    adoptable: HashMap<JobId, u64>,
    /// The last numbers of events that readers may have seen, of claimed jobs. A group that is taken back does not take
    /// the numbers back.
    seen: HashMap<JobId, u64>,
    /// The numbers of events that were taken back with their group, of claimed jobs.
    lost_events: HashMap<JobId, u64>,
    /// Those of them that a job shows since the last commit.
    shown_lost: Vec<(JobId, u64)>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Puts the rules over a store. [`Engine::recover`] comes first.
    pub fn new(store: Box<dyn Store>, bounds: Bounds) -> Self {
        Self {
            store,
            bounds,
            expiry: Expiry::default(),
            adoptable: HashMap::new(),
            seen: HashMap::new(),
            lost_events: HashMap::new(),
            shown_lost: Vec::new(),
        }
    }

    /// Whether commits survive the process and the machine.
    pub fn is_durable(&self) -> bool {
        self.store.is_durable()
    }

    /// Makes the changes since the last commit durable.
    pub fn commit(&mut self) -> Result<(), Failure> {
        self.store.commit()?;
        self.shown_lost.clear();
        Ok(())
    }

    /// Takes the changes since the last commit back.
    pub fn rollback(&mut self, now: Now) -> Result<(), Failure> {
        self.store.rollback();
        for (id, number) in std::mem::take(&mut self.shown_lost) {
            self.lose_events(&id, number);
        }
        self.expiry.clear();
        let expiry = &mut self.expiry;
        self.store.each_ended(&mut |job| expiry.add(&job, now))
    }

    /// Gives the room on the disk free that is reserved for ends. Returns whether there was some.
    pub fn release_room(&mut self) -> bool {
        self.store.release_room()
    }

    /// Erases what removed bytes left behind.
    pub fn rest(&mut self) {
        self.store.rest();
    }

    /// Returns the facts of a job.
    pub fn get(&mut self, id: &JobId) -> Result<Option<Job>, Failure> {
        self.store.load(id)
    }

    /// Returns the arguments of a job, until they are erased.
    pub fn args(&mut self, id: &JobId) -> Result<Option<Bytes>, Failure> {
        self.store.body(id, Body::Args)
    }

    /// Returns the result of a job.
    pub fn result(&mut self, id: &JobId) -> Result<Option<Bytes>, Failure> {
        self.store.body(id, Body::Result)
    }

    /// Returns up to `limit` events of a job behind `after`, and of long events fewer.
    pub fn events(&mut self, id: &JobId, after: u64, limit: usize) -> Result<Events, Failure> {
        let Some(job) = self.store.load(id)? else {
            return Ok(Events::default());
        };
        let mut events = self.store.events(id, after, limit)?;
        events.truncate(count_within(&events, MAX_READ_BYTES));
        for event in &mut events {
            events::fill(event, &job);
        }
        let gap = job.dropped_events > 0;
        Ok(Events { events, gap })
    }

    /// Lists jobs, the newest first.
    pub fn list(&mut self, query: &ListQuery) -> Result<Page, Failure> {
        if !query.all && query.owner.is_none() {
            return Ok(Page::default());
        }
        self.store.list(query)
    }

    /// Returns up to `per_owner` queued jobs of each owner, the oldest first, and the owner with the oldest job first.
    pub fn queued(&mut self, per_owner: usize) -> Result<Vec<QueuedOwner>, Failure> {
        let mut owners: Vec<QueuedOwner> = Vec::new();
        let mut places: HashMap<Option<String>, usize> = HashMap::new();
        for job in self.store.queued(per_owner)? {
            if let Some(place) = places.get(&job.owner) {
                owners[*place].jobs.push(job);
                continue;
            }
            let usage = self.store.usage(job.owner.as_deref())?;
            places.insert(job.owner.clone(), owners.len());
            owners.push(QueuedOwner {
                owner: job.owner.clone(),
                running: usage.running,
                jobs: vec![job],
            });
        }
        Ok(owners)
    }

    /// Returns the numbers of all jobs.
    pub fn total(&mut self) -> Result<Usage, Failure> {
        self.store.total()
    }

    /// Returns the numbers of an owner.
    pub fn usage(&mut self, owner: Option<&str>) -> Result<Usage, Failure> {
        self.store.usage(owner)
    }

    /// Returns the time at which the next job may expire, on the clock that never jumps.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.expiry.next()
    }

    /// Removes up to a fixed number of ended jobs whose time is over. Returns them.
    pub fn expire(&mut self, now: Now) -> Result<Vec<JobId>, Failure> {
        let ids = self.expiry.take(now, MAX_EXPIRED);
        for id in &ids {
            self.store.remove(id)?;
        }
        Ok(ids)
    }

    /// Returns the faults of the store.
    pub fn check(&mut self, full: bool) -> Result<Vec<String>, Failure> {
        self.store.check(full)
    }

    /// Ends the use of the store, after the last commit.
    pub fn close(&mut self) {
        self.store.close();
    }

    /// Loads a job that is claimed under this fence.
    fn claimed(&mut self, id: &JobId, fence: u64) -> Result<Option<Job>, Failure> {
        let job = self.store.load(id)?;
        Ok(job.filter(|job| job.state.is_claimed() && job.fence == fence))
    }

    /// Stores the job, and the change of its state as an event.
    fn store_state(&mut self, job: &mut Job, now: Now) -> Result<(), Failure> {
        let event = events::status(job.state);
        self.push(job, event, now)?;
        self.store.update(job)
    }

    /// Watches for the expiry of a job that has ended.
    fn watch_expiry(&mut self, job: &Job, now: Now) {
        if let Some(expires) = job.expires {
            let ended = EndedJob {
                id: job.id.clone(),
                ttl: job.ttl,
                expires,
                ended_since: job.ended_since,
            };
            self.expiry.add(&ended, now);
        }
    }

    /// Makes room for more bytes of an owner: removes results and events of its oldest ended jobs, if that is enough.
    fn make_room(&mut self, owner: Option<&str>, bytes: u64) -> Result<Result<(), Full>, Failure> {
        let own = self.store.usage(owner)?;
        let total = self.store.total()?;
        let owner_max = self.bounds.owner_bytes();
        if own.bytes - own.evictable + bytes > owner_max {
            return Ok(Err(Full::Owner(owner_max)));
        }
        if total.bytes - own.evictable + bytes > self.bounds.store_bytes {
            return Ok(Err(Full::Store(self.bounds.store_bytes)));
        }
        let excess = (own.bytes + bytes).saturating_sub(owner_max);
        let mut excess = excess.max((total.bytes + bytes).saturating_sub(self.bounds.store_bytes));
        while excess > 0 {
            let Some(mut job) = self.store.oldest_stored(owner)? else {
                break;
            };
            let freed = usage_of(&job).evictable;
            self.store.remove_body(&job.id, Body::Result)?;
            self.store.remove_events(&job.id)?;
            job.dropped_events += job.events;
            (job.events, job.event_bytes, job.result_bytes) = (0, 0, None);
            job.dropped = Some(Dropped::Evicted);
            self.store.update(&job)?;
            excess = excess.saturating_sub(freed);
        }
        Ok(Ok(()))
    }
}

/// The bytes are used, with the maximum.
#[derive(Clone, Copy, Debug)]
enum Full {
    Owner(u64),
    Store(u64),
}

impl Full {
    const fn error(self) -> StoreError {
        let limit = FullLimit::Bytes;
        match self {
            Self::Owner(max) => StoreError::OwnerFull { limit, max },
            Self::Store(max) => StoreError::Full { limit, max },
        }
    }
}

/// Returns the number of the first events that have at most `max` bytes together, and at least one.
fn count_within(events: &[JobEvent], max: usize) -> usize {
    let mut bytes = 0;
    let fitting = events.iter().take_while(|event| {
        bytes += event.body.len();
        bytes <= max
    });
    fitting.count().max(1)
}
