//! The keeper of jobs: its store, its settings and the jobs that run now.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use broker_core::{
    Account, Broker as _, CallCode, CallRecord, CoreError, DynBroker, Identity, JobEnding,
    JobObserver, JobStep, JobsTrouble,
};
use broker_store::{Job, JobEnd, JobId, JobStore, OpenError, STORE_UNAVAILABLE, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::{self, FindKey};
use crate::kept_results::KeptResults;
use crate::settings::JobSettings;
use crate::view;
use crate::waits::Waits;

/// What a keeper is made of.
pub struct KeeperParts {
    /// The broker that makes the calls of jobs. It records them as its own calls.
    pub runner: DynBroker,
    /// The store; or the reason why it cannot be used.
    pub store: Result<JobStore, OpenError>,
    /// The jobs that the store found lost, as it was opened.
    pub lost: Vec<JobId>,
    /// Takes the steps of jobs.
    pub observer: Box<dyn JobObserver>,
    /// The jobs of an earlier run whose calls servers execute as tasks that go on.
    pub adoptable: Vec<JobId>,
    /// The settings.
    pub settings: JobSettings,
}

/// Keeps jobs and runs them.
pub struct Keeper {
    pub(crate) runner: DynBroker,
    store: Result<JobStore, OpenError>,
    pub(crate) settings: JobSettings,
    observer: Box<dyn JobObserver>,
    /// The results that callers got in part.
    pub(crate) kept_results: KeptResults,
    lost: Mutex<Vec<JobId>>,
    find_key: OnceLock<Box<FindKey>>,
    state: Mutex<KeeperState>,
    /// The requests that wait for the end of a job.
    pub(crate) waits: Waits,
    /// Notified when a job may have become ready to run.
    pub(crate) wake: Notify,
    /// Cancelled when no further job may begin.
    pub(crate) stopping: CancellationToken,
    /// The jobs that run, and the scheduler.
    pub(crate) tasks: TaskTracker,
}

#[derive(Default)]
struct KeeperState {
    /// The jobs of an earlier run that are adopted at the start.
    adoptable: Vec<JobId>,
    /// The jobs that run in this process.
    running: HashMap<JobId, RunningJob>,
    /// The callers of the jobs that wait or run and were made in this process, so that the end of their right is known.
    callers: HashMap<JobId, Identity>,
    /// The memory accounts of owners.
    accounts: HashMap<Option<String>, Account>,
}

/// A job that runs.
#[derive(Clone, Debug)]
pub(crate) struct RunningJob {
    /// Cancels its call.
    pub(crate) cancel: CancellationToken,
}

impl fmt::Debug for KeeperParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeeperParts").finish_non_exhaustive()
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Makes a keeper. It runs no job before [`Self::start`].
    pub fn new(parts: KeeperParts) -> Arc<Self> {
        let KeeperParts {
            runner,
            store,
            lost,
            observer,
            adoptable,
            settings,
        } = parts;
        Arc::new(Self {
            runner,
            store,
            settings,
            observer,
            kept_results: KeptResults::default(),
            lost: Mutex::new(lost),
            find_key: OnceLock::new(),
            state: Mutex::new(KeeperState {
                adoptable,
                ..KeeperState::default()
            }),
            waits: Waits::default(),
            wake: Notify::new(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Begins to run the jobs that wait. `find_key` finds the identity of an API key. To be called once, in a runtime.
    pub fn start(
        self: &Arc<Self>,
        find_key: impl Fn(&str) -> Option<Identity> + Send + Sync + 'static,
    ) {
        self.find_key.get_or_init(|| Box::new(find_key));
        if self.store.is_ok() {
            for id in std::mem::take(&mut self.state().adoptable) {
                self.tasks.spawn(Arc::clone(self).adopt(id));
            }
            self.tasks.spawn(Arc::clone(self).run_queued());
        }
    }

    /// Tells the observer of the jobs that the store found lost.
    pub(crate) async fn observe_lost(&self) {
        let lost = std::mem::take(&mut *self.lost.lock().unwrap_or_else(PoisonError::into_inner));
        let Ok(store) = self.store() else {
            return;
        };
        for id in lost {
            if let Ok(Some(job)) = store.get(&id).await {
                self.observe_end(&job, None);
            }
        }
    }

    /// Tells the observer that a job begins to run for this caller.
    pub(crate) fn observe_claim(&self, job: &Job, identity: &Identity) {
        self.observer.claimed(step(job, Some(identity)));
    }

    /// Tells the observer of a job that has ended. `record` is the record of a call whose caller was answered before.
    pub(crate) fn observe_end(&self, job: &Job, record: Option<&CallRecord>) {
        let named = caller::named(&job.caller);
        let view = view::job(job, true);
        self.observer.ended(
            step(job, named.as_ref()),
            JobEnding {
                state: job.state,
                code: view.error_code(),
                maybe_executed: view.maybe_executed.unwrap_or(false),
                record,
            },
        );
    }

    /// Stores the end of a job, and tells the observer.
    pub(crate) async fn end(
        &self,
        (id, fence): (&JobId, u64),
        end: JobEnd,
        record: Option<&CallRecord>,
    ) -> Result<(), StoreError> {
        let Ok(store) = self.store() else {
            return Ok(());
        };
        if store.finish(id, fence, end).await?
            && let Some(job) = store.get(id).await?
        {
            self.observe_end(&job, record);
        }
        Ok(())
    }

    /// Begins no further job. Jobs that run go on.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Ends the jobs that run, and closes the store. The store has the end of each job that ended before.
    pub async fn close(&self) {
        self.stop();
        self.tasks.close();
        for job in self.state().running.values() {
            job.cancel.cancel();
        }
        self.tasks.wait().await;
        if let Ok(store) = &self.store {
            store.close().await;
        }
    }

    /// Returns the reason why the store cannot be used, if it cannot.
    pub(crate) fn trouble(&self) -> Option<JobsTrouble> {
        match &self.store {
            Ok(store) => store.unavailable().map(|reason| JobsTrouble {
                state: STORE_UNAVAILABLE,
                reason,
            }),
            Err(error) => Some(JobsTrouble {
                state: error.state(),
                reason: error.to_string(),
            }),
        }
    }

    /// Returns the store.
    pub(crate) fn store(&self) -> Result<&JobStore, Box<CoreError>> {
        self.store.as_ref().map_err(|_| {
            let error = CoreError::new(
                CallCode::StoreUnavailable,
                "the store of jobs cannot be used",
            );
            Box::new(error.maybe_executed(false))
        })
    }

    /// Returns the identity of an API key that exists now.
    pub(crate) fn find_key(&self, name: &str) -> Option<Identity> {
        self.find_key.get()?(name)
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.store.as_ref().is_ok_and(JobStore::is_durable)
    }

    /// Returns the memory account of an owner: its jobs have one share.
    pub(crate) fn account(&self, owner: Option<&str>) -> Account {
        let owner = owner.map(str::to_owned);
        let memory = self.runner.services().memory();
        let mut state = self.state();
        state.accounts.retain(|_, account| !account.is_unused());
        let account = state
            .accounts
            .entry(owner)
            .or_insert_with_key(|owner| match owner {
                Some(_) => memory.account(),
                None => memory.anonymous_account(),
            });
        account.clone()
    }

    /// Keeps the caller of a job that waits.
    pub(crate) fn keep_caller(&self, id: &JobId, identity: Identity) {
        self.state().callers.insert(id.clone(), identity);
    }

    /// Returns the caller of a job that was made in this process.
    pub(crate) fn kept_caller(&self, id: &JobId) -> Option<Identity> {
        self.state().callers.get(id).cloned()
    }

    /// Forgets the caller of a job that no longer waits.
    pub(crate) fn forget_caller(&self, id: &JobId) {
        self.state().callers.remove(id);
    }

    /// Adds a job that runs. Returns what cancels it.
    pub(crate) fn begin_run(&self, id: &JobId) -> CancellationToken {
        let cancel = CancellationToken::new();
        let job = RunningJob {
            cancel: cancel.clone(),
        };
        self.state().running.insert(id.clone(), job);
        cancel
    }

    /// Removes a job that has ended.
    pub(crate) fn end_run(&self, id: &JobId) {
        self.state().running.remove(id);
        self.wake.notify_one();
    }

    /// Cancels the call of a job that runs in this process.
    pub(crate) fn cancel_run(&self, id: &JobId) {
        if let Some(job) = self.state().running.get(id) {
            job.cancel.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a job as its observer sees it.
fn step<'a>(job: &'a Job, caller: Option<&'a Identity>) -> JobStep<'a> {
    JobStep {
        id: job.id.as_str(),
        caller,
        path: &job.path,
        digest: &job.tool_digest,
    }
}
