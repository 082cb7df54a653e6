//! The methods `tasks/…` of both eras.

use broker_core::{Account, Broker, RequestId};
use broker_wire::{Era, RpcError};

use super::extension;
use super::legacy::LegacyTask;
use super::modern::ModernTask;
use crate::Client;
use crate::job_resource;
use crate::params::Params;
use crate::reply::Answer;

/// A request about tasks, or for the resource that a job is.
#[derive(Debug)]
pub(crate) enum TaskRequest {
    /// Of revision 2025-11-25.
    Legacy(LegacyTask),
    /// Of the extension.
    Modern(ModernTask),
    /// `resources/read` of the job with this id.
    Resource(Box<str>, Era),
}

/// Whether a method is about tasks, in any era.
pub(crate) fn is_task_method(method: &str) -> bool {
    method.starts_with("tasks/")
}

impl TaskRequest {
    /// Reads a request; `None` for a method that the era does not have, or if jobs do not survive a restart here.
    pub(crate) fn read(
        client: &Client<impl Broker>,
        method: &str,
        params: &Params<'_>,
        era: Era,
    ) -> Result<Option<Self>, RpcError> {
        if !is_task_method(method) || client.tasks().is_none() {
            return Ok(None);
        }
        Ok(match era {
            Era::Legacy => LegacyTask::read(method, &params.members)
                .transpose()?
                .map(Self::Legacy),
            Era::Modern => {
                let request = ModernTask::read(method, &params.members);
                if request.is_some() && !extension::is_declared(&params.meta) {
                    return Err(extension::missing(&format!("`{method}`")));
                }
                request.transpose()?.map(Self::Modern)
            }
        })
    }

    /// Answers the request.
    pub(crate) async fn answer(
        &self,
        client: &Client<impl Broker>,
        account: &Account,
        request_id: RequestId,
    ) -> Answer {
        let request_id = request_id.as_str();
        let desk = || {
            client
                .tasks()
                .ok_or_else(|| extension::missing("the request"))
        };
        match self {
            Self::Legacy(request) => {
                request
                    .answer(client, &**desk()?, account, request_id)
                    .await
            }
            Self::Modern(request) => {
                request
                    .answer(client, &**desk()?, account, request_id)
                    .await
            }
            // It needs no store that survives a restart.
            Self::Resource(id, era) => {
                job_resource::read(client, account, (id, *era), request_id).await
            }
        }
    }
}
