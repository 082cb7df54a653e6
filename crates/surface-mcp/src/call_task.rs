//! A call with everything that it needs to run by itself, with or without its connection.

use std::pin::pin;
use std::sync::Arc;

use broker_wire::LogLevel;
use broker_wire::write::Outgoing;
use tokio::sync::mpsc;

use super::Client;
use super::call::{CallParts, ToolCall};
use super::notifications::{MAX_WAITING_EVENTS, run_with_events};
use super::reply::Answer;
use broker_core::{
    Account, Broker, CallEvents, CallTrace, Charge, CoreError, RequestId, Size, UNCHARGED_BYTES,
    memory_error_for_request,
};

/// Memory of a call that waits, besides its arguments.
const WAITING_BYTES: usize = 8 << 10;
/// Copies of the arguments of a call that waits: in the request, and in the one for the server.
const ARGUMENT_COPIES: usize = 2;

/// A call that is ready to run.
#[derive(Debug)]
pub(super) struct CallTask<B> {
    pub(super) client: Arc<Client<B>>,
    pub(super) call: ToolCall,
    pub(super) account: Account,
    pub(super) request_id: RequestId,
    /// The maximum length of the answer.
    pub(super) answer_bytes: usize,
    /// The least severe log message that its caller gets.
    pub(super) level: Option<LogLevel>,
    /// The trace context of the request over HTTP that brought the call.
    pub(super) trace: Option<Box<CallTrace>>,
    /// The memory of the call while it waits with other calls of its connection or session.
    pub(super) waiting: Charge,
}

/// Charges the memory of a call that waits with other calls of its connection or session. The first call of each is
/// within what a connection may hold, and large arguments are charged as they are read.
pub(super) fn charge_waiting(
    account: &Account,
    call: &ToolCall,
    is_first: bool,
) -> Result<Charge, Box<CoreError>> {
    if is_first {
        return Ok(Charge::default());
    }
    let arguments = call.arguments().len().min(UNCHARGED_BYTES);
    let needed = WAITING_BYTES + ARGUMENT_COPIES * arguments;
    account
        .charge(needed, Size::Small)
        .map_err(|full| Box::new(memory_error_for_request(full, needed, account)))
}

impl<B: Broker> CallTask<B> {
    /// Whether the caller wants notifications of the call.
    pub(super) fn wants_messages(&self) -> bool {
        self.call.meta.wanted(self.level).is_some() || self.call.may_change_list(&self.client)
    }

    /// Runs the call. Its notifications go to `messages` before it ends; without `messages` the server is not
    /// asked for any.
    pub(super) async fn run(self, messages: Option<mpsc::Sender<Outgoing>>) -> Answer {
        // Given back when the call has ended.
        let _waiting = self.waiting;
        let announcements = messages.clone();
        let wanted = self.call.meta.wanted(self.level).zip(messages);
        let (sink, events) = match wanted {
            Some((wanted, messages)) => {
                let (sink, events) = CallEvents::new(MAX_WAITING_EVENTS, wanted);
                (Some(sink), Some((events, messages)))
            }
            None => (None, None),
        };
        let parts = CallParts {
            request_id: self.request_id,
            account: &self.account,
            trace: self.trace.as_deref(),
            answer_bytes: self.answer_bytes,
            events: sink,
            announcements: announcements.filter(|_| self.call.may_change_list(&self.client)),
        };
        // Pinned here: a future that is passed on by value would be held twice.
        let run = pin!(self.call.run(&self.client, &parts));
        match events {
            Some((events, messages)) => {
                let token = self.call.meta.progress_token.as_deref();
                let caller = (&self.client.identity, token);
                run_with_events(run, events, caller, &messages).await
            }
            None => run.await,
        }
    }
}
