//! The task that a server made of a call, for the layer that keeps the call as a job.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::RemoteTask;

/// Takes the task of one call.
#[derive(Debug, Default)]
pub(crate) struct TaskSlot {
    made: OnceLock<(RemoteTask, bool)>,
    changed: Notify,
    is_left: AtomicBool,
}

impl TaskSlot {
    /// Notes the task, and whether it outlives the broker.
    pub(crate) fn note(&self, task: &RemoteTask, survives: bool) {
        self.made.get_or_init(|| (task.clone(), survives));
        self.changed.notify_waiters();
    }

    /// Returns the task, once there is one, and whether it outlives the broker.
    pub(crate) async fn made(&self) -> (RemoteTask, bool) {
        loop {
            let changed = self.changed.notified();
            if let Some(made) = self.made.get() {
                return made.clone();
            }
            changed.await;
        }
    }

    /// Has the server go on with the task when the call is dropped.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Whether the server goes on with the task when the call is dropped.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }
}
