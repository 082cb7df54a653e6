//! A call whose caller waits for some time; if it takes longer, it becomes a job, and its call goes on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use broker_core::{
    AcceptedJob, Broker, CoreError, JobRequest, Outcome, Request, Reserving, SendGate, UnsentCall,
};
use broker_store::{Created, JobStart};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::creation::{JobFacts, digest_of, new_job};
use crate::keeper::Keeper;
use crate::run;
use crate::settings::JobSettings;
use crate::tee::Tee;
use crate::view;

impl Keeper {
    /// Makes a call, and a job of it once it has taken longer than its caller waits. Where the store takes no job, the
    /// caller waits for the call itself.
    pub(crate) async fn promote<B: Broker>(
        self: Arc<Self>,
        inner: B,
        mut request: Request,
        job: JobRequest,
    ) -> Result<Outcome, Box<CoreError>> {
        let gate = Arc::new(PassedGate::default());
        request.context.gates.push(gate.clone());
        let (path, identity) = (request.path.to_string(), request.identity.clone());
        let (events, tee, received) = match request.context.events.take() {
            Some(caller) => {
                let (events, tee, received) = Tee::new(caller);
                (events, Some(tee), received)
            }
            None => {
                let (events, received) = run::wanted_events();
                (events, None, received)
            }
        };
        request.context.events = Some(events);
        let record = request.context.record.clone();
        let digest = digest_of(&inner, &identity, &path);
        let catalog = inner.services().catalog_digest();
        let mut call = Box::pin(async move {
            match tee {
                Some(tee) => tee.run(inner.call(request)).await,
                None => inner.call(request).await,
            }
        });
        tokio::select! {
            biased;
            outcome = &mut call => return outcome,
            () = async {
                sleep(self.settings.promote_after).await;
                gate.passed().await;
            } => {}
        }
        let Some(path) = gate.path.get().copied() else {
            return call.await;
        };
        let facts = JobFacts {
            job: &job,
            digest,
            catalog,
            meta: None,
            trace: None,
            settings: &self.settings,
        };
        // Its arguments were sent, so that the store needs none.
        let mut new = new_job(&identity, path, Bytes::new(), facts)?;
        new.start = JobStart::Sent;
        let owner = new.owner.clone();
        let created = async {
            let store = self.store().ok()?;
            let usage = store.usage(owner).await.ok()?;
            if usage.running >= JobSettings::MAX_RUNNING {
                return None;
            }
            match store.create(new).await {
                Ok(Created::New(job)) => Some(job),
                Ok(Created::Replayed(_) | Created::OtherArguments(_)) | Err(_) => None,
            }
        };
        // Not beside the call: a job that is stored while its call ends must have an end as well.
        let Some(job) = created.await else {
            return call.await;
        };
        let accepted = AcceptedJob {
            job: view::job(&job, self.is_durable()),
            is_replayed: false,
        };
        let mut outcome = self.empty_outcome(path)?;
        outcome.job = Some(Box::new(accepted));
        if let Some(record) = &record {
            record.become_job(job.id.as_str());
        }
        self.observe_claim(&job, &identity);
        let cancel = self.begin_run(&job.id);
        let keeper = Arc::clone(&self);
        self.tasks.spawn(async move {
            let run = (&job.id, job.fence);
            run::follow(&keeper, run, call, received, cancel, record).await;
        });
        Ok(outcome)
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
