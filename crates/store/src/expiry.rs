//! The ends of the times for which ended jobs are kept, on both clocks.
//!
//! A job is removed when its stored time has passed and the rest of its time has also passed on the clock that never jumps. So
//! a clock that jumps ahead removes nothing early. If the stored time is still to come after twice the time, the clock has
//! jumped back, and the job is removed. After a restart of the machine the rest of the time follows from the stored time.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use crate::clock::Now;
use crate::id::JobId;
use crate::store::EndedJob;

/// The times of one job.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// The stored time.
    expires: SystemTime,
    /// The earliest removal.
    earliest: Duration,
    /// The latest removal.
    latest: Duration,
    /// The next look at the job.
    next: Duration,
}

/// The ended jobs of a store.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    times: HashMap<JobId, Times>,
    order: BTreeSet<(Duration, Box<str>)>,
}

/// Returns the time that a job has left. More than its whole time is left if the clock has jumped back between two starts of
/// the machine.
pub(crate) fn left(job: &EndedJob, now: Now) -> Duration {
    let passed = job
        .ended_since
        .and_then(|ended| now.since.checked_sub(ended));
    passed.map_or_else(
        || job.expires.duration_since(now.wall).unwrap_or_default(),
        |passed| job.ttl.saturating_sub(passed),
    )
}

impl Expiry {
    /// Adds an ended job.
    pub(crate) fn add(&mut self, job: &EndedJob, now: Now) {
        let left = left(job, now);
        let earliest = now.since + left.min(job.ttl);
        let latest = if left > job.ttl {
            earliest
        } else {
            earliest + job.ttl
        };
        self.remove(&job.id);
        let times = Times {
            expires: job.expires,
            earliest,
            latest,
            next: earliest,
        };
        self.order.insert((earliest, job.id.as_str().into()));
        self.times.insert(job.id.clone(), times);
    }

    /// Takes a job away.
    pub(crate) fn remove(&mut self, id: &JobId) {
        if let Some(times) = self.times.remove(id) {
            self.order.remove(&(times.next, id.as_str().into()));
        }
    }

    /// Removes all jobs.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the time of the next look, on the clock that never jumps.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.order.first().map(|(next, _)| *next)
    }

    /// Takes up to `max` jobs whose time is over.
    pub(crate) fn take(&mut self, now: Now, max: usize) -> Vec<JobId> {
        let mut taken = Vec::new();
        while taken.len() < max
            && self.next().is_some_and(|next| next <= now.since)
            && let Some((_, text)) = self.order.pop_first()
        {
            let Some(id) = JobId::parse(&text) else {
                continue;
            };
            let Some(times) = self.times.get_mut(&id) else {
                continue;
            };
            let left = times.expires.duration_since(now.wall).unwrap_or_default();
            let is_over = now.since >= times.earliest && left.is_zero();
            if is_over || now.since >= times.latest {
                self.times.remove(&id);
                taken.push(id);
                continue;
            }
            times.next = times.latest.min(now.since + left);
            self.order.insert((times.next, text));
        }
        taken
    }
}
