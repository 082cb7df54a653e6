//! Jobs as tasks of MCP. In the form of revision 2025-11-25 (`legacy`) a client asks for a task with `params.task`. In the
//! extension of revision 2026-07-28 (`modern`) the broker answers a call with a task if the client declares the extension.
//! The eras share no type: `call_job` decides the form of a call's job, `facts` and `end` read the job, `request` has the
//! methods `tasks/…`, `watch` reports changes on a subscription, and `feed` in a legacy session.

mod call_job;
mod end;
mod errors;
pub(super) mod extension;
mod facts;
mod feed;
pub(super) mod legacy;
pub(super) mod listed;
pub(super) mod modern;
mod request;
mod task_id;
mod watch;

pub(super) use call_job::{CallJob, CalledTool, JobForm};
pub(super) use end::replayed;
pub(super) use errors::rpc_error;
pub(super) use feed::TaskFeed;
pub(super) use request::{TaskRequest, is_task_method};
pub(super) use watch::TaskWatch;
