//! Runs computations away from the threads of the runtime. A program gives its own pool.

/// A pool for computations.
pub trait Offload: Send + Sync {
    /// Returns the outcome of a job; `None` if the pool has no room for it, or the job panics.
    fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send;
}

/// The blocking threads of the runtime, for programs without a pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockingThreads;

impl Offload for BlockingThreads {
    async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        tokio::task::spawn_blocking(job).await.ok()
    }
}
