//! A store in memory. It is as old as its process.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use bytes::Bytes;

use crate::bounds::usage_of;
use crate::clock::millis;
use crate::error::Failure;
use crate::id::JobId;
use crate::job::{Job, JobEvent, JobState, ListQuery, Page, Usage};
use crate::store::{Body, EndedJob, Store};

/// A job with everything that belongs to it.
#[derive(Debug)]
struct Entry {
    order: u64,
    job: Job,
    args: Option<Bytes>,
    result: Option<Bytes>,
    events: Vec<JobEvent>,
}

/// The place of an ended job among those of its owner that have something stored.
type StoredPlace = (Option<String>, u64, u64);

/// An owner, a path and an idempotency key.
type Key = (String, String, String);

/// Jobs in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    next: u64,
    jobs: HashMap<JobId, Entry>,
    orders: BTreeMap<u64, JobId>,
    queued: BTreeMap<u64, JobId>,
    stored: BTreeMap<StoredPlace, JobId>,
    keys: HashMap<Key, JobId>,
    usage: HashMap<Option<String>, Usage>,
    total: Usage,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job to the indexes.
    fn index(&mut self, job: &Job, order: u64) {
        let numbers = usage_of(job);
        self.usage
            .entry(job.owner.clone())
            .or_default()
            .add(&numbers);
        self.total.add(&numbers);
        if job.state == JobState::Queued {
            self.queued.insert(order, job.id.clone());
        }
        if let Some(place) = stored_place(job, order) {
            self.stored.insert(place, job.id.clone());
        }
    }

    /// Takes a job from the indexes.
    fn unindex(&mut self, job: &Job, order: u64) {
        let numbers = usage_of(job);
        self.total.subtract(&numbers);
        if let Some(usage) = self.usage.get_mut(&job.owner) {
            usage.subtract(&numbers);
            if *usage == Usage::default() {
                self.usage.remove(&job.owner);
            }
        }
        self.queued.remove(&order);
        if let Some(place) = stored_place(job, order) {
            self.stored.remove(&place);
        }
    }
}

/// Returns the place of a job whose result or events may be evicted.
fn stored_place(job: &Job, order: u64) -> Option<StoredPlace> {
    let ended = job.ended.filter(|_| usage_of(job).evictable > 0)?;
    Some((job.owner.clone(), millis(ended), order))
}

/// Returns the idempotency key of a job with an owner.
fn key_of(job: &Job) -> Option<Key> {
    Some((job.owner.clone()?, job.path.clone(), job.key.clone()?))
}

impl Store for MemoryStore {
    fn is_durable(&self) -> bool {
        false
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn rollback(&mut self) {}

    fn reserve_room(&mut self) -> bool {
        true
    }

    fn release_room(&mut self) -> bool {
        false
    }

    fn rest(&mut self) {}

    fn load(&mut self, id: &JobId) -> Result<Option<Job>, Failure> {
        Ok(self.jobs.get(id).map(|entry| entry.job.clone()))
    }

    fn find_key(&mut self, owner: &str, path: &str, key: &str) -> Result<Option<Job>, Failure> {
        let key = (owner.to_owned(), path.to_owned(), key.to_owned());
        let entry = self.keys.get(&key).and_then(|id| self.jobs.get(id));
        Ok(entry.map(|entry| entry.job.clone()))
    }

    fn insert(&mut self, job: &Job) -> Result<(), Failure> {
        let order = self.next;
        self.next += 1;
        self.index(job, order);
        self.orders.insert(order, job.id.clone());
        if let Some(key) = key_of(job) {
            self.keys.insert(key, job.id.clone());
        }
        let entry = Entry {
            order,
            job: job.clone(),
            args: None,
            result: None,
            events: Vec::new(),
        };
        self.jobs.insert(job.id.clone(), entry);
        Ok(())
    }

    fn update(&mut self, job: &Job) -> Result<(), Failure> {
        let Some(entry) = self.jobs.get_mut(&job.id) else {
            return Ok(());
        };
        let order = entry.order;
        let old = std::mem::replace(&mut entry.job, job.clone());
        self.unindex(&old, order);
        self.index(job, order);
        Ok(())
    }

    fn remove(&mut self, id: &JobId) -> Result<(), Failure> {
        if let Some(entry) = self.jobs.remove(id) {
            self.unindex(&entry.job, entry.order);
            self.orders.remove(&entry.order);
            if let Some(key) = key_of(&entry.job) {
                self.keys.remove(&key);
            }
        }
        Ok(())
    }

    fn put_body(&mut self, id: &JobId, body: Body, bytes: &Bytes) -> Result<(), Failure> {
        if let Some(entry) = self.jobs.get_mut(id) {
            match body {
                Body::Args => entry.args = Some(bytes.clone()),
                Body::Result => entry.result = Some(bytes.clone()),
            }
        }
        Ok(())
    }

    fn body(&mut self, id: &JobId, body: Body) -> Result<Option<Bytes>, Failure> {
        let entry = self.jobs.get(id);
        Ok(entry.and_then(|entry| match body {
            Body::Args => entry.args.clone(),
            Body::Result => entry.result.clone(),
        }))
    }

    fn remove_body(&mut self, id: &JobId, body: Body) -> Result<(), Failure> {
        if let Some(entry) = self.jobs.get_mut(id) {
            match body {
                Body::Args => entry.args = None,
                Body::Result => entry.result = None,
            }
        }
        Ok(())
    }

    fn push_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), Failure> {
        if let Some(entry) = self.jobs.get_mut(id) {
            entry.events.push(event.clone());
        }
        Ok(())
    }

