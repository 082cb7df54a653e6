//! Slow calls that wait on a separate thread, so that they can be cancelled by request id. It bounds their
//! number, independent of their answers.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// Maximum number of waiting slow calls.
pub(crate) const MAX_PENDING: usize = 64;

/// The reason why a slow call was not started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    TooMany,
    IdInUse,
    NoThread,
}

#[derive(Clone, Default)]
pub(crate) struct Pending {
    // The key is the id as JSON, so that `1` and `"1"` are two calls.
    cancels: Arc<Mutex<HashMap<String, SyncSender<()>>>>,
}

impl Pending {
    /// Runs `finish` after `wait` on another thread, unless the call is cancelled before. `tick` gets the seconds that have
    /// passed, each second before that.
    pub(crate) fn begin(
        &self,
        id: &Value,
        wait: Duration,
        tick: impl Fn(u64) + Send + 'static,
        finish: impl FnOnce() + Send + 'static,
    ) -> Result<(), Refused> {
        let cancelled = self.register(id)?;
        let pending = self.clone();
        let key = id.to_string();
        let started = std::thread::Builder::new()
            .name("slow call".to_owned())
            .spawn(move || {
                let is_over = wait_ticking(&cancelled, wait, tick);
                pending.forget(&key);
                if is_over {
                    finish();
                }
            });
        match started {
            Ok(_detached) => Ok(()),
            Err(_) => {
                self.forget(&id.to_string());
                Err(Refused::NoThread)
            }
        }
    }

    /// Ends the wait of the call with this id; an unknown id is ignored.
    pub(crate) fn cancel(&self, id: &Value) {
        let cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancel) = cancels.get(&id.to_string()) {
            match cancel.try_send(()) {
                // Full: it was cancelled already. Disconnected: its wait has just ended.
                Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
            }
        }
    }

    fn register(&self, id: &Value) -> Result<Receiver<()>, Refused> {
        let mut cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        if cancels.len() >= MAX_PENDING {
            return Err(Refused::TooMany);
        }
        if cancels.contains_key(&id.to_string()) {
            return Err(Refused::IdInUse);
        }
        let (cancel, cancelled) = sync_channel(1);
        cancels.insert(id.to_string(), cancel);
        Ok(cancelled)
    }

    fn forget(&self, key: &str) {
        let mut cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        cancels.remove(key);
    }
}

/// Waits; returns whether the wait is over, and the call was not cancelled before.
fn wait_ticking(cancelled: &Receiver<()>, wait: Duration, tick: impl Fn(u64)) -> bool {
    let mut left = wait;
    for second in 1.. {
        let part = left.min(Duration::from_secs(1));
        if cancelled.recv_timeout(part) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
        left -= part;
        if left.is_zero() {
            return true;
        }
        tick(second);
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slow_call_over_the_limit_or_with_a_used_id_is_refused() {
        let pending = Pending::default();
        let hour = Duration::from_secs(3600);
        for id in 0..MAX_PENDING - 1 {
            pending.begin(&json!(id), hour, |_| (), || ()).unwrap();
        }
        assert_eq!(
            pending.begin(&json!(0), hour, |_| (), || ()),
            Err(Refused::IdInUse)
        );
        pending.begin(&json!("0"), hour, |_| (), || ()).unwrap();
        assert_eq!(
            pending.begin(&json!("x"), hour, |_| (), || ()),
            Err(Refused::TooMany)
        );
    }

    #[test]
    fn slow_call_that_is_cancelled_does_not_finish() {
        let pending = Pending::default();
        let (done, finished) = sync_channel(2);
        let first = done.clone();
        pending
            .begin(
                &json!(1),
                Duration::from_secs(3600),
                |_| (),
                move || first.send("cancelled").unwrap(),
            )
            .unwrap();
        pending.cancel(&json!("1"));
        assert!(pending.cancels.lock().unwrap().contains_key("1"));
        pending.cancel(&json!(1));
        pending
            .begin(
                &json!("1"),
                Duration::ZERO,
                |_| (),
                move || done.send("finished").unwrap(),
            )
            .unwrap();
        // Both senders are gone when both threads have ended.
        assert_eq!(finished.iter().collect::<Vec<_>>(), ["finished"]);
    }

    #[test]
    fn wait_of_a_slow_call_ticks_each_second() {
        let (tick, ticks) = sync_channel(8);
        let pending = Pending::default();
        let (done, finished) = sync_channel(1);
        pending
            .begin(
                &json!(1),
                Duration::from_millis(2100),
                move |second| tick.send(second).unwrap(),
                move || done.send("finished").unwrap(),
            )
            .unwrap();
        assert_eq!(finished.recv(), Ok("finished"));
        assert_eq!(ticks.iter().collect::<Vec<_>>(), [1, 2]);
    }
}
