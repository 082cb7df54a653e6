//! `tools/call`: reads the name of the tool, calls core, and turns the outcome into a result.

use std::time::Duration;

use broker_model::CallCode;
use broker_model::config::McpMode;
use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::{Era, RpcError, valid_string};
use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use super::protocol::Params;
use super::reply::{Answer, Text};
use super::request_meta::RequestMeta;
use super::tools::NAMES;
use super::{Client, cut_note, listing_text, result, server_error};
use crate::core::{
    Account, CallEvents, Charge, CoreError, FlatTool, Outcome, memory_error_for_request,
    memory_error_for_result,
};
use crate::surface::meta::{
    BodyForm, Listing, MetaCaller, ReplyRoom, is_quoted_object, similar_names,
};

/// Maximum time that a call waits for the sources to be compared with the lock: a client calls right
/// after its start, and a wait is better than an error. Shorter than the timeouts of clients.
const START_TIMEOUT: Duration = Duration::from_secs(50);

/// Results longer than this are processed on another thread, so that other answers do not wait for
/// them.
const MIN_POOLED_BYTES: usize = 256 << 10;

/// The maximum memory that a reply of the broker needs as a result, as a multiple of its length: as
/// text in JSON it has at most twice its bytes, and it is copied.
const MAX_OWN_COPIES: usize = 6;

/// A call of a tool.
#[derive(Debug)]
pub(super) struct ToolCall {
    tool: Tool,
    /// One JSON object, a slice of its message.
    arguments: Bytes,
    pub(super) era: Era,
    pub(super) meta: RequestMeta,
}

#[derive(Clone, Copy, Debug)]
enum Tool {
    Tree,
    Desc,
    Call,
    /// A tool of the catalog, by its flat name.
    Flat(FlatTool),
}

/// The circumstances of one call.
#[derive(Debug)]
pub(super) struct CallParts<'a> {
    pub(super) request_id: &'a str,
    /// The account to which the call and its result are charged.
    pub(super) account: &'a Account,
    /// Receives the events that the caller wants.
    pub(super) events: Option<CallEvents>,
}

/// Why a call has no result of a server.
enum CallError {
    /// The broker refused it, which is a tool result.
    Refused(Box<CoreError>),
    /// The server answered with this error.
    Server(RpcError),
}

impl From<Box<CoreError>> for CallError {
    fn from(error: Box<CoreError>) -> Self {
        Self::Refused(error)
    }
}

