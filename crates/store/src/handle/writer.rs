//! The thread that owns a store: runs requests in groups, commits once for a group, and answers after the commit.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, Now};
use crate::engine::Engine;
use crate::error::{Failure, StoreError};
use crate::watch::Watchers;

use super::queue::{Queue, Waiting};
use super::request::{Effect, Request};

/// The maximum number of requests in a group.
const MAX_GROUP: usize = 256;
/// The time after which events are made durable that no other change took along.
const SYNC_DELAY: Duration = Duration::from_millis(250);
/// The number of requests with events after which they are made durable.
const MAX_UNSYNCED: usize = 256;
/// The time without a request after which the store rests.
const REST_DELAY: Duration = Duration::from_secs(1);
/// The time after which jobs are removed if the disk was full.
const EXPIRE_DELAY: Duration = Duration::from_secs(1);
/// The longest sleep of the thread.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// The thread.
pub(super) struct Writer {
    engine: Engine,
    clock: Clock,
    queue: Arc<Queue>,
    watchers: Arc<Watchers>,
    /// Requests with events that were answered and are not yet durable.
    unsynced: Vec<Waiting>,
    /// The time of the first change that is not yet durable.
    dirty: Option<Duration>,
    /// Whether the store was changed since it rested.
    has_changed: bool,
    /// The time before which no job is removed, because the disk was full.
    expire_after: Duration,
}

impl Drop for Writer {
    /// Ends the store, also after a panic: callers get an error instead of waiting.
    fn drop(&mut self) {
        self.engine.close();
        self.queue.end();
        self.watchers.end();
    }
}

impl Writer {
    pub(super) const fn new(
        engine: Engine,
        clock: Clock,
        queue: Arc<Queue>,
        watchers: Arc<Watchers>,
    ) -> Self {
        Self {
            engine,
            clock,
            queue,
            watchers,
            unsynced: Vec::new(),
            dirty: None,
            has_changed: true,
            expire_after: Duration::ZERO,
        }
    }

    /// Answers requests until the queue is closed.
    pub(super) fn run(mut self) {
        while let Some(group) = self.queue.take(MAX_GROUP, self.sleep()) {
            let now = self.clock.now();
            self.expire(now);
            if group.is_empty() && self.dirty.is_none() && self.has_changed && !self.has_failed() {
                self.engine.rest();
                self.has_changed = false;
            }
            self.answer(group, now);
            let is_late = |since: Duration| now.since >= since + SYNC_DELAY;
            if self.dirty.is_some_and(is_late) || self.unsynced.len() >= MAX_UNSYNCED {
                self.sync(now);
            }
        }
        let now = self.clock.now();
        self.sync(now);
    }

    /// Returns the time until something is to be done without a request.
    fn sleep(&self) -> Duration {
        let now = self.clock.now().since;
        let expiry = self.engine.next_expiry();
        let expiry = expiry.map(|next| next.max(self.expire_after));
        let sync = self.dirty.map(|since| since + SYNC_DELAY);
        let next = expiry.into_iter().chain(sync).min();
        let sleep = next.map_or(MAX_SLEEP, |next| next.saturating_sub(now));
        if self.has_failed() {
            return MAX_SLEEP;
        }
        let rest = if self.has_changed {
            REST_DELAY
        } else {
            MAX_SLEEP
        };
        sleep.min(rest)
    }

    /// Removes jobs whose time is over.
    fn expire(&mut self, now: Now) {
        let is_due = |next: Duration| next.max(self.expire_after) <= now.since;
        if self.has_failed() || !self.engine.next_expiry().is_some_and(is_due) {
            return;
        }
        match self.engine.expire(now) {
            Ok(ids) => {
                self.dirty.get_or_insert(now.since);
                for id in &ids {
                    self.watchers.notify(id);
                }
                // A group removes a number of jobs only.
                self.expire(now);
            }
            Err(failure) => self.recover(Vec::new(), failure, now),
        }
    }

    /// Runs a group and answers it. Changes are committed first.
    fn answer(&mut self, mut group: Vec<Waiting>, now: Now) {
        if group.is_empty() {
            return;
        }
        if let Some(reason) = self.queue.failed().filter(|_| self.has_failed()) {
            for waiting in &mut group {
                let reason = reason.clone();
                waiting
                    .request
                    .answer(Err(StoreError::Unavailable { reason }));
            }
            return;
        }
        match self.run_group(&mut group, now) {
            Ok(()) => self.held(group, now),
            Err(failure) => self.recover(group, failure, now),
        }
    }

