//! What a `tools/call` asks of jobs, and the form in which its client gets a job.

use broker_core::{Broker, CallMode, FlatTool, JobRequest};
use broker_surface::idempotency_key;
use broker_wire::protocol::{INVALID_PARAMS, METHOD_NOT_FOUND};
use broker_wire::{Era, RpcError, valid_string};

use super::{extension, legacy};
use crate::Client;
use crate::job_tool;
use crate::params::Params;

/// The form in which the client of a call gets the job that the call became.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum JobForm {
    /// A tool result that names the tool `job`: the client knows no tasks.
    #[default]
    Text,
    /// A task of revision 2025-11-25, which the client asked for.
    Legacy,
    /// A task of the extension, which the client declares.
    Modern,
}

/// What a call asks of jobs.
#[derive(Debug, Default)]
pub(crate) struct CallJob {
    /// How long the caller waits, if the request says so.
    mode: Option<CallMode>,
    pub(crate) form: JobForm,
    /// The whole request to the layer that keeps jobs, if it is more than a mode. Boxed, since few calls have it.
    asked: Option<Box<JobRequest>>,
}

/// The kind of tool that a call names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CalledTool<'a> {
    /// A tool of a server.
    Flat(&'a FlatTool),
    /// A tool of the broker that calls others.
    Calling,
    /// Another tool of the broker. Its calls are never jobs.
    Other,
}

impl CallJob {
    /// Returns the job of a call in this mode, of a client that knows no tasks.
    pub(crate) const fn in_mode(mode: Option<CallMode>) -> Self {
        Self {
            mode,
            form: JobForm::Text,
            asked: None,
        }
    }

    /// Reads the params of `tools/call`.
    pub(crate) fn read(
        client: &Client<impl Broker>,
        params: &Params<'_>,
        era: Era,
        mode: Option<CallMode>,
        tool: CalledTool<'_>,
    ) -> Result<Self, RpcError> {
        let key = key(params)?;
        let form = form(client, params, era);
        let requires_task = matches!(tool, CalledTool::Flat(tool) if tool.requires_task)
            && client.tasks().is_some();
        let (mode, ttl) = match (form, tool) {
            (JobForm::Legacy, CalledTool::Other) => {
                let message = "calls of this tool are never tasks: send the request without `task`";
                return Err(RpcError::new(METHOD_NOT_FOUND, message));
            }
            (JobForm::Legacy, CalledTool::Flat(_) | CalledTool::Calling) => {
                (Some(CallMode::Async), legacy::ttl(params)?)
            }
            (JobForm::Modern, _) if requires_task => (Some(CallMode::Async), None),
            (JobForm::Text, _) if requires_task => return Err(task_required(era)),
            (JobForm::Modern | JobForm::Text, _) => (mode, None),
        };
        let mut job = Self {
            mode,
            form,
            asked: None,
        };
        if form == JobForm::Legacy || key.is_some() {
            job.asked = Some(Box::new(JobRequest {
                mode: mode.unwrap_or_else(|| client.call_mode()),
                ttl,
                key,
                run: None,
            }));
        }
        Ok(job)
    }

    /// Returns what the call asks of the layer that keeps jobs; `None` for a client that waits for the result.
    pub(crate) fn request(&self, client: &Client<impl Broker>) -> Option<&JobRequest> {
        match &self.asked {
            Some(asked) => Some(asked),
            None => job_tool::job_request(self.mode.unwrap_or_else(|| client.call_mode())),
        }
    }
}

fn form(client: &Client<impl Broker>, params: &Params<'_>, era: Era) -> JobForm {
    if client.tasks().is_none() {
        return JobForm::Text;
    }
    match era {
        Era::Legacy if params.members.given("task").is_some() => JobForm::Legacy,
        Era::Modern if extension::is_declared(&params.meta) => JobForm::Modern,
        Era::Legacy | Era::Modern => JobForm::Text,
    }
}

/// Returns the error of a call without a task, of a tool whose calls are tasks.
fn task_required(era: Era) -> RpcError {
    match era {
        Era::Legacy => {
            let message = "calls of this tool are tasks: send the request with `task`";
            RpcError::new(METHOD_NOT_FOUND, message)
        }
        Era::Modern => extension::missing("a call of this tool"),
    }
}

/// Reads the idempotency key in `_meta`.
fn key(params: &Params<'_>) -> Result<Option<Box<str>>, RpcError> {
    let members = params.meta.members()?;
    let Some(json) = members.and_then(|members| members.given(idempotency_key::META_NAME)) else {
        return Ok(None);
    };
    let key = valid_string(json).filter(|key| idempotency_key::is_valid(key));
    let key = key.ok_or_else(|| {
        let message = format!(
            "`_meta` `{}` must be a string of 1 to {} visible ASCII characters",
            idempotency_key::META_NAME,
            idempotency_key::MAX_BYTES
        );
        RpcError::new(INVALID_PARAMS, message)
    })?;
    Ok(Some(key.into()))
}
