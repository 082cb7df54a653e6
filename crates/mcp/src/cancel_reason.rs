//! The reason that a client gives when it cancels a call. A call is cancelled by dropping its task, and the drop tells the
//! server. So that calls have no room for a reason, it waits in a table until the task takes it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::task::{self, Id as TaskId};

/// The maximum characters of a reason; a longer one is cut.
const MAX_REASON_CHARS: usize = 256;
/// The maximum number of reasons that wait. Those of calls that ended before are never taken, and replaced.
const MAX_WAITING: usize = 256;

static WAITING: Mutex<VecDeque<(TaskId, Box<str>)>> = Mutex::new(VecDeque::new());

/// Keeps the reason of a task that is aborted next.
pub fn note_cancel_reason(task: TaskId, reason: &str) {
    let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.len() >= MAX_WAITING {
        waiting.pop_front();
    }
    waiting.push_back((task, reason.into()));
}

/// Returns the reason of the task that is dropped now, if its client gave one.
pub(crate) fn take() -> Option<Box<str>> {
    let task = task::try_id()?;
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let at = waiting.iter().position(|(of, _)| *of == task)?;
    waiting.remove(at).map(|(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    struct TakesWhenDropped(Option<oneshot::Sender<Option<Box<str>>>>);

    impl Drop for TakesWhenDropped {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                let _: Result<(), _> = sender.send(take());
            }
        }
    }

    async fn taken(reason: Option<&str>) -> Option<Box<str>> {
        let (sender, received) = oneshot::channel();
        let dropped = TakesWhenDropped(Some(sender));
        let task = tokio::spawn(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        });
        task::yield_now().await;
        if let Some(reason) = reason {
            note_cancel_reason(task.id(), reason);
        }
        task.abort();
        received.await.unwrap()
    }

    #[tokio::test]
    async fn reason_is_taken_once_by_the_task_that_is_aborted() {
        assert_eq!(taken(None).await, None);
        assert_eq!(taken(Some("a \"b\"\n")).await.as_deref(), Some("a \"b\"\n"));
        let long = "é".repeat(300);
        let cut = taken(Some(&long)).await.unwrap();
        assert_eq!(cut.chars().count(), MAX_REASON_CHARS);
        assert_eq!(take(), None);
        // Those that no task takes are bounded.
        let ended = tokio::spawn(async {});
        let id = ended.id();
        ended.await.unwrap();
        for _ in 0..2 * MAX_WAITING {
            note_cancel_reason(id, "late");
        }
        assert!(WAITING.lock().unwrap().len() <= MAX_WAITING);
        assert_eq!(taken(Some("in time")).await.as_deref(), Some("in time"));
    }
}
