//! The conformance suite of stores: each rule on each store. A third store gets a line in `on_each_store`, and an arm in
//! `Place`.

mod bounds;
mod claims;
mod creation;
mod events;
mod expiry;
mod listing;
mod recovery;

use crate::{
    Bounds, Claim, Created, Engine, Job, JobId, MemoryStore, NewJob, Recovered, SqliteStore,
    StoreError,
};
use tempfile::TempDir;

use super::fake::FakeClock;

/// Makes a test of each rule on each store.
macro_rules! on_each_store {
    ($($rule:ident)*) => {
        mod memory {
            $(#[test] fn $rule() { super::$rule(crate::tests::conformance::Bed::in_memory); })*
        }
        mod sqlite {
            $(#[test] fn $rule() { super::$rule(crate::tests::conformance::Bed::in_file); })*
        }
    };
}
pub(super) use on_each_store;

/// Makes the bed of a test.
pub(super) type Make = fn(Bounds) -> Bed;

/// The place of a store.
enum Place {
    Memory,
    File(TempDir),
}

/// A store with the rules, a clock, and a place where it can be opened again.
pub(super) struct Bed {
    engine: Option<Engine>,
    bounds: Bounds,
    pub(super) clock: FakeClock,
    place: Place,
}

impl Bed {
    pub(super) fn in_memory(bounds: Bounds) -> Self {
        Self::make(bounds, Place::Memory)
    }

    pub(super) fn in_file(bounds: Bounds) -> Self {
        Self::make(bounds, Place::File(tempfile::tempdir().unwrap()))
    }

    fn make(bounds: Bounds, place: Place) -> Self {
        let mut bed = Self {
            engine: None,
            bounds,
            clock: FakeClock::new(),
            place,
        };
        bed.open();
        bed
    }

    fn open(&mut self) -> Recovered {
        if let Place::File(folder) = &self.place {
            self.engine = None;
            let path = folder.path().join("jobs.db");
            let store = SqliteStore::open(&path, &self.clock.clock()).unwrap();
            self.engine = Some(Engine::new(Box::new(store), self.bounds.clone()));
        }
        if self.engine.is_none() {
            let store = MemoryStore::new();
            self.engine = Some(Engine::new(Box::new(store), self.bounds.clone()));
        }
        let now = self.clock.now();
        self.engine().recover(now).unwrap()
    }

    /// Ends the run without the end of its jobs, and begins the next one.
    pub(super) fn reopen(&mut self) -> Recovered {
        self.commit();
        self.open()
    }

    pub(super) fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().unwrap()
    }

    pub(super) fn commit(&mut self) {
        self.engine().commit().unwrap();
    }

    pub(super) fn try_create(&mut self, new: &NewJob) -> Result<Created, StoreError> {
        let now = self.clock.now();
        let created = self.engine().create(new, now).unwrap();
        self.commit();
        created
    }

    pub(super) fn create(&mut self, new: &NewJob) -> Job {
        match self.try_create(new).unwrap() {
            Created::New(job) => *job,
            other => panic!("the job is not new: {other:?}"),
        }
    }

    pub(super) fn claim(&mut self, id: &JobId) -> Option<Claim> {
        let now = self.clock.now();
        let claim = self.engine().claim(id, now).unwrap();
        self.commit();
        claim
    }

    /// Creates a job and claims it.
    pub(super) fn claimed(&mut self, new: &NewJob) -> Claim {
        self.create(new);
        self.claim(&new.id).expect("it is queued")
    }

    pub(super) fn sent(&mut self, id: &JobId, fence: u64) -> bool {
        let now = self.clock.now();
        let is_sent = self.engine().mark_sent(id, fence, now).unwrap();
        self.commit();
        is_sent
    }

    pub(super) fn finish(&mut self, id: &JobId, fence: u64, end: &crate::JobEnd) -> bool {
        let now = self.clock.now();
        let has_ended = self.engine().finish(id, fence, end, now).unwrap();
        self.commit();
        has_ended
    }

    /// Creates, claims, sends and finishes a job.
    pub(super) fn run(&mut self, new: &NewJob, end: &crate::JobEnd) -> Job {
        let claim = self.claimed(new);
        assert!(self.sent(&new.id, claim.fence));
        assert!(self.finish(&new.id, claim.fence, end));
        self.get(&new.id).expect("it is kept")
    }

    pub(super) fn get(&mut self, id: &JobId) -> Option<Job> {
        self.engine().get(id).unwrap()
    }

    pub(super) fn expire(&mut self) -> Vec<JobId> {
        let now = self.clock.now();
        let ids = self.engine().expire(now).unwrap();
        self.commit();
        ids
    }
}

impl Drop for Bed {
    /// A store has no fault after any test.
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(engine) = &mut self.engine
        {
            assert_eq!(engine.check(true).unwrap(), Vec::<String>::new());
        }
    }
}
