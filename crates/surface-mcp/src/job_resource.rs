//! The link to a job: a URI that `resources/read` answers for the caller of the job, with the state of the job and its result.

use broker_core::{Account, Broker, CallCode, Charge, JobState, JobView, memory_error_for_request};
use broker_surface::job_json;
use broker_wire::Era;
use broker_wire::write::Text;
use serde_json::{Value, json};

use crate::Client;
use crate::item_error;
use crate::reply::Answer;
use crate::result;

/// The begin of the URI of a job.
const PREFIX: &str = "mcp-broker://jobs/";
/// The memory that an answer takes while it is made, as a multiple of the result.
const MAX_COPIES: usize = 3;

/// Returns the URI of a job.
pub(super) fn uri(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// Returns the id in the URI of a job.
pub(super) fn id_in(uri: &str) -> Option<&str> {
    uri.strip_prefix(PREFIX)
}

/// Returns the content block that links a job. Clients of revisions before 2025-06-18 do not know it.
pub(super) fn link(job: &JobView) -> Value {
    json!({
        "type": "resource_link",
        "uri": uri(&job.id),
        "name": format!("Job {}", job.id),
        "description": "The state of the job, and its result once it has ended.",
        "mimeType": "application/json",
    })
}

/// Answers `resources/read` of the URI of a job.
pub(super) async fn read(
    client: &Client<impl Broker>,
    account: &Account,
    (id, era): (&str, Era),
    request_id: &str,
) -> Answer {
    let refused = |error: &broker_core::CoreError| {
        item_error::refusal(error, result::error_object(error, request_id))
    };
    let unknown = || item_error::not_found(&uri(id), era);
    let Some(desk) = client.broker.jobs() else {
        return Err(unknown());
    };
    let identity = &client.identity;
    let job = desk.show(identity, id).await;
    let job = job.map_err(|error| match error.code == CallCode::JobNotFound {
        true => unknown(),
        false => refused(&error),
    })?;
    let ended = match job.state {
        JobState::Succeeded => {
            let ended = desk.result(identity, id).await;
            Some(ended.map_err(|error| refused(&error))?.result)
        }
        JobState::Queued
        | JobState::Running
        | JobState::InputRequired
        | JobState::Failed
        | JobState::Canceled
        | JobState::Lost => None,
    };
    let needed = MAX_COPIES * ended.as_ref().map_or(0, |result| result.len());
    let mut charge = Charge::default();
    charge.cover(account, needed).map_err(|full| {
        let error = memory_error_for_request(full, needed, account);
        refused(&error)
    })?;
    let state = content(id, &job_json::job(&job));
    let result = match &ended {
        Some(result) => format!(
            ",{}",
            content(&format!("{id}/result"), &String::from_utf8_lossy(result))
        ),
        None => String::new(),
    };
    let modern = match era {
        Era::Legacy => "",
        Era::Modern => r#","resultType":"complete","ttlMs":0,"cacheScope":"private""#,
    };
    let body = format!(r#"{{"contents":[{state}{result}]{modern}}}"#);
    Ok(Text::charged(body.into_bytes(), charge))
}

/// Returns one entry of `contents`.
fn content(place: &str, text: &str) -> String {
    json!({"uri": uri(place), "mimeType": "application/json", "text": text}).to_string()
}

/// Whether a request reads a job: its id.
pub(super) fn asked_id(method: &str, members: &broker_wire::JsonMembers<'_>) -> Option<Box<str>> {
    if method != "resources/read" {
        return None;
    }
    let uri = broker_wire::valid_string(members.get("uri")?)?;
    id_in(&uri).map(Box::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_of_a_job_has_its_id() {
        assert_eq!(id_in(&uri("j_1")), Some("j_1"));
        for other in ["file:///j_1", "mcp-broker://job/j_1", "j_1", ""] {
            assert_eq!(id_in(other), None, "{other}");
        }
    }
}
