//! Waits for changes of one job without asking for them again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::id::JobId;

/// The maximum number of jobs that are watched at a time.
const MAX_WATCHED: usize = 4_096;

/// The watched jobs.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    jobs: Mutex<HashMap<JobId, watch::Sender<u64>>>,
}

impl Watchers {
    /// Watches a job. Returns `None` if too many jobs are watched.
    pub(crate) fn subscribe(self: &Arc<Self>, id: &JobId) -> Option<JobWatch> {
        let mut jobs = self.lock();
        if !jobs.contains_key(id) && jobs.len() >= MAX_WATCHED {
            return None;
        }
        let sender = jobs
            .entry(id.clone())
            .or_insert_with(|| watch::Sender::new(0));
        Some(JobWatch {
            id: id.clone(),
            changes: sender.subscribe(),
            watchers: Arc::clone(self),
        })
    }

    /// Wakes the watchers of a job.
    pub(crate) fn notify(&self, id: &JobId) {
        if let Some(sender) = self.lock().get(id) {
            sender.send_modify(|changes| *changes += 1);
        }
    }

    /// Ends all watches: the store answers no more.
    pub(crate) fn end(&self) {
        self.lock().clear();
    }

    /// Returns the number of watched jobs.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, watch::Sender<u64>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch of one job. The store forgets the job with its last watch.
#[derive(Debug)]
pub struct JobWatch {
    id: JobId,
    changes: watch::Receiver<u64>,
    watchers: Arc<Watchers>,
}

impl JobWatch {
    /// Waits until the job has changed since the last call: by an event, in its state, or by its removal. The first call
    /// waits for a change since the watch began. Returns `false` if the store answers no more.
    pub async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }
}

impl Drop for JobWatch {
    fn drop(&mut self) {
        let mut jobs = self.watchers.lock();
        // This watch still counts.
        if jobs
            .get(&self.id)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            jobs.remove(&self.id);
        }
    }
}
