//! A call whose caller waits for some time; if it takes longer, it becomes a job, and its call goes on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use broker_core::{
    AcceptedJob, Broker, CallEvents, CallRecord, CoreError, Identity, JobRequest, Outcome,
    ReceivedEvents, Request, Reserving, SendGate, UnsentCall,
};
use broker_store::{Created, Job, JobStart, NewJob};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::Calling;
use crate::creation::{JobFacts, digest_of, new_job};
use crate::keeper::Keeper;
use crate::run;
use crate::settings::JobSettings;
use crate::view;

impl Keeper {
    /// Makes a call, and a job of it once it has taken longer than its caller waits. Where the store takes no job, the
    /// caller waits for the call itself. What a call that ends in time needs is allocated, and nothing else.
    pub(crate) fn promote<B: Broker>(
        self: Arc<Self>,
        inner: B,
        mut request: Request,
        job: Box<JobRequest>,
    ) -> Calling {
        let gate = request.context.gates.push(PassedGate::default());
        let identity = request.identity.clone();
        // A caller that takes the events of its call gets them, and so does the job.
        let (events, received) = run::wanted_events(request.context.events.take());
        request.context.events = Some(events.clone());
        let record = request.context.record.clone();
        let mut waiting = WaitingCall {
            keeper: self,
            identity,
            job,
            record,
            events,
            received,
            // In a separate box, since a job takes the call over.
            call: Box::pin(async move { inner.call(request).await }),
        };
        Box::pin(async move {
            let promote_after = waiting.keeper.settings.promote_after;
            tokio::select! {
                biased;
                outcome = &mut waiting.call => return outcome,
                () = async {
                    sleep(promote_after).await;
                    gate.passed().await;
                } => {}
            }
            match gate.path.get() {
                Some(path) => Box::pin(waiting.become_job(path)).await,
                None => waiting.call.await,
            }
        })
    }
}

/// A call whose caller waits.
struct WaitingCall {
    keeper: Arc<Keeper>,
    identity: Identity,
    job: Box<JobRequest>,
    record: Option<Arc<CallRecord>>,
    events: CallEvents,
    received: ReceivedEvents,
    call: Calling,
}

impl WaitingCall {
    /// Stores a job, to which the call belongs from then on.
    async fn become_job(self, path: &'static str) -> Result<Outcome, Box<CoreError>> {
        let Self {
            keeper,
            identity,
            job,
            record,
            events,
            received,
            call,
        } = self;
        let facts = JobFacts {
            job: &job,
            // Looked up late, so that a call that ends in time does not pay for it.
            digest: record
                .as_ref()
                .and_then(|record| record.item())
                .map_or_else(
                    || digest_of(&keeper.runner, &identity, path),
                    |item| item.digest,
                ),
            catalog: keeper.runner.services().catalog_digest(),
            meta: None,
            trace: None,
            settings: &keeper.settings,
        };
        // Its arguments were sent, so that the store needs none.
        let mut new = new_job(&identity, path, Bytes::new(), facts)?;
        new.start = JobStart::Sent;
        // Not beside the call: a job that is stored while its call ends must have an end as well.
        let Some(stored) = keeper.store_running(new).await else {
            return call.await;
        };
        let accepted = AcceptedJob {
            job: view::job(&stored, keeper.is_durable()),
            is_replayed: false,
        };
        let mut outcome = keeper.empty_outcome(path)?;
        outcome.job = Some(Box::new(accepted));
        if let Some(record) = &record {
            record.become_job(stored.id.as_str());
        }
        keeper.observe_claim(&stored, &identity);
        let cancel = keeper.begin_run(&stored.id);
        let keeper_of_run = Arc::clone(&keeper);
        keeper.tasks.spawn(async move {
            let running = run::Running {
                events,
                received,
                cancel,
                record,
                is_adopted: false,
            };
            run::follow(&keeper_of_run, (&stored.id, stored.fence), call, running).await;
        });
        Ok(outcome)
    }
}

impl Keeper {
    /// Stores a job that runs, if its owner has a place for it.
    async fn store_running(&self, new: NewJob) -> Option<Box<Job>> {
        let store = self.store().ok()?;
        let usage = store.usage(new.owner.clone()).await.ok()?;
        if usage.running >= JobSettings::MAX_RUNNING {
            return None;
        }
        match store.create(new).await {
            Ok(Created::New(job)) => Some(job),
            Ok(Created::Replayed(_) | Created::OtherArguments(_)) | Err(_) => None,
        }
    }
}

/// Notes that a call has passed its checks and is about to be sent.
#[derive(Default)]
struct PassedGate {
    path: OnceLock<&'static str>,
    changed: Notify,
}

impl PassedGate {
    /// Waits until the call has passed it.
    async fn passed(&self) {
        let changed = self.changed.notified();
        if self.path.get().is_none() {
            changed.await;
        }
    }
}

impl fmt::Debug for PassedGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassedGate")
    }
}

impl SendGate for PassedGate {
    fn reserve<'a>(&'a self, call: UnsentCall<'a>) -> Reserving<'a> {
        self.path.get_or_init(|| call.path);
        self.changed.notify_one();
        Reserving::Done(Ok(()))
    }
}
