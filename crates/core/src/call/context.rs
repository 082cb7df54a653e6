//! The parameters and the result of a call: the context of its caller, the operation, and the outcome.

use broker_mcp::{CallEvents, CallSubject};
use broker_memory::Account;
use broker_model::item::ItemKind;
use bytes::Bytes;
use tokio::time::Instant;

use crate::call::arguments::Args;
use crate::call::cut::Cut;

/// The circumstances of one call, apart from who calls and what is called.
#[derive(Debug)]
pub struct CallContext<'a> {
    /// Names the request in the log.
    pub request_id: &'a str,
    /// Members for `_meta` of the request to the server, as one JSON object: what the caller sent and the
    /// surface lets pass.
    pub meta: Option<&'a str>,
    /// Takes the events of the call that its caller wants; without it the server is not asked for any.
    pub events: Option<CallEvents>,
    /// When the caller stops waiting, if that is before the time that the config gives the call.
    pub deadline: Option<Instant>,
    /// The event that cancels the call.
    pub cancel: CancelMode,
}

/// The event that cancels a call, apart from its timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelMode {
    /// Dropping the future of the call cancels it at the server.
    #[default]
    OnDrop,
}

/// The form in which a result is returned.
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
        /// The limit of a tool for which the config has none.
        limit: ResultLimit,
    },
}

/// The limit of the results of a tool for which the config has no `max_output_chars`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultLimit {
    /// None: for programs, which read results of any length.
    #[default]
    Configured,
    /// `limits.result_chars`: for models.
    Default,
}

/// The operation on the entry that a call names.
#[derive(Debug)]
pub enum Operation<'a> {
    /// `tools/call`.
    CallTool(ToolRequest<'a>),
}

/// A request to call a tool, as a surface read it.
#[derive(Debug)]
pub struct ToolRequest<'a> {
    /// The arguments; `{}` if there were none.
    pub args: Args<'a>,
    /// What is asked of the entry; `None` for its result for the arguments.
    pub subject: Option<&'a CallSubject>,
    /// The account to which the memory of the call is charged.
    pub account: &'a Account,
    /// When the request arrived, if time has passed since: the timeout of the call starts here.
    pub received: Option<Instant>,
    /// The form of the result.
    pub form: ResultForm,
}

/// A request to get a prompt or to read a URI.
#[derive(Clone, Copy, Debug)]
pub struct ItemRequest<'a> {
    /// The account to which the memory of the call is charged.
    pub account: &'a Account,
    /// When the request arrived, if time has passed since: the timeout of the call starts here.
    pub received: Option<Instant>,
    /// The form of the result.
    pub form: ResultForm,
}

impl<'a> ItemRequest<'a> {
    /// The operation on an entry with these arguments.
    pub(crate) const fn of(
        self,
        args: Args<'a>,
        subject: Option<&'a CallSubject>,
    ) -> Operation<'a> {
        Operation::CallTool(ToolRequest {
            args,
            subject,
            account: self.account,
            received: self.received,
            form: self.form,
        })
    }
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
    /// The parts that were cut from the result.
    pub cut: Option<Cut>,
    /// Warnings about the result, written by the broker.
    pub warnings: Vec<String>,
}
