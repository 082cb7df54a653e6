//! `tools/call`: reads which meta-tool is meant, asks core, and turns what it says into a result.

use std::time::Duration;

use broker_model::CallCode;
use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use super::era::Era;
use super::members::Members;
use super::reply::{Answer, INVALID_PARAMS, RpcError};
use super::tools::NAMES;
use super::{Shared, result};
use crate::core::{Call, CoreError, Describe, Identity, Reply};
use crate::surface::http::{CallBody, DescBody, TreeBody, alike};

/// How long a call waits for the sources to be held against the lock: a client that was just
/// started calls at once, and would rather wait than be sent away. Below what clients wait at most.
const START_WAIT: Duration = Duration::from_secs(50);

/// A call of one of the three tools.
#[derive(Debug)]
pub(super) struct ToolCall {
    tool: Tool,
    /// One JSON object.
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
    /// Reads the parameters of `tools/call`; `line` is what they were read from.
    pub(super) fn parse(params: &Members<'_>, era: Era, line: &Bytes) -> Result<Self, RpcError> {
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
            Some(_) => return Err(wrong("`arguments` must be an object")),
        };
        Ok(Self {
            tool,
            arguments,
            era,
        })
    }

    /// Does it. What the broker refuses is a result too.
    pub(super) async fn run(self, shared: &Shared, request_id: &str) -> Answer {
        let outcome = self.ask(shared, request_id).await;
        Ok(outcome.unwrap_or_else(|error| {
            tracing::debug!(request_id, code = error.code.as_str(), "refused");
            result::error(&error, request_id, self.era)
        }))
    }

    async fn ask(&self, shared: &Shared, request_id: &str) -> Result<Vec<u8>, Box<CoreError>> {
        // It was cut out of text between two tokens.
        let text = std::str::from_utf8(&self.arguments).unwrap_or_default();
        let own = |reply: Reply| result::own(&reply.body, self.era);
        match self.tool {
            Tool::Tree => {
                let body = TreeBody::parse(text).map_err(|refusal| refusal.into_error())?;
                let reply = shared.core.list(&Identity::Local, &body.path, body.depth)?;
                Ok(own(reply))
            }
            Tool::Desc => {
                let body = DescBody::parse(text).map_err(|refusal| refusal.into_error())?;
                let what = match &body {
                    DescBody::One(path) => Describe::One(path),
                    DescBody::Many(paths) => Describe::Many(paths),
                };
                Ok(own(shared.core.describe(&Identity::Local, what)?))
            }
            Tool::Call => {
                let reply = match call(shared, text, request_id).await {
                    // Nothing was sent: asking again repeats nothing.
                    Err(error) if error.code == CallCode::Starting => {
                        started(shared).await;
                        call(shared, text, request_id).await?
                    }
                    outcome => outcome?,
                };
                result::of_server(&reply.body, self.era)
            }
        }
    }
}

async fn call(shared: &Shared, text: &str, request_id: &str) -> Result<Reply, Box<CoreError>> {
    let body = CallBody::parse(text).map_err(|refusal| refusal.into_error())?;
    let call = Call {
        path: &body.path,
        args: body.args.as_bytes(),
        args_value: body.args_value,
        raw: false,
        request_id,
    };
    shared.core.call(&Identity::Local, call).await
}

/// Waits until the required sources were judged, as far as that is worth it.
async fn started(shared: &Shared) {
    let judged = timeout(START_WAIT, shared.core.first_verdict());
    tokio::select! {
        // Judged or not: the next answer says it.
        _ = judged => {}
        () = shared.closing.cancelled() => {}
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
    match alike(name, &NAMES) {
        close if close.is_empty() => error,
        close => error.data(json!({ "did_you_mean": close })),
    }
}
