//! Requests that wait, and their cancels.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cancellable requests by key: the id as JSON, so that `1` and `"1"` are two requests, and over HTTP the
/// session before it.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<String, SyncSender<()>>>);

impl Waiting {
    /// Makes a request cancellable until [`Self::stop`].
    pub(crate) fn start(&self, key: &str) -> Receiver<()> {
        let (cancel, cancelled) = sync_channel(1);
        self.lock().insert(key.to_owned(), cancel);
        cancelled
    }

    pub(crate) fn stop(&self, key: &str) {
        self.lock().remove(key);
    }

    pub(crate) fn cancel(&self, key: &str) {
        if let Some(cancel) = self.lock().get(key) {
            match cancel.try_send(()) {
                // Full: it was cancelled already. Disconnected: its wait has just ended.
                Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SyncSender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
