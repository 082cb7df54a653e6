//! Goes on with a job of an earlier run of the broker whose call a server executes as a task. The call is not sent again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_core::{
    Broker as _, CallCode, CallContext, CallEvents, CoreError, Identity, Operation, Outcome,
    RemoteTask, Request, RequestId, ResultForm,
};
use broker_store::{Job, JobEnd, JobId, JobStore};
use tokio::time::{Instant, sleep};

use crate::keeper::Keeper;
use crate::run::{self, Running};
use crate::schedule::{Decision, TICK};

/// The maximum time for the source of an adopted job to be ready.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// The errors of a task that say how it ended, or that the next start of the broker follows it.
const IS_KNOWN: [CallCode; 3] = [
    CallCode::SourceError,
    CallCode::OutputTooLarge,
    CallCode::ShuttingDown,
];

impl Keeper {
    /// Adopts a job, and follows its task until its end.
    pub(crate) async fn adopt(self: Arc<Self>, id: JobId) {
        let Ok(store) = self.store() else {
            return;
        };
        let Ok(Some(job)) = store.get(&id).await else {
            return;
        };
        let Some(task) = job.upstream.as_deref().and_then(RemoteTask::from_text) else {
            return self.end_adopted(store, &id, run::lost()).await;
        };
        let since = SystemTime::now();
        let identity = loop {
            match self.decide(&job, since) {
                Decision::Run(identity) => break *identity,
                Decision::End(error) => {
                    let end = run::failed(&end_of_unknown(&error));
                    return self.end_adopted(store, &id, end).await;
                }
                Decision::Wait => tokio::select! {
                    () = self.stopping.cancelled() => return,
                    () = sleep(TICK) => {}
                },
            }
        };
        match store.adopt(&id).await {
            Ok(Some(claim)) => {
                self.observe_claim(&claim.job, &identity);
                follow(&self, identity, &claim.job, claim.fence, task).await;
            }
            Ok(None) => {}
            Err(error) => tracing::error!(job = id.as_str(), %error, "a job was not adopted"),
        }
    }

    /// Stores the end of a job whose task is not followed.
    async fn end_adopted(&self, store: &JobStore, id: &JobId, end: JobEnd) {
        match store.adopt(id).await {
            Ok(Some(claim)) => run::note_failure(id, self.end((id, claim.fence), end, None).await),
            Ok(None) => {}
            Err(error) => tracing::error!(job = id.as_str(), %error, "a job was not ended"),
        }
    }
}

/// Follows the task of an adopted job.
async fn follow(keeper: &Keeper, identity: Identity, job: &Job, fence: u64, task: RemoteTask) {
    let (events, received) = run::wanted_events(None);
    let cancel = keeper.begin_run(&job.id);
    let call = call(keeper, identity, job, &events, task);
    let cancel_asked = async {
        // Once the server is reached, it gets the cancel.
        events.task().await;
        if job.cancel_asked {
            cancel.cancel();
        }
        std::future::pending::<()>().await;
    };
    let running = Running {
        events: events.clone(),
        received,
        cancel: cancel.clone(),
        record: None,
        is_adopted: true,
    };
    tokio::select! {
        () = run::follow(keeper, (&job.id, fence), call, running) => {}
        () = cancel_asked => {}
    }
}

/// Returns the outcome of a task. Asks again while its source cannot be reached after the start.
async fn call(
    keeper: &Keeper,
    identity: Identity,
    job: &Job,
    events: &CallEvents,
    task: RemoteTask,
) -> Result<Outcome, Box<CoreError>> {
    let end = Instant::now() + MAX_WAIT;
    loop {
        let account = keeper.account(job.owner.as_deref());
        let id = RequestId::new(&[job.id.as_str()]);
        let request = Request {
            identity: identity.clone(),
            context: CallContext {
                events: Some(events.clone()),
                job: Some(Box::new(run::request_of(job))),
                ..CallContext::new(id, account, ResultForm::Whole)
            },
            path: job.path.clone().into(),
            operation: Operation::FollowTask(Box::new(task.clone())),
        };
        match keeper.runner.call(request).await {
            // It was refused before the server was asked.
            Err(error) if error.retryable && error.maybe_executed == Some(false) => {
                if Instant::now() >= end {
                    return Err(end_of_unknown(&error));
                }
                // At the end of the broker this run is cancelled, and the next start adopts the job.
                sleep(TICK).await;
            }
            Err(error) => {
                return Err(match IS_KNOWN.contains(&error.code) {
                    true => Box::new(error.maybe_executed(true)),
                    false => end_of_unknown(&error),
                });
            }
            Ok(outcome) => return Ok(outcome),
        }
    }
}

/// Returns the error of a job whose call an earlier run of the broker sent, and whose task is not followed to its end.
fn end_of_unknown(error: &CoreError) -> Box<CoreError> {
    let message = format!(
        "the broker ended while the call of the job was under way, and the task of the server cannot be followed: {}",
        error.message
    );
    Box::new(CoreError::new(CallCode::JobLost, message).maybe_executed(true))
}
