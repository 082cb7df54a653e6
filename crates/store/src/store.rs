//! The trait of a store: rows of jobs, their bodies and their events. The rules of jobs are in `engine` and hold for each
//! store; a store only keeps what it is given.

use bytes::Bytes;

use crate::error::Failure;
use crate::id::JobId;
use crate::job::{Job, JobEvent, ListQuery, Page, Usage};

/// A part of a job that is stored apart from its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The arguments.
    Args,
    /// The result.
    Result,
}

/// A store of jobs. One thread calls it.
///
/// Changes form a group that ends with [`commit`](Self::commit). Reads see the changes of their group. After an operation
/// has failed, the caller ends the group with [`rollback`](Self::rollback).
pub trait Store: Send {
    /// Whether commits survive the process and the machine.
    fn is_durable(&self) -> bool;

    /// Makes the changes of the group durable: when this returns, they are on the disk. After an error none of them holds.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Takes the changes of the group back.
    fn rollback(&mut self);

    /// Whether the room on the disk that the ends of jobs need is reserved. Tries to reserve it if it is not.
    fn reserve_room(&mut self) -> bool;

    /// Gives the reserved room free for the next group. Returns whether there was some.
    fn release_room(&mut self) -> bool;

    /// Erases what removed bytes left behind. The thread calls it when no request waits.
    fn rest(&mut self);

    /// Returns the facts of a job.
    fn load(&mut self, id: &JobId) -> Result<Option<Job>, Failure>;

    /// Returns the job of an owner with this path and this idempotency key.
    fn find_key(&mut self, owner: &str, path: &str, key: &str) -> Result<Option<Job>, Failure>;

    /// Adds a job. Jobs keep the order in which they are added.
    fn insert(&mut self, job: &Job) -> Result<(), Failure>;

    /// Replaces the facts of a job that change: all from its state on, and the task of its server.
    fn update(&mut self, job: &Job) -> Result<(), Failure>;

    /// Removes a job with its bodies and events.
    fn remove(&mut self, id: &JobId) -> Result<(), Failure>;

    /// Stores a body of a job.
    fn put_body(&mut self, id: &JobId, body: Body, bytes: &Bytes) -> Result<(), Failure>;

    /// Returns a body of a job.
    fn body(&mut self, id: &JobId, body: Body) -> Result<Option<Bytes>, Failure>;

    /// Removes a body of a job, so that the medium no longer has it.
    fn remove_body(&mut self, id: &JobId, body: Body) -> Result<(), Failure>;

    /// Adds an event to a job.
    fn push_event(&mut self, id: &JobId, event: &JobEvent) -> Result<(), Failure>;

    /// Returns up to `limit` events with larger numbers than `after`.
    fn events(&mut self, id: &JobId, after: u64, limit: usize) -> Result<Vec<JobEvent>, Failure>;

    /// Removes the events of a job.
    fn remove_events(&mut self, id: &JobId) -> Result<(), Failure>;

    /// Lists jobs, the newest first.
    fn list(&mut self, query: &ListQuery) -> Result<Page, Failure>;

    /// Returns up to `per_owner` queued jobs of each owner, the oldest first.
    fn queued(&mut self, per_owner: usize) -> Result<Vec<Job>, Failure>;

    /// Returns the job of this owner that ended first and has a result or events.
    fn oldest_stored(&mut self, owner: Option<&str>) -> Result<Option<Job>, Failure>;

    /// Returns the numbers of an owner. Jobs without an owner are counted together.
    fn usage(&mut self, owner: Option<&str>) -> Result<Usage, Failure>;

    /// Returns the numbers of all jobs.
    fn total(&mut self) -> Result<Usage, Failure>;

    /// Returns every job that is claimed and has not ended.
    fn claimed(&mut self) -> Result<Vec<Job>, Failure>;

    /// Calls the function with each ended job.
    fn each_ended(&mut self, call: &mut dyn FnMut(EndedJob)) -> Result<(), Failure>;

    /// Returns the faults of the store. The full check reads everything.
    fn check(&mut self, full: bool) -> Result<Vec<String>, Failure>;

    /// Ends the use of the store, after the last commit. Changes after it are lost.
    fn close(&mut self);
}

/// An ended job, as far as its expiry needs it.
#[derive(Clone, Debug)]
pub struct EndedJob {
    /// Its id.
    pub id: JobId,
    /// The time for which it is kept.
    pub ttl: std::time::Duration,
    /// The end of this time.
    pub expires: std::time::SystemTime,
    /// The time of the end on the clock that never jumps, while that clock has not begun again.
    pub ended_since: Option<std::time::Duration>,
}
