//! The deadline of a stop, if there is one: shortens the graces of a stop, also of one in progress.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A deadline that may be set or moved at any time.
#[derive(Clone, Debug)]
pub struct StopDeadline(watch::Receiver<Option<Instant>>);

impl StopDeadline {
    /// Follows the deadline in `by`.
    pub fn new(by: watch::Receiver<Option<Instant>>) -> Self {
        Self(by)
    }

    /// Makes a handle without a deadline.
    pub fn never() -> Self {
        Self(watch::Sender::new(None).subscribe())
    }

    /// Awaits `future` for at most `grace`, and at most for the remaining time divided by `parts`.
    pub async fn bound<F: Future>(
        &mut self,
        grace: Duration,
        parts: u32,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let began = Instant::now();
        let mut may_change = true;
        loop {
            let mut until = began + grace;
            if let Some(by) = *self.0.borrow_and_update() {
                until = until.min(began + by.saturating_duration_since(began) / parts);
            }
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = sleep_until(until) => return None,
                changed = self.0.changed(), if may_change => may_change = changed.is_ok(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn stop_deadline_ends_a_grace_early() {
        let by = watch::Sender::new(None);
        let mut stop_deadline = StopDeadline::new(by.subscribe());
        let waiting = stop_deadline.bound(HOUR, 2, std::future::pending::<()>());
        let (ended, ()) = tokio::join!(waiting, async {
            tokio::task::yield_now().await;
            by.send_replace(Some(Instant::now() + Duration::from_millis(20)));
        });
        assert!(ended.is_none());
        // The deadline has passed: only a future that is ready at once completes.
        assert_eq!(stop_deadline.bound(HOUR, 1, async { 7 }).await, Some(7));
        let pending = std::future::pending::<()>();
        assert!(stop_deadline.bound(HOUR, 1, pending).await.is_none());
        let short = Duration::from_millis(1);
        let pending = std::future::pending::<()>();
        assert!(
            StopDeadline::never()
                .bound(short, 1, pending)
                .await
                .is_none()
        );
    }
}