impl ToolCall {
    /// Reads the params of `tools/call`.
    pub(super) fn parse(client: &Client, params: &Params<'_>, era: Era) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let name = params
            .members
            .get("name")
            .and_then(valid_string)
            .ok_or_else(|| wrong("`name` must be a string"))?;
        let tool = match client.mode {
            McpMode::Meta => match NAMES.iter().position(|known| *known == &*name) {
                Some(0) => Tool::Tree,
                Some(1) => Tool::Desc,
                Some(_) => Tool::Call,
                None => return Err(unknown_meta_tool(&name)),
            },
            McpMode::Direct => match client.core.find_flat(&client.identity, &name) {
                Some(tool) => Tool::Flat(tool),
                None => return Err(unknown_flat_name(&name)),
            },
        };
        let arguments = match params.members.given("arguments") {
            None => Bytes::from_static(b"{}"),
            Some(raw) if raw.starts_with('{') => params.raw.slice_ref(raw.as_bytes()),
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
            meta: RequestMeta::read(&params.meta, era)?,
        })
    }

    /// The tool, if it was called by its flat name.
    pub(super) const fn flat_tool(&self) -> Option<&FlatTool> {
        match &self.tool {
            Tool::Flat(tool) => Some(tool),
            _ => None,
        }
    }

    /// The arguments, one JSON object.
    pub(super) const fn arguments(&self) -> &Bytes {
        &self.arguments
    }

    /// Runs the call. A refusal of the broker is a result too.
    pub(super) async fn run(&self, client: &Client, parts: &CallParts<'_>) -> Answer {
        match self.ask(client, parts).await {
            Ok(result) => Ok(result),
            Err(CallError::Server(error)) => Err(error),
            Err(CallError::Refused(error)) => {
                let request_id = parts.request_id;
                tracing::debug!(request_id, code = error.code.as_str(), "refused");
                Ok(result::error(&error, request_id, self.era).into())
            }
        }
    }

    async fn ask(&self, client: &Client, parts: &CallParts<'_>) -> Result<Text, CallError> {
        if let Some(refusal) = client.core.start_refusal(&client.identity) {
            return Err(refusal.into());
        }
        let asker = MetaCaller {
            core: &client.core,
            identity: &client.identity,
            request_id: parts.request_id,
            account: parts.account,
            reply: ReplyRoom {
                around: result::MAX_ADDED_CHARS,
                note: cut_note::MAX_NOTE_CHARS,
            },
            form: BodyForm::Mcp,
            meta: self.meta.forwarded.as_deref(),
            events: parts.events.as_ref(),
        };
        let listing = match self.tool {
            Tool::Tree => Listing::Tree,
            Tool::Desc => Listing::Desc,
            Tool::Call | Tool::Flat(_) => {
                let outcome = self.call(client, &asker).await?;
                return Ok(self.forwarded(client, parts.account, outcome).await?);
            }
        };
        let listed = asker.list(listing, self.arguments.clone()).await?;
        let body = &listed.reply.body;
        let needed = MAX_OWN_COPIES * body.len();
        let mut charge = Charge::default();
        charge
            .cover(parts.account, needed)
            .map_err(|full| Box::new(memory_error_for_request(full, needed, parts.account)))?;
        let text = |json: &str| match listing {
            Listing::Tree => listing_text::tree(json),
            Listing::Desc if listed.is_full => json.to_owned(),
            Listing::Desc => listing_text::description(json).into_owned(),
        };
        Ok(Text::charged(result::own(body, text, self.era), charge))
    }

    /// Calls the tool; once more if the sources had to be compared with the lock first.
    async fn call(&self, client: &Client, asker: &MetaCaller<'_>) -> Result<Outcome, CallError> {
        let outcome = match self.call_once(asker).await {
            // Nothing was sent, so the call may be repeated.
            Err(error) if error.code == CallCode::Starting => {
                started(client).await;
                self.call_once(asker).await
            }
            outcome => outcome,
        };
        match (outcome, self.tool) {
            (Err(error), Tool::Flat(_)) => Err(server_error::of_call(&error, self.era)
                .map_or(CallError::Refused(error), CallError::Server)),
            (outcome, _) => Ok(outcome?),
        }
    }

    async fn call_once(&self, asker: &MetaCaller<'_>) -> Result<Outcome, Box<CoreError>> {
        let arguments = self.arguments.clone();
        match self.tool {
            Tool::Flat(tool) => asker.call_tool(tool.path, arguments).await,
            _ => asker.call(arguments).await,
        }
    }

    /// A server's result in the form of the era.
    async fn forwarded(
        &self,
        client: &Client,
        account: &Account,
        outcome: Outcome,
    ) -> Result<Text, Box<CoreError>> {
        let (length, era) = (outcome.result.len(), self.era);
        let mut charge = Charge::default();
        // The result for the era, in addition to the one of the server.
        charge
            .cover(account, length)
            .map_err(|full| Box::new(memory_error_for_result(full)))?;
        let result = if length > MIN_POOLED_BYTES {
            let render = move || result::of_server(&outcome, era);
            client.core.shape_long(render).await?
        } else {
            result::of_server(&outcome, era)?
        };
        Ok(Text::charged(result, charge))
    }
}

/// Waits for the outcome of the start, at most `START_TIMEOUT`.
async fn started(client: &Client) {
    let verdict = timeout(START_TIMEOUT, client.core.first_verdict());
    let draining = client.core.drain().draining();
    tokio::select! {
        // The next answer shows the outcome.
        _ = verdict => {}
        () = draining.cancelled() => {}
    }
}

fn unknown_meta_tool(name: &str) -> RpcError {
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

/// The same for a tool that does not exist and one that the caller may not see.
fn unknown_flat_name(name: &str) -> RpcError {
    let shown = broker_model::text::shown_line(name, 160);
    let message = format!("unknown tool `{shown}`: `tools/list` has the names");
    RpcError::new(INVALID_PARAMS, message)
}
