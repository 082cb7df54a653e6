//! A call as a value: its caller, its context, its operation, and its outcome.

use std::borrow::Cow;
use std::sync::Arc;

use broker_mcp::{CallEvents, TraceHeaders};
use broker_memory::Account;
use broker_model::RequestId;
use broker_model::item::ItemKind;
use broker_wire::Id;
use broker_wire::write::Receipt;
use bytes::Bytes;
use tokio::time::Instant;

use crate::call::arguments::Args;
use crate::call::cut::Cut;
use crate::call::record::CallRecord;
use crate::call::send_gate::SendGates;
use crate::identity::Identity;
use crate::jobs::{AcceptedJob, JobRequest};

/// One call. It owns everything that it needs, so that a layer can keep it and make it later.
#[derive(Debug)]
pub struct Request {
    /// The caller.
    pub identity: Identity,
    /// The circumstances of the call.
    pub context: CallContext,
    /// The path of the entry that is called.
    pub path: Cow<'static, str>,
    /// The operation on the entry.
    pub operation: Operation,
}

/// The operation of a call on the entry at its path.
#[derive(Debug)]
pub enum Operation {
    /// The result of the entry for these arguments. Prompts, templates and resources are called like tools.
    CallTool(Args),
    /// `prompts/get` with these arguments; the entry is a prompt.
    GetPrompt(Args),
    /// `resources/read` of this URI; the entry is the one that serves it.
    ReadResource(Box<str>),
    /// `completion/complete` with these parameters, one JSON object; the entry is a prompt or a template. Parameters that
    /// were not read are refused.
    Complete(Args),
}

/// The circumstances of one call, apart from who calls and what is called.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Names the request in the log.
    pub request_id: RequestId,
    /// Members for `_meta` of the request to the server, as one JSON object: what the caller sent and the
    /// surface lets pass.
    pub meta: Option<Box<str>>,
    /// Takes the events of the call that its caller wants; without it the server is not asked for any.
    pub events: Option<CallEvents>,
    /// The account that is charged for the memory of the call.
    pub account: Account,
    /// When the request arrived, if time has passed since: the timeout of the call starts here.
    pub received: Option<Instant>,
    /// When the caller stops waiting, if that is before the time that the config gives the call.
    pub deadline: Option<Instant>,
    /// The event that cancels the call.
    pub cancel: CancelMode,
    /// The form of the result.
    pub form: ResultForm,
    /// The record that a layer keeps of the call.
    pub record: Option<Arc<CallRecord>>,
    /// The surface decides whether the caller gets a result of more bytes than these. The record of such a call ends with
    /// the receipt of its outcome.
    pub decided_above: u32,
    /// The trace context of the call, if a layer traces calls.
    pub trace: Option<Box<CallTrace>>,
    /// The gates that the call passes right before it is sent.
    pub gates: SendGates,
    /// What the call asks of a layer that keeps jobs.
    pub job: Option<Box<JobRequest>>,
}

impl CallContext {
    /// Returns the context of a caller that sends no `_meta`, wants no events and waits for the result.
    #[inline]
    pub const fn new(request_id: RequestId, account: Account, form: ResultForm) -> Self {
        Self {
            request_id,
            meta: None,
            events: None,
            account,
            received: None,
            deadline: None,
            cancel: CancelMode::OnDrop,
            form,
            record: None,
            decided_above: u32::MAX,
            trace: None,
            gates: SendGates::none(),
            job: None,
        }
    }
}

/// The request of a call as its caller sent it, for its trace. A surface fills it in if
/// [`Broker::traces_calls`](crate::Broker::traces_calls).
#[derive(Clone, Debug, Default)]
pub struct CallTrace {
    /// The context of the HTTP request that brought the call.
    pub from_http: Option<TraceHeaders>,
    /// The port of the caller's connection, if its other end is the caller.
    pub client_port: Option<u16>,
    /// The id that the caller gave the request of JSON-RPC. It is read only if the call is traced.
    pub rpc_id: Option<Id>,
    /// The revision of MCP that the caller negotiated or named.
    pub revision: Option<&'static str>,
    /// The span of a call that asks for a job, as `traceparent`: the run of the job links it.
    pub own: Option<Box<str>>,
    /// The context for the headers of a request to a server. The layer that traces the call adds it, and writes the same
    /// to `meta`.
    pub to_server: Option<TraceHeaders>,
}

/// The event that cancels a call, apart from its timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelMode {
    /// Dropping the future of the call cancels it at the server.
    #[default]
    OnDrop,
}

/// The form of a returned result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// As the server sent it, without the config's render mode and limit: for typed callers. Its memory
    /// is no longer charged.
    Verbatim,
    /// As the server sent it: for clients that read the results of prompts and resources.
    Whole,
    /// In the tool's `render_mode`, cut to its limit.
    Configured {
        /// Characters that the surface writes around the result; they count against the limit.
        reserved_chars: usize,
        /// Characters that the surface adds to a result that was cut. At most a fifth of the limit is
        /// kept free for them.
        note_chars: usize,
        /// The limit of a tool without a limit in the config.
        limit: ResultLimit,
        /// Whether the surface keeps the whole of a result that was cut: see [`Cut::whole`].
        keeps_whole: bool,
    },
}

/// The result limit of a tool without `max_output_chars` in the config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultLimit {
    /// Unlimited: for programs, because they read results of any length.
    #[default]
    Configured,
    /// `limits.result_chars`: for models.
    Default,
}

/// The result of a call.
#[derive(Debug)]
pub struct Outcome {
    /// The path of the entry that was called.
    pub path: &'static str,
    /// Its kind.
    pub kind: ItemKind,
    /// The result: one JSON object, byte for byte as the server sent it unless its form changed it.
    pub result: Bytes,
    /// Whether it is the result of a tool that says that it failed.
    pub is_error: bool,
    /// The parts that were cut from the result.
    pub cut: Option<Box<Cut>>,
    /// Warnings about the result, written by the broker.
    pub warnings: Vec<String>,
    /// The job that the call became: then the result is empty.
    pub job: Option<Box<AcceptedJob>>,
    /// Learns whether the caller gets the result, if the surface decides on it later.
    pub receipt: Option<Receipt>,
}
