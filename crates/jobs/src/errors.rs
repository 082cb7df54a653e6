//! The errors of jobs.

use std::time::Duration;

use broker_core::{CallCode, CoreError, JobState};
use broker_store::{JobId, StoreError};
use serde_json::json;

/// When a call is made again after the store had no room for its job.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Returns the error of an id without a job of the caller.
pub(crate) fn not_found() -> Box<CoreError> {
    Box::new(CoreError::new(
        CallCode::JobNotFound,
        "the caller has no job with this id",
    ))
}

/// Returns the error of a job that has ended.
pub(crate) fn finished(state: JobState) -> Box<CoreError> {
    let message = format!("the job has ended: it is {}", state.as_str());
    let error = CoreError::new(CallCode::JobFinished, message);
    Box::new(error.details(json!({ "state": state.as_str() })))
}

/// Returns the error of a job that has not ended.
pub(crate) fn not_finished(state: JobState) -> Box<CoreError> {
    let message = format!("the job has no result yet: it is {}", state.as_str());
    let error = CoreError::new(CallCode::JobNotFinished, message);
    let error = error.details(json!({ "state": state.as_str() }));
    Box::new(error.retry_after(RETRY_DELAY))
}

/// Returns the error of a request that would wait for a job besides `limit` others of its owner.
pub(crate) fn too_many_waits(limit: usize) -> Box<CoreError> {
    let message = format!("{limit} requests of this caller wait for the end of a job already");
    let error = CoreError::new(CallCode::Overloaded, message);
    Box::new(error.retry_after(RETRY_DELAY))
}

/// Returns the error of a text that is not a cursor of a list of jobs.
pub(crate) fn unknown_cursor() -> Box<CoreError> {
    let message = "the cursor is not one of a list of jobs";
    Box::new(CoreError::new(CallCode::FieldInvalid, message))
}

/// Returns the error of a key that was sent with other arguments.
pub(crate) fn other_arguments(id: &JobId) -> Box<CoreError> {
    let message = "the idempotency key was sent with other arguments";
    let error = CoreError::new(CallCode::IdempotencyMismatch, message);
    let error = error.details(json!({ "job_id": id.as_str() }));
    Box::new(error.maybe_executed(false))
}

/// Returns the error of an operation of the store.
pub(crate) fn store_error(error: &StoreError) -> Box<CoreError> {
    let message = error.to_string();
    let error = match error {
        StoreError::OwnerFull { .. } | StoreError::Full { .. } => {
            CoreError::new(CallCode::Overloaded, message).retry_after(RETRY_DELAY)
        }
        StoreError::NoSpace => {
            CoreError::new(CallCode::StoreUnavailable, message).retry_after(RETRY_DELAY)
        }
        StoreError::Unavailable { .. } => {
            tracing::debug!(error = message, "the job store refused a request");
            CoreError::new(
                CallCode::StoreUnavailable,
                "the store of jobs cannot be used",
            )
        }
    };
    Box::new(error.maybe_executed(false))
}

/// Returns the error of a key in a broker whose jobs do not survive a restart, or of a caller without a credential.
pub(crate) fn not_durable(message: &str) -> Box<CoreError> {
    Box::new(CoreError::new(CallCode::NotDurable, message).maybe_executed(false))
}
