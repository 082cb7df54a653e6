//! A pool for long work on requests: a bounded number of threads, and a bounded number of requests that wait for one.
//! The runtime's threads serve other callers and never do this work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

use broker_memory::{Owner, TurnQueue};
use tokio::sync::oneshot;

/// The maximum number of requests that wait for a thread.
const MAX_WAITING: usize = 64;
/// One caller has at most this part of them while another waits.
const QUEUE_PART: usize = 4;
/// The stack of a thread. Checking arguments takes at most half of it.
const STACK_BYTES: usize = 2 << 20;

/// Runs jobs on half the cores; callers take turns. A job must not wait for another job
/// of the same pool. The threads end when the pool is dropped.
pub(crate) struct WorkPool(Arc<PoolShared>);

/// The part of a pool that its threads share.
struct PoolShared {
    name: &'static str,
    max_threads: usize,
    start_thread: fn(thread::Builder, Arc<Self>) -> io::Result<()>,
    state: Mutex<PoolState>,
    /// Notified for each job that is added, and when the pool is closed.
    changed: Condvar,
}

struct PoolState {
    queue: TurnQueue<Job>,
    /// The number of the next job.
    next: u64,
    /// Threads that were started.
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    is_closed: bool,
}

impl Default for PoolState {
    fn default() -> Self {
        Self {
            queue: TurnQueue::new(MAX_WAITING, QUEUE_PART),
            next: 0,
            threads: 0,
            idle: 0,
            is_closed: false,
        }
    }
}

struct Job {
    number: u64,
    run: Box<dyn FnOnce() + Send>,
}

/// Tells a running job to stop: set when the caller has dropped the future of the job.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

/// Why a job is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolError {
    /// This many requests are already waiting, or the caller has its part of the places.
    Full { waiting: usize },
    /// The pool has no thread, and the operating system refused to start one.
    NoThread,
}

impl WorkPool {
    /// Makes a pool whose threads are called `name` and a number. They are started when they are needed.
    pub(crate) fn new(name: &'static str) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::with_threads(name, (cores / 2).max(1), start_thread)
    }

    fn with_threads(
        name: &'static str,
        max_threads: usize,
        start_thread: fn(thread::Builder, Arc<PoolShared>) -> io::Result<()>,
    ) -> Self {
        Self(Arc::new(PoolShared {
            name,
            max_threads,
            start_thread,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Runs a job of this owner when it is its turn and a thread is free. Dropping the future takes it out of the queue, or asks
    /// it to stop. A panic of the job continues in the caller.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        owner: Owner,
        job: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let stop = StopFlag::default();
        let of_job = stop.clone();
        let submitted = self.submit(owner, false, stop, move || job(&of_job));
        submitted.map_err(|(busy, _)| busy)?.outcome().await
    }

    /// Runs a job that must not be refused and whose number is bounded elsewhere: it waits for a thread without a
    /// limit, and runs in place if the operating system refuses to start one.
    pub(crate) async fn run_bounded<T: Send + 'static>(
        &self,
        owner: Owner,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self.submit(owner, true, StopFlag::default(), job) {
            Ok(submitted) => match submitted.outcome().await {
                Ok(outcome) => outcome,
                // Every job of such a pool is bounded, so no job gives its place to another.
                Err(_) => std::future::pending().await,
            },
            Err((_, Some(job))) => job(),
            Err((_, None)) => std::future::pending().await,
        }
    }

    /// Adds a job to the queue. One that `is_bounded` always has a place. Gives the job back if the pool lacks a
    /// thread.
    fn submit<T: Send + 'static, J: FnOnce() -> T + Send + 'static>(
        &self,
        owner: Owner,
        is_bounded: bool,
        stop: StopFlag,
        job: J,
    ) -> Result<PendingJob<'_, T>, (PoolError, Option<J>)> {
        let shared = &self.0;
        let mut state = shared.state();
        if state.idle <= state.queue.len() && state.threads < shared.max_threads {
            let name = format!("{}-{}", shared.name, state.threads);
            let thread = thread::Builder::new().name(name).stack_size(STACK_BYTES);
            match (shared.start_thread)(thread, Arc::clone(shared)) {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::error!(%error, "no thread for long requests can be started");
                    return Err((PoolError::NoThread, Some(job)));
                }
                // The existing threads run the job.
                Err(error) => {
                    tracing::debug!(%error, "no further thread for long requests can be started");
                }
            }
        }
        let (sender, receiver) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        let job = Job {
            number,
            run: Box::new(move || {
                let outcome = catch_unwind(AssertUnwindSafe(job));
                // The caller may be gone.
                drop(sender.send(outcome));
            }),
        };
        let pushed = match is_bounded {
            true => {
                state.queue.push_bounded(owner, job);
                Ok(None)
            }
            false => state.queue.push(owner, job),
        };
        let waiting = state.queue.len();
        // A job that is dropped is dropped after the lock was released: its drop may take long.
        drop(state);
        if pushed.is_err() {
            return Err((PoolError::Full { waiting }, None));
        }
        shared.changed.notify_one();
        Ok(PendingJob {
            shared,
            owner,
            number,
            stop,
            receiver,
        })
    }
}

impl Drop for WorkPool {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_closed = true;
        // Every future of a job borrows the pool, so no future waits for these.
        let left: Vec<_> = state.queue.drain().collect();
        drop(state);
        self.0.changed.notify_all();
        drop(left);
    }
}

fn start_thread(thread: thread::Builder, shared: Arc<PoolShared>) -> io::Result<()> {
    thread.spawn(move || shared.serve()).map(drop)
}

impl PoolShared {
    /// Runs jobs until the pool is closed.
    fn serve(&self) {
        while let Some(job) = self.next_job() {
            (job.run)();
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.queue.pop() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Takes a job out of the queue, if it is still there.
    fn withdraw(&self, owner: Owner, number: u64) {
        let mut state = self.state();
        let job = state.queue.remove(owner, |job| job.number == number);
        // The closure of a job is dropped after the lock was released: its drop may take long.
        drop(state);
        drop(job);
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job in the queue or on a thread, until its outcome is there.
struct PendingJob<'a, T> {
    shared: &'a PoolShared,
    owner: Owner,
    number: u64,
    stop: StopFlag,
    receiver: oneshot::Receiver<thread::Result<T>>,
}

impl<T> PendingJob<'_, T> {
    async fn outcome(mut self) -> Result<T, PoolError> {
        match (&mut self.receiver).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(panic)) => resume_unwind(panic),
            // The job gave its place to one of a caller with fewer.
            Err(_) => Err(PoolError::Full {
                waiting: MAX_WAITING,
            }),
        }
    }
}

impl<T> Drop for PendingJob<'_, T> {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        if !self.receiver.is_terminated() {
            self.shared.withdraw(self.owner, self.number);
        }
    }
}

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
