//! Decides which job runs next: the oldest of each owner, as long as the owner has a free place.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_core::{Broker as _, CallCode, CoreError, Identity, Name};
use broker_store::{Job, JobEnd, JobState, StoreError};

use crate::caller::{self, NoCaller};
use crate::keeper::Keeper;
use crate::run;
use crate::settings::JobSettings;

/// The time after which waiting jobs are looked at again although none was made and none has ended: their tools may be
/// served again.
const TICK: Duration = Duration::from_secs(5);
/// The time after which a job whose tool is not the one that it was made for ends.
const MAX_WITHDRAWN: Duration = Duration::from_secs(600);

/// Whether a job may run now.
enum Decision {
    /// It runs for this caller.
    Run(Box<Identity>),
    /// It waits, since its tool is not served now.
    Wait,
    /// It ends with this error.
    End(Box<CoreError>),
}

impl Keeper {
    /// Runs the jobs that wait, until the keeper stops.
    pub(crate) async fn run_queued(self: Arc<Self>) {
        self.observe_lost().await;
        loop {
            if let Err(error) = self.run_ready().await {
                tracing::error!(%error, "jobs that wait cannot be read");
                return;
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Begins every job that has a free place.
    async fn run_ready(self: &Arc<Self>) -> Result<(), StoreError> {
        let Ok(store) = self.store() else {
            return Ok(());
        };
        let most = JobSettings::MAX_RUNNING as usize;
        for owner in store.queued(most).await? {
            let free = JobSettings::MAX_RUNNING.saturating_sub(owner.running) as usize;
            for job in owner.jobs.into_iter().take(free) {
                let is_stopping =
                    self.stopping.is_cancelled() || self.runner.services().drain().is_draining();
                if is_stopping {
                    return Ok(());
                }
                match self.decide(&job) {
                    Decision::Wait => {}
                    Decision::End(error) => self.end_unsent(&job, &error).await?,
                    Decision::Run(identity) => {
                        let Some(claim) = store.claim(&job.id).await? else {
                            continue;
                        };
                        self.forget_caller(&job.id);
                        self.observe_claim(&claim.job, &identity);
                        let cancel = self.begin_run(&job.id);
                        let run = run::run(Arc::clone(self), *identity, claim, cancel);
                        self.tasks.spawn(run);
                    }
                }
            }
        }
        Ok(())
    }

    /// Decides a job that waits: by the right of its caller, and by the tool that is served now.
    fn decide(&self, job: &Job) -> Decision {
        let identity = match self.caller_of(job) {
            Ok(identity) => identity,
            Err(error) => return Decision::End(error),
        };
        let withdrawn = || {
            let message =
                "the tool of the job is not served as it was reviewed when the job was made";
            let error = CoreError::new(CallCode::ToolWithdrawn, message);
            Box::new(error.path(&*job.path).maybe_executed(false))
        };
        let waits = SystemTime::now().duration_since(job.created);
        let is_overdue = waits.is_ok_and(|waits| waits > MAX_WITHDRAWN);
        match self.runner.look_up(&identity, Name::Path(&job.path)) {
            Ok(found) if found.digest == job.tool_digest && !found.item.withdrawn => {
                Decision::Run(Box::new(identity))
            }
            // The right was taken, or another build has other tools.
            Err(error) if self.runner.services().known_path(&job.path).is_some() => {
                Decision::End(error)
            }
            Ok(_) | Err(_) if is_overdue => Decision::End(withdrawn()),
            Ok(_) | Err(_) => Decision::Wait,
        }
    }

    /// Returns the caller of a job with the rights that it has now.
    fn caller_of(&self, job: &Job) -> Result<Identity, Box<CoreError>> {
        let ended = || {
            let message = "the credential that made the job has ended";
            Box::new(CoreError::new(CallCode::Unauthorized, message).maybe_executed(false))
        };
        if let Some(identity) = self.kept_caller(&job.id) {
            if identity.is_revoked()
                || identity
                    .expires()
                    .is_some_and(|end| end <= SystemTime::now())
            {
                return Err(ended());
            }
            return Ok(identity);
        }
        caller::from_text(&job.caller, &self.runner, &|name: &str| self.find_key(name)).map_err(
            |problem| match problem {
                NoCaller::Ended => ended(),
                NoCaller::Unreadable => {
                    tracing::error!(
                        job = job.id.as_str(),
                        "the store has no readable caller of a job"
                    );
                    Box::new(CoreError::new(
                        CallCode::Internal,
                        "the caller of the job is not known",
                    ))
                }
            },
        )
    }

    /// Ends a job that was not sent.
    async fn end_unsent(&self, job: &Job, error: &CoreError) -> Result<(), StoreError> {
        let Ok(store) = self.store() else {
            return Ok(());
        };
        self.forget_caller(&job.id);
        if let Some(claim) = store.claim(&job.id).await? {
            let end = JobEnd {
                state: JobState::Failed,
                result: None,
                is_error: false,
                error: Some(run::error_text(error)),
            };
            self.end((&job.id, claim.fence), end, None).await?;
        }
        Ok(())
    }
}
