//! The spans of a call that has ended, as data: what an exporter sends. They follow OpenTelemetry's conventions for MCP
//! (semantic-conventions-genai 0393513, docs/gen-ai/mcp.md), and have no value of arguments, results or headers.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use broker_core::{CallTrace, CoreError, ItemKind, RecordedItem, RequestId, Via};
use broker_model::text::shown_line;
use broker_wire::Id;
use serde::Deserialize;

use super::context::SpanContext;
use crate::recorded_call::{CallEnd, RecordedCall};

/// The commit of the conventions that names and attributes follow. They have no release.
pub const CONVENTIONS: &str = "0393513";

/// The codes of JSON-RPC that do not make a server span an error: the caller's request was wrong.
const CALLER_ERRORS: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];

/// The maximum characters of the id of a caller's request in a span.
const MAX_RPC_ID_CHARS: usize = 256;

/// Takes the spans of calls. It must not block: it runs on the task of the call.
pub trait SpanSink: Send + Sync + 'static {
    /// Takes the spans of a call that has ended.
    fn take(&self, spans: CallSpans);
}

/// The spans of a call.
#[derive(Clone, Debug)]
pub struct CallSpans {
    /// The span of the caller's request.
    pub server: SpanContext,
    /// Its parent in the caller, if the broker accepted one.
    pub parent: Option<SpanContext>,
    /// Contexts that came with the call and are not the parent.
    pub links: [Option<SpanContext>; 2],
    /// When the call began, and how long it took.
    pub began: SystemTime,
    /// As `began`.
    pub duration: Duration,
    /// The method of MCP.
    pub method: &'static str,
    /// The item, if the path of the call names one that exists for the caller.
    pub item: Option<RecordedItem>,
    /// The surface and the address of the caller.
    pub via: Via,
    /// As `via`.
    pub peer: Option<IpAddr>,
    /// The port of the caller, if the caller is the other end of its connection.
    pub client_port: Option<u16>,
    /// The number of the request in the log.
    pub request_id: RequestId,
    /// The id that the caller gave its request, if it uses JSON-RPC: one line of at most 256 characters.
    pub rpc_id: Option<Box<str>>,
    /// The revision of MCP of the caller.
    pub revision: Option<&'static str>,
    /// The class of the error of the caller's request.
    pub error_type: Option<Cow<'static, str>>,
    /// The code of JSON-RPC with which the server answered.
    pub rpc_code: Option<i64>,
    /// The span of the request to the server, if one was sent.
    pub client: Option<ClientSpan>,
}

/// The span of a request to a server.
#[derive(Clone, Debug)]
pub struct ClientSpan {
    /// Its id.
    pub span_id: [u8; 8],
    /// When it was sent, and how long the answer took.
    pub began: SystemTime,
    /// As `began`.
    pub duration: Duration,
    /// The revision of MCP of the session.
    pub revision: Option<&'static str>,
    /// The class of its error.
    pub error_type: Option<Cow<'static, str>>,
}

/// The trace of a call that has not ended.
#[derive(Debug)]
pub(crate) struct OpenTrace {
    pub(super) server: SpanContext,
    pub(super) client_span: [u8; 8],
    pub(super) parent: Option<SpanContext>,
    /// Contexts that came with the call and are not its parent.
    pub(super) links: [Option<SpanContext>; 2],
    pub(super) began: SystemTime,
    /// The request as its caller sent it.
    pub(super) request: CallerRequest,
}

/// What the span of a call says of the request of its caller.
#[derive(Debug, Default)]
pub(super) struct CallerRequest {
    rpc_id: Option<Box<str>>,
    revision: Option<&'static str>,
    client_port: Option<u16>,
}

impl From<&CallTrace> for CallerRequest {
    fn from(trace: &CallTrace) -> Self {
        Self {
            rpc_id: trace.rpc_id.as_ref().map(rpc_id_text),
            revision: trace.revision,
            client_port: trace.client_port,
        }
    }
}

/// Returns the text of an id, which is a text of the caller's choice.
fn rpc_id_text(id: &Id) -> Box<str> {
    match id {
        Id::Integer(number) => number.to_string().into(),
        Id::Text(text) => shown_line(text, MAX_RPC_ID_CHARS).into(),
        // Only servers send others.
        Id::Other(_) => Box::default(),
    }
}

impl OpenTrace {
    /// Returns the digits of the trace.
    pub(crate) fn trace_text(&self) -> Box<str> {
        self.server.trace_text()
    }
}

/// The member of an error of JSON-RPC that is read.
#[derive(Deserialize)]
struct RpcCode {
    code: i64,
}

impl CallSpans {
    pub(super) fn new(trace: &OpenTrace, call: &RecordedCall, end: CallEnd<'_>) -> Self {
        let (duration, facts) = (call.elapsed(), call.facts());
        let rpc_code = match end {
            CallEnd::Failed(error) => rpc_code(error),
            CallEnd::Answered { .. } | CallEnd::Accepted | CallEnd::Abandoned => None,
        };
        let client_error = match (end, rpc_code) {
            (_, Some(code)) => Some(Cow::Owned(code.to_string())),
            (
                CallEnd::Answered {
                    is_error: false, ..
                }
                | CallEnd::Accepted,
                None,
            ) => None,
            (end, None) => Some(Cow::Borrowed(end.as_str())),
        };
        let is_caller_error = rpc_code.is_some_and(|code| CALLER_ERRORS.contains(&code));
        let client = facts.sent_at().map(|sent| {
            let before = sent.duration_since(call.began);
            ClientSpan {
                span_id: trace.client_span,
                revision: facts.server_revision(),
                began: trace.began + before,
                duration: facts
                    .server_time()
                    .unwrap_or_else(|| duration.saturating_sub(before)),
                error_type: client_error.clone(),
            }
        });
        let origin = call.identity.origin();
        Self {
            server: trace.server,
            parent: trace.parent,
            links: trace.links,
            began: trace.began,
            duration,
            method: call.method.as_str(),
            item: call.item().copied(),
            via: origin.via,
            peer: origin.peer,
            client_port: trace.request.client_port,
            rpc_id: trace.request.rpc_id.clone(),
            revision: trace.request.revision,
            request_id: call.request_id,
            error_type: client_error.filter(|_| !is_caller_error),
            rpc_code,
            client,
        }
    }

    /// Whether the item is a tool, or the call names no item and calls tools.
    pub fn is_tool_call(&self) -> bool {
        let kind = self.item.map(|item| item.kind);
        kind.map_or(self.method == "tools/call", |kind| kind == ItemKind::Tool)
    }
}

/// Returns the code of the server's own error.
fn rpc_code(error: &CoreError) -> Option<i64> {
    let read = serde_json::from_str::<RpcCode>(error.rpc.as_deref()?.get());
    read.ok().map(|read| read.code)
}