    /// Runs the requests, and commits if one of them asks for it.
    fn run_group(&mut self, group: &mut [Waiting], now: Now) -> Result<(), Failure> {
        let mut is_durable = false;
        for waiting in group {
            waiting.request.run(&mut self.engine, now)?;
            is_durable |= match waiting.request.effect() {
                Effect::Read | Effect::Events(_) => false,
                Effect::Create | Effect::Change => true,
            };
        }
        if is_durable {
            self.commit()?;
        }
        Ok(())
    }

    /// Makes all changes durable.
    fn commit(&mut self) -> Result<(), Failure> {
        self.engine.commit()?;
        self.unsynced.clear();
        self.dirty = None;
        self.has_changed = true;
        Ok(())
    }

    /// Answers a group whose changes hold.
    fn held(&mut self, group: Vec<Waiting>, now: Now) {
        let is_synced = group.iter().any(|waiting| {
            let effect = waiting.request.effect();
            effect == Effect::Create || effect == Effect::Change
        });
        for mut waiting in group {
            self.answer_one(waiting.request.as_mut(), Ok(()));
            let Effect::Events(_) = waiting.request.effect() else {
                continue;
            };
            if !is_synced {
                self.dirty.get_or_insert(now.since);
                self.unsynced.push(waiting);
            }
        }
    }

    /// Answers a request and wakes the watchers of its job.
    fn answer_one(&self, request: &mut dyn Request, held: Result<(), StoreError>) {
        let is_changed = held.is_ok() && request.effect() != Effect::Read;
        request.answer(held);
        if let Some(id) = request.job().filter(|_| is_changed) {
            self.watchers.notify(id);
        }
    }

    /// Makes events durable that wait for it.
    fn sync(&mut self, now: Now) {
        if self.dirty.is_none() || self.has_failed() {
            return;
        }
        if let Err(failure) = self.commit() {
            self.recover(Vec::new(), failure, now);
        }
    }

    /// Takes a failed group back, and runs its requests one by one.
    fn recover(&mut self, group: Vec<Waiting>, failure: Failure, now: Now) {
        let mut failed = Some(failure);
        let unsynced = std::mem::take(&mut self.unsynced);
        self.dirty = None;
        let is_asked = !group.is_empty();
        let mut rest = unsynced.into_iter().chain(group);
        if failed == Some(Failure::NoSpace) {
            failed = self.engine.rollback(now).err();
            if !is_asked {
                // The removal of jobs makes room, and may use the reserve for it.
                self.engine.release_room();
                self.expire_after = now.since + EXPIRE_DELAY;
            }
            while failed.is_none()
                && let Some(mut waiting) = rest.next()
            {
                failed = self.run_alone(waiting.request.as_mut(), now).err();
            }
        }
        let Some(failure) = failed else {
            return;
        };
        let error = StoreError::from(failure);
        if let StoreError::Unavailable { reason } = &error {
            tracing::error!(event = "job_store_unavailable", %reason, "the job store cannot be used");
            self.queue.fail(reason);
        }
        for mut waiting in rest {
            waiting.request.answer(Err(error.clone()));
        }
        self.watchers.end();
    }

    /// Runs a request in its own group. A change of a job that exists may use the reserved room. While that room is not
    /// reserved, ends are stored without large results.
    fn run_alone(&mut self, request: &mut dyn Request, now: Now) -> Result<(), Failure> {
        let may_use_reserve = match request.effect() {
            Effect::Read | Effect::Change => true,
            Effect::Create | Effect::Events(_) => false,
        };
        let mut held = self.try_alone(request, now)?;
        if !held && may_use_reserve {
            self.engine.release_room();
            held = self.try_alone(request, now)?;
        }
        if held {
            self.answer_one(request, Ok(()));
            return Ok(());
        }
        if let (Effect::Events(number), Some(id)) = (request.effect(), request.job()) {
            self.engine.lose_events(id, number);
        }
        request.answer(Err(StoreError::NoSpace));
        Ok(())
    }

    /// Runs a request and commits it. Returns `false` if the disk has no room for it.
    fn try_alone(&mut self, request: &mut dyn Request, now: Now) -> Result<bool, Failure> {
        let mut held = request.run(&mut self.engine, now);
        if held.is_ok() && request.effect() != Effect::Read {
            held = self.engine.commit();
        }
        match held {
            Ok(()) => Ok(true),
            Err(Failure::NoSpace) => self.engine.rollback(now).map(|()| false),
            Err(failure) => {
                request.answer(Err(failure.clone().into()));
                Err(failure)
            }
        }
    }

    /// Whether the store answers no more because of a failure, not because it is closed.
    fn has_failed(&self) -> bool {
        self.queue.has_failed()
    }
}
