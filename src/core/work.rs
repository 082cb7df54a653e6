//! Work on a request that takes long: a bounded number of threads for it, and a bounded number of
//! requests that wait for one. The threads are those that the runtime keeps for blocking work, so
//! the tasks that answer other callers never wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that wait for a thread.
const MAX_WAITING: usize = 64;

/// Runs jobs on half the cores.
#[derive(Clone, Debug)]
pub(super) struct WorkPool {
    threads: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// Set when the result of a job is no longer waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Too many requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) waiting: usize,
}

impl WorkPool {
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            threads: Arc::new(Semaphore::new((cores / 2).max(1))),
            waiting: Arc::default(),
        }
    }

    /// Runs a job as soon as a thread is free. Dropping the future takes it out of the queue, or asks
    /// it to stop. A panic of the job goes on here.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let place = Place::take(&self.waiting)?;
        let thread = self.thread().await;
        drop(place);
        let stop = Stop::default();
        let asked = StopOnDrop(stop.clone());
        let outcome = on_thread(thread, move || job(&stop)).await;
        drop(asked);
        Ok(outcome)
    }

    /// Runs a job that must not be refused and whose number is bounded elsewhere: it waits for a thread
    /// without a limit.
    pub(super) async fn run_bounded<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        on_thread(self.thread().await, job).await
    }

    async fn thread(&self) -> OwnedSemaphorePermit {
        let thread = self.threads.clone().acquire_owned().await;
        thread.expect("it is never closed")
    }
}

async fn on_thread<T: Send + 'static>(
    thread: OwnedSemaphorePermit,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let running = tokio::task::spawn_blocking(move || {
        let outcome = job();
        drop(thread);
        outcome
    });
    match running.await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down and polls nothing any more.
            Err(_) => std::future::pending().await,
        },
    }
}

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Busy> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        if before >= MAX_WAITING {
            return Err(Busy { waiting: before });
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    fn pool_of_one() -> WorkPool {
        WorkPool {
            threads: Arc::new(Semaphore::new(1)),
            waiting: Arc::default(),
        }
    }

    /// Runs until it is asked to stop.
    fn endless(stop: &Stop) {
        while !stop.is_set() {
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_job_that_is_given_up_stops_and_makes_room() {
        let pool = pool_of_one();
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, pool.run(endless)).await.is_err());
        assert_eq!(pool.run(|_| 7).await, Ok(7));
        assert_eq!(pool.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_job_that_leaves_it_makes_room() {
        let pool = pool_of_one();
        let running = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(endless).await }
        });
        while pool.threads.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let mut queue: Vec<_> = (0..MAX_WAITING)
            .map(|_| Box::pin(pool.run(|_| ())))
            .collect();
        for waiting in &mut queue {
            assert!(timeout(Duration::ZERO, waiting).await.is_err());
        }
        let refused = pool.run(|_| ()).await;
        assert_eq!(
            refused,
            Err(Busy {
                waiting: MAX_WAITING
            })
        );
        queue.pop();
        let mut next = Box::pin(pool.run(|_| ()));
        assert!(
            timeout(Duration::ZERO, &mut next).await.is_err(),
            "it waits"
        );
        running.abort();
        drop(queue);
        assert_eq!(next.await, Ok(()));
    }

    #[tokio::test]
    async fn a_panic_of_a_job_goes_on_and_frees_the_thread() {
        let pool = pool_of_one();
        let failing = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(|_| panic!("planned")).await }
        });
        assert!(failing.await.is_err_and(|error| error.is_panic()));
        assert_eq!(pool.run(|_| 7).await, Ok(7));
    }
}
