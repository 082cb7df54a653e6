//! Reports changes of tasks on a subscription of the modern era.

use std::sync::Arc;
use std::time::Duration;

use broker_core::{Broker, CoreError, Identity, JobDesk, JobState, JobView};
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::write::{self, Outgoing};
use broker_wire::{Era, JsonMembers, RpcError};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::end;
use super::errors::rpc_error;
use super::modern::{TaskEnd, detailed};
use crate::Client;

const CHANGED: &str = "notifications/tasks";
/// The maximum number of tasks of one subscription.
const MAX_TASKS: usize = 100;
/// The maximum bytes of a result in a notification. A longer one is read with `tasks/get`.
const MAX_RESULT_BYTES: u64 = 100_000;
/// The shortest time between two notifications of one task.
const NOTIFY_INTERVAL: Duration = Duration::from_secs(1);
/// The number of events that are read at once.
const EVENTS_AT_ONCE: usize = 100;

/// The tasks that a client asks about.
#[derive(Debug)]
pub(crate) struct TaskWatch {
    desk: Arc<dyn JobDesk>,
    identity: Identity,
    ids: Vec<String>,
}

impl TaskWatch {
    /// Reads `taskIds` of a subscription. `None` if the client does not ask about tasks, or there are none here.
    pub(crate) fn read(
        client: &Client<impl Broker>,
        asked: &JsonMembers<'_>,
    ) -> Result<Option<Self>, RpcError> {
        let wrong = |message: String| RpcError::new(INVALID_PARAMS, message);
        let Some((json, desk)) = asked.given("taskIds").zip(client.tasks()) else {
            return Ok(None);
        };
        let mut ids: Vec<String> = serde_json::from_str(json)
            .map_err(|_| wrong("`taskIds` must be a list of strings".to_owned()))?;
        if ids.len() > MAX_TASKS {
            return Err(wrong(format!("`taskIds` has more than {MAX_TASKS} tasks")));
        }
        ids.sort();
        ids.dedup();
        Ok(Some(Self {
            desk: Arc::clone(desk),
            identity: client.identity.clone(),
            ids,
        }))
    }

    /// Keeps the tasks of the caller, and returns their ids. Others are as unknown ones.
    pub(crate) async fn keep_own(&mut self) -> &[String] {
        let mut own = Vec::new();
        for id in std::mem::take(&mut self.ids) {
            if self.desk.own(&self.identity, &id).await.is_ok() {
                own.push(id);
            }
        }
        self.ids = own;
        &self.ids
    }

    /// Reports each task, and its changes until its end. `meta` is the `_meta` of each notification.
    pub(crate) async fn report(&self, meta: &Value, messages: &mpsc::Sender<Outgoing>) {
        let mut changes: FuturesUnordered<_> =
            self.ids.iter().map(|id| self.next(id, None)).collect();
        while let Some((id, changed)) = changes.next().await {
            // A job that was deleted has no further changes.
            let Ok(job) = changed else {
                continue;
            };
            if self.identity.is_revoked() {
                return;
            }
            let mut params = detailed(&job, self.end(&job).await.as_ref());
            params.member("_meta", &meta.to_string());
            let params = params.end();
            let params = String::from_utf8_lossy(params.as_ref());
            let message = write::notification(CHANGED, Some(&params));
            if messages.send(message).await.is_err() {
                return;
            }
            if !job.state.is_finished() {
                changes.push(self.next(id, Some(job.last_event)));
            }
        }
    }

    /// Waits until a job has an event after `after`, and returns the job; at once without `after`.
    async fn next<'a>(
        &'a self,
        id: &'a str,
        after: Option<u64>,
    ) -> (&'a str, Result<JobView, Box<CoreError>>) {
        let changed = async {
            if let Some(after) = after {
                sleep(NOTIFY_INTERVAL).await;
                self.desk
                    .events(&self.identity, id, after, EVENTS_AT_ONCE)
                    .await?;
            }
            self.desk.own(&self.identity, id).await
        };
        (id, changed.await)
    }

    async fn end(&self, job: &JobView) -> Option<TaskEnd> {
        let is_short = job
            .result_bytes
            .is_none_or(|bytes| bytes <= MAX_RESULT_BYTES);
        match job.state {
            JobState::Succeeded if is_short => {
                let ended = self.desk.result(&self.identity, &job.id).await.ok()?;
                end::render(ended, Era::Modern).ok().map(TaskEnd::Result)
            }
            JobState::Failed | JobState::Lost => {
                let error = self.desk.result(&self.identity, &job.id).await.err()?;
                Some(TaskEnd::Error(rpc_error(&error, Era::Modern, "")))
            }
            JobState::Succeeded
            | JobState::Queued
            | JobState::Running
            | JobState::InputRequired
            | JobState::Canceled => None,
        }
    }
}
