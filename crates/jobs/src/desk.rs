//! The jobs of a broker, as their owners ask for them.

use std::time::Duration;

use broker_core::{
    Broker as _, CallCode, CallMode, CoreError, DeskAnswer, Identity, JobDesk, JobEvents, JobPage,
    JobQuery, JobResult, JobState, JobView, JobsTrouble, Name,
};
use broker_store::{CancelOutcome, Job, JobId, ListQuery};
use serde_json::Value;

use crate::caller;
use crate::errors;
use crate::keeper::Keeper;
use crate::kept_results::KeptResults;
use crate::view;

/// The time after which events are read again where the store has no place for another watcher.
const UNWATCHED_TICK: Duration = Duration::from_secs(1);

/// The number of events that a request reads at once while it waits for the end of a job.
const EVENTS_AT_ONCE: usize = 100;

/// Who asks for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// Its owner only.
    Owner,
    /// Its owner, and operators, who see neither arguments nor results.
    OwnerOrOperator,
}

impl Keeper {
    /// Returns a job that the caller may ask for.
    async fn find(
        &self,
        caller: &Identity,
        id: &str,
        reader: Reader,
    ) -> Result<Job, Box<CoreError>> {
        let store = self.store()?;
        let id = JobId::parse(id).ok_or_else(errors::not_found)?;
        let job = store
            .get(&id)
            .await
            .map_err(|error| errors::store_error(&error))?;
        let job = job.ok_or_else(errors::not_found)?;
        let is_owner = job.owner == caller::owner(caller);
        let may_read = match reader {
            Reader::Owner => is_owner,
            Reader::OwnerOrOperator => is_owner || self.is_operator(caller),
        };
        match may_read {
            true => Ok(job),
            false => Err(errors::not_found()),
        }
    }

    /// Whether the caller is an operator with a credential.
    fn is_operator(&self, caller: &Identity) -> bool {
        caller.is_authenticated() && self.runner.services().is_operator(caller)
    }

    fn view(&self, job: &Job) -> JobView {
        view::job(job, self.is_durable())
    }
}

impl JobDesk for Keeper {
    fn is_durable(&self) -> bool {
        Self::is_durable(self)
    }

    fn trouble(&self) -> Option<JobsTrouble> {
        Self::trouble(self)
    }

    fn promote_after(&self) -> Option<Duration> {
        let is_usable = Self::is_durable(self) && Self::trouble(self).is_none();
        is_usable.then_some(self.settings.promote_after)
    }

    fn mcp_mode(&self) -> CallMode {
        match self.promote_after() {
            Some(_) => self.settings.mcp_mode,
            None => CallMode::Sync,
        }
    }

    fn show<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView> {
        Box::pin(async move {
            let job = self.find(caller, id, Reader::OwnerOrOperator).await?;
            Ok(self.view(&job))
        })
    }

    fn own<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView> {
        Box::pin(async move {
            let job = self.find(caller, id, Reader::Owner).await?;
            Ok(self.view(&job))
        })
    }

    fn ended<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView> {
        Box::pin(async move {
            let mut job = self.own(caller, id).await?;
            if job.state.is_finished() {
                return Ok(job);
            }
            let _place = self.waits.begin(caller::owner(caller))?;
            while !job.state.is_finished() {
                self.events(caller, id, job.last_event, EVENTS_AT_ONCE)
                    .await?;
                job = self.own(caller, id).await?;
            }
            Ok(job)
        })
    }

    fn list<'a>(&'a self, caller: &'a Identity, query: JobQuery) -> DeskAnswer<'a, JobPage> {
        Box::pin(async move {
            // The stores number their jobs. Another text is not a cursor that a page had.
            if query
                .cursor
                .as_deref()
                .is_some_and(|cursor| cursor.parse::<u64>().is_err())
            {
                return Err(errors::unknown_cursor());
            }
            let page = self.store()?.list(ListQuery {
                owner: caller::owner(caller),
                all: !query.is_own_only && self.is_operator(caller),
                state: query.state,
                limit: query.limit,
                cursor: query.cursor,
            });
            let page = page.await.map_err(|error| errors::store_error(&error))?;
            Ok(JobPage {
                jobs: page.jobs.iter().map(|job| self.view(job)).collect(),
                next: page.next,
            })
        })
    }