    fn events(&mut self, id: &JobId, after: u64, limit: usize) -> Result<Vec<JobEvent>, Failure> {
        let Some(entry) = self.jobs.get(id) else {
            return Ok(Vec::new());
        };
        let begin = entry.events.partition_point(|event| event.seq <= after);
        let events = entry.events.iter().skip(begin);
        Ok(events.take(limit).cloned().collect())
    }

    fn remove_events(&mut self, id: &JobId) -> Result<(), Failure> {
        if let Some(entry) = self.jobs.get_mut(id) {
            entry.events = Vec::new();
        }
        Ok(())
    }

    fn list(&mut self, query: &ListQuery) -> Result<Page, Failure> {
        let mut page = Page::default();
        let before = match query.cursor.as_deref().map(str::parse::<u64>) {
            None => Bound::Unbounded,
            Some(Ok(order)) => Bound::Excluded(order),
            Some(Err(_)) => return Ok(page),
        };
        let is_wanted = |job: &Job| {
            (query.all || (query.owner.is_some() && job.owner == query.owner))
                && query.state.is_none_or(|state| job.state == state)
        };
        let mut last = None;
        for (order, id) in self.orders.range((Bound::Unbounded, before)).rev() {
            let Some(entry) = self.jobs.get(id).filter(|entry| is_wanted(&entry.job)) else {
                continue;
            };
            if page.jobs.len() == query.limit {
                page.next = last;
                break;
            }
            page.jobs.push(entry.job.clone());
            last = Some(order.to_string());
        }
        Ok(page)
    }

    fn queued(&mut self, per_owner: usize) -> Result<Vec<Job>, Failure> {
        let mut taken: HashMap<&Option<String>, usize> = HashMap::new();
        let mut jobs = Vec::new();
        for id in self.queued.values() {
            let Some(entry) = self.jobs.get(id) else {
                continue;
            };
            let number = taken.entry(&entry.job.owner).or_default();
            if *number < per_owner {
                *number += 1;
                jobs.push(entry.job.clone());
            }
        }
        Ok(jobs)
    }

    fn oldest_stored(&mut self, owner: Option<&str>) -> Result<Option<Job>, Failure> {
        let owner = owner.map(str::to_owned);
        let first = self
            .stored
            .range((owner.clone(), 0, 0)..=(owner, u64::MAX, u64::MAX))
            .next();
        let entry = first.and_then(|(_, id)| self.jobs.get(id));
        Ok(entry.map(|entry| entry.job.clone()))
    }

    fn usage(&mut self, owner: Option<&str>) -> Result<Usage, Failure> {
        let usage = self.usage.get(&owner.map(str::to_owned));
        Ok(usage.copied().unwrap_or_default())
    }

    fn total(&mut self) -> Result<Usage, Failure> {
        Ok(self.total)
    }

    fn claimed(&mut self) -> Result<Vec<Job>, Failure> {
        let jobs = self.jobs.values().map(|entry| &entry.job);
        Ok(jobs.filter(|job| job.state.is_claimed()).cloned().collect())
    }

    fn each_ended(&mut self, call: &mut dyn FnMut(EndedJob)) -> Result<(), Failure> {
        for entry in self.jobs.values() {
            if let Some(expires) = entry.job.expires {
                call(EndedJob {
                    id: entry.job.id.clone(),
                    ttl: entry.job.ttl,
                    expires,
                    ended_since: entry.job.ended_since,
                });
            }
        }
        Ok(())
    }

    fn check(&mut self, _: bool) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    fn close(&mut self) {}
}
