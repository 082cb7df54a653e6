//! Limits on concurrent work of the sources of one broker. Each broker has its limits, so two brokers
//! in one program never wait for each other.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

/// The maximum number of listings that are parsed at one time, over all sources and instances.
const MAX_PARSED_LISTINGS: usize = 4;
/// The maximum number of sources that restart at one time. First starts are not limited.
const MAX_RESTARTS: usize = 4;

/// Limits on concurrent work of the sources of one broker. Cheap to clone; all clones share the
/// permits.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimits {
    parsing: Arc<Semaphore>,
    restarts: Arc<Semaphore>,
}

impl ConcurrencyLimits {
    /// Makes the limits of a new broker.
    pub fn new() -> Self {
        Self {
            parsing: Arc::new(Semaphore::new(MAX_PARSED_LISTINGS)),
            restarts: Arc::new(Semaphore::new(MAX_RESTARTS)),
        }
    }

    /// Runs `work` on a blocking thread when a permit is free. All code that parses tools of a live
    /// listing runs here, since a parsed tool can take a hundred times the memory of its text. Work
    /// that has begun runs to its end and keeps its permit, even if the future is dropped.
    pub async fn parse_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // The semaphore is never closed.
        let permit = self.parsing.clone().acquire_owned().await.ok();
        let run = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(run).await
    }

    /// Waits for a permit to start a source again.
    pub(crate) async fn restart(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.restarts.clone().acquire_owned().await.ok()
    }
}

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn concurrency_limits_are_shared_by_clones_and_not_by_brokers() {
        let concurrency = ConcurrencyLimits::new();
        let mut held = Vec::new();
        for _ in 0..MAX_PARSED_LISTINGS {
            held.push(concurrency.parsing.clone().acquire_owned().await);
        }
        for _ in 0..MAX_RESTARTS {
            held.push(concurrency.restarts.clone().acquire_owned().await);
        }
        let hour = Duration::from_secs(3600);
        let clone = concurrency.clone();
        assert!(timeout(hour, clone.parse_aside(|| ())).await.is_err());
        assert!(timeout(hour, clone.restart()).await.is_err());
        let other = ConcurrencyLimits::new();
        assert!(other.parse_aside(|| ()).await.is_ok() && other.restart().await.is_some());
        held.clear();
        assert!(clone.parse_aside(|| ()).await.is_ok() && clone.restart().await.is_some());
    }

    /// With one blocking thread, work begins in the order of its submission.
    #[test]
    fn listings_are_parsed_at_most_four_at_a_time() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let concurrency = ConcurrencyLimits::new();
            let begun = Arc::<AtomicUsize>::default();
            let mut parts: Vec<_> = (0..16)
                .map(|_| {
                    let begun = begun.clone();
                    Box::pin(concurrency.parse_aside(move || begun.fetch_add(1, Ordering::SeqCst)))
                })
                .collect();
            // Work begins, and gives back its permit, only after all parts were polled.
            let (go, wait) = std::sync::mpsc::channel::<()>();
            let first = tokio::task::spawn_blocking(move || wait.recv().is_err());
            // Work that has a permit is submitted when it is polled for the first time.
            for part in &mut parts {
                tokio::select! {
                    biased;
                    _ = part => {}
                    () = std::future::ready(()) => {}
                }
            }
            drop(go);
            assert!(first.await.unwrap());
            let handed_over = begun.clone();
            let count = tokio::task::spawn_blocking(move || handed_over.load(Ordering::SeqCst));
            let count = count.await.unwrap();
            assert!(count <= 4, "{count} listings were parsed at one time");
            for part in parts {
                part.await.unwrap();
            }
            assert_eq!(begun.load(Ordering::SeqCst), 16);
        });
    }
}