    fn cancel<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobView> {
        Box::pin(async move {
            let job = self.find(caller, id, Reader::Owner).await?;
            let cancelled = self.store()?.cancel(&job.id).await;
            match cancelled.map_err(|error| errors::store_error(&error))? {
                CancelOutcome::Finished(state) => Err(errors::finished(state)),
                CancelOutcome::Unknown => Err(errors::not_found()),
                CancelOutcome::Canceled => {
                    self.forget_caller(&job.id);
                    let ended = self.store()?.get(&job.id).await;
                    if let Some(ended) = ended.map_err(|error| errors::store_error(&error))? {
                        self.observe_end(&ended, None);
                    }
                    self.show(caller, id).await
                }
                CancelOutcome::Asked => {
                    self.cancel_run(&job.id);
                    self.show(caller, id).await
                }
            }
        })
    }

    fn result<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobResult> {
        Box::pin(async move {
            let job = self.find(caller, id, Reader::Owner).await?;
            // The right is decided again: one that was taken closes the results that the caller had.
            self.runner.look_up(caller, Name::Path(&job.path))?;
            match job.state {
                JobState::Queued | JobState::Running | JobState::InputRequired => {
                    return Err(errors::not_finished(job.state));
                }
                JobState::Succeeded => {}
                JobState::Failed | JobState::Lost => return Err(own_error(&job)),
                JobState::Canceled => return Err(errors::finished(job.state)),
            }
            let result = self.store()?.result(&job.id).await;
            let result = result.map_err(|error| errors::store_error(&error))?;
            let result = result.ok_or_else(|| own_error(&job))?;
            Ok(JobResult {
                result,
                is_error: job.is_error,
            })
        })
    }

    fn keep_result(&self, caller: &Identity, path: &str, result: &[u8]) -> Option<Box<str>> {
        self.kept_results.keep(caller::owner(caller), path, result)
    }

    fn read<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, JobResult> {
        if !KeptResults::has_form(id) {
            return self.result(caller, id);
        }
        Box::pin(async move {
            let kept = self.kept_results.find(caller::owner(caller).as_deref(), id);
            let kept = kept.ok_or_else(errors::not_found)?;
            self.runner.look_up(caller, Name::Path(&kept.path))?;
            Ok(JobResult {
                result: kept.result,
                is_error: false,
            })
        })
    }

    fn events_may_be_read<'a>(&'a self, caller: &'a Identity, id: &'a str) -> DeskAnswer<'a, ()> {
        Box::pin(async move { self.find(caller, id, Reader::Owner).await.map(drop) })
    }

    fn events<'a>(
        &'a self,
        caller: &'a Identity,
        id: &'a str,
        after: u64,
        limit: usize,
    ) -> DeskAnswer<'a, JobEvents> {
        Box::pin(async move {
            let store = self.store()?;
            loop {
                let job = self.find(caller, id, Reader::Owner).await?;
                // Watched before the events are read, so that none is missed.
                let watch = store.subscribe(&job.id);
                let job = self.find(caller, id, Reader::Owner).await?;
                let read = store.events(&job.id, after, limit).await;
                let read = read.map_err(|error| errors::store_error(&error))?;
                let last = read.events.last().map_or(after, |event| event.seq);
                let is_end = job.state.is_finished() && last >= job.last_seq;
                if is_end || !read.events.is_empty() {
                    return Ok(JobEvents {
                        events: read.events.iter().map(view::event).collect(),
                        is_end,
                    });
                }
                match watch {
                    Some(mut watch) => {
                        watch.changed().await;
                    }
                    None => tokio::time::sleep(UNWATCHED_TICK).await,
                }
            }
        })
    }
}

/// Returns the error with which a job ended.
fn own_error(job: &Job) -> Box<CoreError> {
    let view = view::job(job, true);
    let member = |name: &str| {
        view.error
            .as_ref()
            .and_then(|error| error.get(name))
            .cloned()
    };
    let code = view.error_code().unwrap_or(CallCode::Internal);
    let message = member("message").and_then(|text| text.as_str().map(str::to_owned));
    let mut error = CoreError::new(code, message.unwrap_or_else(|| "the job failed".to_owned()));
    error.path = Some(job.path.clone());
    error.details = member("details");
    // The server's own error, so that each surface shows it as in the answer to a call.
    let rpc = error
        .details
        .as_ref()
        .and_then(|details| details.get("rpc"));
    error.rpc = rpc.and_then(|rpc| serde_json::value::to_raw_value(rpc).ok());
    error.hint = member("hint")
        .and_then(|text| text.as_str().map(str::to_owned))
        .or(error.hint);
    error.maybe_executed = member("maybe_executed").as_ref().and_then(Value::as_bool);
    Box::new(error)
}
