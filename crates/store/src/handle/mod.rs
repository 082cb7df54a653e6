//! The handle of a store: asks the thread that owns it, and waits without blocking a thread of the runtime.

mod queue;
mod request;
mod writer;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::clock::{Clock, Now};
use crate::engine::Engine;
use crate::error::{Failure, OpenError, StoreError};
use crate::id::JobId;
use crate::job::{
    CancelOutcome, Claim, Created, Events, Job, JobEnd, ListQuery, NewEvent, NewJob, Page,
    QueuedOwner, Recovered, Usage,
};
use crate::memory::MemoryStore;
use crate::settings::StoreSettings;
use crate::store::Store;
use crate::watch::{JobWatch, Watchers};

use queue::Queue;
use request::{Asked, Effect};
use writer::Writer;

/// A store of jobs. Clones are one store. When the last clone is dropped, the store is closed.
///
/// A change is committed before its method returns. Dropping the future of a method does not take its request back.
#[derive(Clone, Debug)]
pub struct JobStore(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    watchers: Arc<Watchers>,
    is_durable: bool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl JobStore {
    /// Opens a store, and ends or queues again what the last run left unfinished.
    pub async fn open(settings: StoreSettings) -> Result<(Self, Recovered), OpenError> {
        let (queue, watchers) = (Arc::new(Queue::default()), Arc::new(Watchers::default()));
        let (reply, opened) = oneshot::channel();
        let (its_queue, its_watchers) = (Arc::clone(&queue), Arc::clone(&watchers));
        let run = move || {
            let now = settings.clock.now();
            match open_engine(&settings, now) {
                Err(error) => {
                    // The caller may have left.
                    let _left = reply.send(Err(error));
                }
                Ok((engine, recovered)) => {
                    let is_durable = engine.is_durable();
                    let writer = Writer::new(engine, settings.clock, its_queue, its_watchers);
                    if reply.send(Ok((is_durable, recovered))).is_ok() {
                        writer.run();
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("job-store".to_owned())
            .spawn(run)
            .map_err(OpenError::Thread)?;
        let ended = || OpenError::Thread(std::io::Error::other("it ended at the opening"));
        let (is_durable, recovered) = opened.await.map_err(|_| ended())??;
        let handle = Handle {
            queue,
            watchers,
            is_durable,
        };
        Ok((Self(Arc::new(handle)), recovered))
    }

    /// Whether commits survive the process and the machine.
    pub fn is_durable(&self) -> bool {
        self.0.is_durable
    }

    /// Returns the reason why the store answers no more, if it does not.
    pub fn unavailable(&self) -> Option<String> {
        self.0.queue.failed()
    }

    /// Watches a job for changes. Returns `None` if too many jobs are watched.
    pub fn subscribe(&self, id: &JobId) -> Option<JobWatch> {
        self.0.watchers.subscribe(id)
    }

    /// Returns the number of jobs that are watched.
    pub fn watched(&self) -> usize {
        self.0.watchers.len()
    }

    /// Returns the number of requests that wait for the thread of the store.
    pub fn waiting(&self) -> usize {
        self.0.queue.waiting()
    }

    /// Stores a new job, or returns the one that has its idempotency key.
    pub async fn create(&self, new: NewJob) -> Result<Created, StoreError> {
        let bytes = new.args.len();
        self.refusable(Effect::Create, None, bytes, move |engine, now| {
            engine.create(&new, now)
        })
        .await
    }

    /// Claims a queued job whose cancel was not asked for.
    pub async fn claim(&self, id: &JobId) -> Result<Option<Claim>, StoreError> {
        self.change(id, |engine, id, now| engine.claim(id, now))
            .await
    }

    /// Claims a job that a server executes as a task that outlived its broker.
    pub async fn adopt(&self, id: &JobId) -> Result<Option<Claim>, StoreError> {
        self.change(id, |engine, id, now| engine.adopt(id, now))
            .await
    }

    /// Marks a job as sent and erases its arguments. After `false` the call must not be sent: the fence is stale, the job
    /// was sent before, or its cancel was asked for. After an error it must not be sent either.
    pub async fn mark_sent(&self, id: &JobId, fence: u64) -> Result<bool, StoreError> {
        self.change(id, move |engine, id, now| engine.mark_sent(id, fence, now))
            .await
    }

    /// Queues a claimed job again that was not sent.
    pub async fn requeue(&self, id: &JobId, fence: u64) -> Result<bool, StoreError> {
        self.change(id, move |engine, id, now| engine.requeue(id, fence, now))
            .await
    }

    /// Says whether a claimed job waits for an answer of its caller.
    pub async fn set_input_required(
        &self,
        id: &JobId,
        fence: u64,
        is_required: bool,
    ) -> Result<bool, StoreError> {
        self.change(id, move |engine, id, now| {
            engine.set_input_required(id, fence, is_required, now)
        })
        .await
    }

    /// Stores the task of the server that executes a claimed job, and whether it outlives this broker. Returns `false` if the
    /// fence is stale, or if the text has more than [`MAX_UPSTREAM_BYTES`](crate::MAX_UPSTREAM_BYTES).
    pub async fn set_upstream(
        &self,
        id: &JobId,
        fence: u64,
        task: String,
        survives: bool,
    ) -> Result<bool, StoreError> {
        self.change(id, move |engine, id, now| {
            engine.set_upstream(id, fence, &task, survives, now)
        })
        .await
    }

    /// Adds events to a claimed job. Returns the number of its last event, or `None` if the fence is stale. Readers see the
    /// events at once; a crash of the machine or the process may lose the last ones.
    pub async fn append(
        &self,
        id: &JobId,
        fence: u64,
        events: Vec<NewEvent>,
    ) -> Result<Option<u64>, StoreError> {
        let (its_id, number) = (id.clone(), events.len() as u64);
        let bytes = events.iter().map(|event| event.body.len()).sum();
        let run = move |engine: &mut Engine, now: Now| engine.append(&its_id, fence, &events, now);
        self.ask(Effect::Events(number), Some(id.clone()), bytes, run)
            .await
    }

    /// Ends a claimed job. Returns `false` if the fence is stale. The end always fits; a result or an error without room is
    /// left out, and the job says so.
    pub async fn finish(&self, id: &JobId, fence: u64, end: JobEnd) -> Result<bool, StoreError> {
        let bytes = end.result.as_ref().map_or(0, Bytes::len);
        let its_id = id.clone();
        let run = move |engine: &mut Engine, now: Now| engine.finish(&its_id, fence, &end, now);
        self.ask(Effect::Change, Some(id.clone()), bytes, run).await
    }

    /// Cancels a queued job, or asks the broker of a claimed job to end it.
    pub async fn cancel(&self, id: &JobId) -> Result<CancelOutcome, StoreError> {
        self.change(id, |engine, id, now| engine.cancel(id, now))
            .await
    }

    /// Returns the facts of a job.
    pub async fn get(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let id = id.clone();
        self.read(move |engine| engine.get(&id)).await
    }

    /// Returns the job of an owner with this path and this idempotency key.
    pub async fn find_key(
        &self,
        owner: String,
        path: String,
        key: String,
    ) -> Result<Option<Job>, StoreError> {
        self.read(move |engine| engine.find_key(&owner, &path, &key))
            .await
    }

    /// Returns the arguments of a job, until they are erased.
    pub async fn args(&self, id: &JobId) -> Result<Option<Bytes>, StoreError> {
        let id = id.clone();
        self.read(move |engine| engine.args(&id)).await
    }

    /// Returns the result of a job.
    pub async fn result(&self, id: &JobId) -> Result<Option<Bytes>, StoreError> {
        let id = id.clone();
        self.read(move |engine| engine.result(&id)).await
    }

    /// Returns up to `limit` events of a job behind `after`.
    pub async fn events(&self, id: &JobId, after: u64, limit: usize) -> Result<Events, StoreError> {
        let id = id.clone();
        self.read(move |engine| engine.events(&id, after, limit))
            .await
    }

    /// Lists jobs, the newest first.
    pub async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        self.read(move |engine| engine.list(&query)).await
    }

    /// Returns up to `per_owner` queued jobs of each owner, the oldest first, and the owner with the oldest job first.
    pub async fn queued(&self, per_owner: usize) -> Result<Vec<QueuedOwner>, StoreError> {
        self.read(move |engine| engine.queued(per_owner)).await
    }

    /// Returns the numbers of all jobs.
    pub async fn counts(&self) -> Result<Usage, StoreError> {
        self.read(Engine::total).await
    }

    /// Returns the numbers of an owner. Jobs without an owner are counted together.
    pub async fn usage(&self, owner: Option<String>) -> Result<Usage, StoreError> {
        self.read(move |engine| engine.usage(owner.as_deref()))
            .await
    }

    /// Removes the jobs whose time is over, as the thread of the store does by itself. Returns once they are removed.
    pub async fn expire(&self) -> Result<(), StoreError> {
        // The thread removes them before each request.
        self.ask(Effect::Change, None, 0, |_, _| Ok(())).await
    }

    /// Returns the faults of the store. The full check reads everything.
    pub async fn check(&self, full: bool) -> Result<Vec<String>, StoreError> {
        self.read(move |engine| engine.check(full)).await
    }

    /// Closes the store after the requests that wait. Returns once the file is free for another process.
    pub async fn close(&self) {
        self.0.queue.close();
        self.0.queue.closed().await;
    }

    async fn read<T: Send + 'static>(
        &self,
        mut run: impl FnMut(&mut Engine) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(Effect::Read, None, 0, move |engine, _| run(engine))
            .await
    }

    async fn change<T: Send + 'static>(
        &self,
        id: &JobId,
        mut run: impl FnMut(&mut Engine, &JobId, Now) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let its_id = id.clone();
        self.ask(Effect::Change, Some(id.clone()), 0, move |engine, now| {
            run(engine, &its_id, now)
        })
        .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        effect: Effect,
        id: Option<JobId>,
        bytes: usize,
        mut run: impl FnMut(&mut Engine, Now) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.refusable(effect, id, bytes, move |engine, now| {
            run(engine, now).map(Ok)
        })
        .await
    }

    async fn refusable<T: Send + 'static>(
        &self,
        effect: Effect,
        id: Option<JobId>,
        bytes: usize,
        run: impl FnMut(&mut Engine, Now) -> Result<Result<T, StoreError>, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let asked = Asked::new(effect, id, bytes, run, reply);
        self.0.queue.push(Box::new(asked)).await?;
        answer.await.unwrap_or_else(|_| Err(self.0.queue.error()))
    }
}

/// Opens the store of the settings.
fn open_engine(settings: &StoreSettings, now: Now) -> Result<(Engine, Recovered), OpenError> {
    let store: Box<dyn Store> = match &settings.path {
        None => Box::new(MemoryStore::new()),
        Some(path) => open_file(path, &settings.clock)?,
    };
    let mut engine = Engine::new(store, settings.bounds.clone());
    let path = || settings.path.clone().unwrap_or_default();
    let mut recovered = engine.recover(now);
    if recovered == Err(Failure::NoSpace) && engine.release_room() {
        recovered = engine.rollback(now).and_then(|()| engine.recover(now));
    }
    match recovered {
        Ok(recovered) => Ok((engine, recovered)),
        Err(Failure::NoSpace) => Err(OpenError::NoSpace(path())),
        Err(Failure::Unavailable(reason)) => Err(OpenError::Io {
            path: path(),
            error: std::io::Error::other(reason),
        }),
    }
}

/// Returns the faults of the file of a store, after a check of all of it. No broker may use the store meanwhile.
///
/// # Errors
///
/// [`OpenError`] if the file cannot be opened as a store.
#[cfg(feature = "sqlite")]
pub fn check_file(path: &std::path::Path, clock: &Clock) -> Result<Vec<String>, OpenError> {
    crate::sqlite::SqliteStore::check_file(path, clock)
}

/// Refuses: this build has no store in a file.
///
/// # Errors
///
/// [`OpenError::NotBuilt`].
#[cfg(not(feature = "sqlite"))]
pub fn check_file(_: &std::path::Path, _: &Clock) -> Result<Vec<String>, OpenError> {
    Err(OpenError::NotBuilt)
}

#[cfg(feature = "sqlite")]
fn open_file(path: &std::path::Path, clock: &Clock) -> Result<Box<dyn Store>, OpenError> {
    let store = crate::sqlite::SqliteStore::open(path, clock)?;
    Ok(Box::new(store))
}

#[cfg(not(feature = "sqlite"))]
fn open_file(_: &std::path::Path, _: &Clock) -> Result<Box<dyn Store>, OpenError> {
    Err(OpenError::NotBuilt)
}
