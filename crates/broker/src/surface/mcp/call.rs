//! `tools/call`: reads the name of the meta-tool, calls core, and turns the outcome into a result.

use std::time::Duration;

use broker_model::CallCode;
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::{Era, JsonMembers, RpcError};
use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use super::reply::{Answer, Text};
use super::tools::NAMES;
use super::{ClientContext, cut_note, result};
use crate::core::{Charge, CoreError, Outcome, memory_error_for_request, memory_error_for_result};
use crate::surface::meta::{Listing, MetaCaller, ReplyRoom, is_quoted_object, similar_names};

/// Maximum time that a call waits for the sources to be compared with the lock: a client calls right
/// after its start, and a wait is better than an error. Shorter than the timeouts of clients.
const START_TIMEOUT: Duration = Duration::from_secs(50);

/// Results longer than this are processed on another thread, so that other answers do not wait for
/// them.
const MIN_POOLED_BYTES: usize = 256 << 10;

/// The maximum memory that a reply of the broker needs as a result, as a multiple of its length: as
/// text in JSON it has at most twice its bytes, and it is copied.
const MAX_OWN_COPIES: usize = 6;

/// A call of one of the three tools.
#[derive(Debug)]
pub(super) struct ToolCall {
    tool: Tool,
    /// One JSON object, a slice of its line.
    arguments: Bytes,
    pub(super) era: Era,
}

#[derive(Clone, Copy, Debug)]
enum Tool {
    Tree,
    Desc,
    Call,
}

impl ToolCall {
    /// Reads the parameters of `tools/call` from `line`.
    pub(super) fn parse(
        params: &JsonMembers<'_>,
        era: Era,
        line: &Bytes,
    ) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let name: String = params
            .get("name")
            .and_then(|raw| serde_json::from_str(raw).ok())
            .ok_or_else(|| wrong("`name` must be a string"))?;
        let tool = match NAMES.iter().position(|known| *known == name) {
            Some(0) => Tool::Tree,
            Some(1) => Tool::Desc,
            Some(_) => Tool::Call,
            None => return Err(unknown(&name)),
        };
        let arguments = match params.given("arguments") {
            None => Bytes::from_static(b"{}"),
            Some(raw) if raw.starts_with('{') => line.slice_ref(raw.as_bytes()),
            Some(raw) if is_quoted_object(raw) => {
                return Err(wrong(
                    "`arguments` is a string that contains JSON: send the object itself",
                ));
            }
            Some(_) => return Err(wrong("`arguments` must be an object")),
        };
        Ok(Self {
            tool,
            arguments,
            era,
        })
    }

    /// Runs the call. A refusal of the broker is a result too.
    pub(super) async fn run(self, shared: &ClientContext, request_id: &str) -> Answer {
        let outcome = self.ask(shared, request_id).await;
        Ok(outcome.unwrap_or_else(|error| {
            tracing::debug!(request_id, code = error.code.as_str(), "refused");
            result::error(&error, request_id, self.era).into()
        }))
    }

    async fn ask(&self, shared: &ClientContext, request_id: &str) -> Result<Text, Box<CoreError>> {
        if let Some(refusal) = shared.core.start_refusal(&shared.identity) {
            return Err(refusal);
        }
        let asker = MetaCaller {
            core: &shared.core,
            identity: &shared.identity,
            request_id,
            account: &shared.account,
            reply: ReplyRoom {
                around: result::MAX_ADDED_CHARS,
                note: cut_note::MAX_NOTE_CHARS,
            },
        };
        let era = self.era;
        let arguments = self.arguments.clone();
        let listing = match self.tool {
            Tool::Tree => Listing::Tree,
            Tool::Desc => Listing::Desc,
            Tool::Call => {
                let outcome = match asker.call(arguments.clone()).await {
                    // Nothing was sent, so the call may be repeated.
                    Err(error) if error.code == CallCode::Starting => {
                        started(shared).await;
                        asker.call(arguments).await?
                    }
                    outcome => outcome?,
                };
                return forwarded(shared, outcome, era).await;
            }
        };
        let reply = asker.list(listing, arguments).await?;
        let needed = MAX_OWN_COPIES * reply.body.len();
        let mut charge = Charge::default();
        charge
            .cover(&shared.account, needed)
            .map_err(|full| Box::new(memory_error_for_request(full, needed, &shared.account)))?;
        Ok(Text::charged(result::own(&reply.body, era), charge))
    }
}

/// A server's result in the form of the era.
async fn forwarded(
    shared: &ClientContext,
    outcome: Outcome,
    era: Era,
) -> Result<Text, Box<CoreError>> {
    let length = outcome.result.len();
    let mut charge = Charge::default();
    // The result for the era, in addition to the one of the server.
    charge
        .cover(&shared.account, length)
        .map_err(|full| Box::new(memory_error_for_result(full)))?;
    let result = if length > MIN_POOLED_BYTES {
        let render = move || result::of_server(&outcome, era);
        shared.core.shape_long(render).await?
    } else {
        result::of_server(&outcome, era)?
    };
    Ok(Text::charged(result, charge))
}

/// Waits for the outcome of the start, at most `START_TIMEOUT`.
async fn started(shared: &ClientContext) {
    let verdict = timeout(START_TIMEOUT, shared.core.first_verdict());
    let draining = shared.drain.draining();
    tokio::select! {
        // The next answer shows the outcome.
        _ = verdict => {}
        () = draining.cancelled() => {}
    }
}

fn unknown(name: &str) -> RpcError {
    let shown = broker_model::text::shown_line(name, 80);
    let message = if name.starts_with('/') {
        format!("unknown tool `{shown}`: call it by `meta_call` with this as `path`")
    } else {
        format!("unknown tool `{shown}`: there are `meta_tree`, `meta_desc` and `meta_call`")
    };
    let error = RpcError::new(INVALID_PARAMS, message);
    match similar_names(name, &NAMES) {
        close if close.is_empty() => error,
        close => error.data(json!({ "did_you_mean": close })),
    }
}
