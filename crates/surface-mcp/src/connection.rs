//! The state of one client on a stream of messages: its negotiated revision and open requests. Answers may
//! be sent in any order.

use std::sync::Arc;

use broker_model::CallCode;
use broker_wire::protocol::{
    CANCELLED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, MODERN, PARSE_ERROR,
};
use broker_wire::write::{self, Outgoing};
use broker_wire::{
    ClientLine, Era, Id, Incoming, Raw, RpcError, cancel_reason, cancelled_request, era,
    read_client_line,
};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call::ToolCall;
use super::call_task::{CallTask, charge_waiting};
use super::in_flight::{BatchId, InFlight};
use super::params::{self, Params};
use super::protocol::{self, Action};
use super::reply::{self, Answer, NO_ROOM, refusal};
use super::subscription::{Subscription, report_changes};
use super::{Client, result};
use broker_core::{Account, Broker, CallTrace, ChargeError, CoreError, memory_error_for_request};
use broker_surface::trace_of_rpc;

/// The maximum number of notifications that wait to be written; further ones are dropped.
const MAX_WAITING_MESSAGES: usize = 256;

/// The connection of one client.
#[derive(Debug)]
pub(super) struct Connection<B> {
    client: Arc<Client<B>>,
    /// The account of the client. It is charged for the client's requests and their answers.
    account: Account,
    /// The revision that `initialize` negotiated.
    revision: Option<&'static str>,
    pub(super) in_flight: InFlight,
    /// Cancelled by the drain, or with the client: subscriptions end then, calls continue.
    subscriptions: CancellationToken,
    /// Whether `initialize` may have no params, as the simplest clients send it.
    takes_empty_initialize: bool,
    /// The trace context of the request over HTTP that brought the current line.
    pub(super) trace: Option<Box<CallTrace>>,
    /// The maximum length of an answer.
    pub(super) answer_bytes: usize,
    /// Lines to send, in this order.
    outgoing: Vec<Outgoing>,
    /// Notifications of calls and subscriptions.
    messages: mpsc::Sender<Outgoing>,
}

/// The handling of a request.
enum Dispatch {
    /// It was answered at once.
    Now(Answer),
    /// A task works on it.
    Later,
}

impl<B: Broker> Connection<B> {
    /// Returns a connection with at most `max_in_flight` open requests, and the notifications to send to its client.
    /// The notifications of a request have to be sent before its answer.
    pub(super) fn new(
        client: Arc<Client<B>>,
        account: Account,
        max_in_flight: usize,
    ) -> (Self, mpsc::Receiver<Outgoing>) {
        let (messages, waiting) = mpsc::channel(MAX_WAITING_MESSAGES);
        let connection = Self {
            subscriptions: client.broker.services().drain().draining(),
            client,
            account,
            revision: None,
            in_flight: InFlight::new(max_in_flight),
            takes_empty_initialize: false,
            trace: None,
            answer_bytes: usize::MAX,
            outgoing: Vec::new(),
            messages,
        };
        (connection, waiting)
    }

    /// The same connection, whose `initialize` may have no params.
    pub(super) fn taking_empty_initialize(self) -> Self {
        Self {
            takes_empty_initialize: true,
            ..self
        }
    }

    /// Whether `initialize` was answered.
    pub(super) const fn is_open(&self) -> bool {
        self.revision.is_some()
    }

    /// Answers open subscriptions. They would otherwise stay open as long as the broker runs.
    pub(super) fn end_subscriptions(&self) {
        self.subscriptions.cancel();
    }

    /// Reads and handles one line. Returns the lines to send at once.
    pub(super) fn take_text(&mut self, line: &Bytes) -> Vec<Outgoing> {
        self.take(read_client_line(line))
    }

    /// Handles one line: a message or a batch. Returns the lines to send at once.
    pub(super) fn take(&mut self, line: ClientLine) -> Vec<Outgoing> {
        match line {
            ClientLine::One(message) => {
                let answer = self.message(message, None);
                self.outgoing.extend(answer);
            }
            ClientLine::Batch(messages) => self.batch(messages),
        }
        std::mem::take(&mut self.outgoing)
    }

    /// Refuses a line of more than `limit` bytes. The line was not kept.
    pub(super) fn line_too_long(&mut self, limit: usize) -> Vec<Outgoing> {
        let message = format!("the line is longer than {limit} bytes");
        self.refuse(None, RpcError::new(PARSE_ERROR, message));
        std::mem::take(&mut self.outgoing)
    }

    /// Refuses a line because of missing memory.
    pub(super) fn memory_error_for_line(
        &mut self,
        id: Option<&Id>,
        charge_error: ChargeError,
        needed: usize,
    ) -> Vec<Outgoing> {
        let error = memory_error_for_request(charge_error, needed, &self.account);
        let object = result::error_object(&error, self.client.ids.next().as_str());
        self.refuse(id, RpcError::new(NO_ROOM, error.message).data(object));
        std::mem::take(&mut self.outgoing)
    }

    fn refuse(&mut self, id: Option<&Id>, error: RpcError) {
        tracing::debug!(code = error.code, "a line was refused: {}", error.message);
        self.outgoing.push(write::error(id, error));
    }

    fn batch(&mut self, messages: Vec<Incoming>) {
        if !era::takes_batches(self.revision) {
            let message = "batches are not part of this protocol version";
            return self.refuse(None, RpcError::new(INVALID_REQUEST, message));
        }
        let batch = self.in_flight.open_batch();
        for message in messages {
            if let Some(part) = self.message(message, Some(batch)) {
                self.in_flight.add(batch, part);
            }
        }
        let whole = self.in_flight.seal(batch);
        self.outgoing.extend(whole);
    }

    /// The answer to a message, if there is one at once.
    fn message(&mut self, message: Incoming, batch: Option<BatchId>) -> Option<Outgoing> {
        match message {
            Incoming::Request { id, method, params } => {
                if self.in_flight.has(&id) {
                    let message = "a request with this id is still open";
                    let error = RpcError::new(INVALID_REQUEST, message);
                    return Some(write::error(Some(&id), error));
                }
                let taken = self.request(&id, &method, params, batch);
                match taken.unwrap_or_else(|error| Dispatch::Now(Err(error))) {
                    Dispatch::Now(answer) => Some(reply::answer(&id, answer)),
                    Dispatch::Later => None,
                }
            }
            Incoming::Notification { method, params } => {
                self.notification(&method, params.as_ref());
                None
            }
            Incoming::Response { .. } => {
                tracing::debug!("a response arrived, but the broker sent no request");
                None
            }
            Incoming::Invalid { id, problem } => {
                let error = refusal(problem);
                tracing::debug!(
                    code = error.code,
                    "a message was refused: {}",
                    error.message
                );
                Some(write::error(id.as_ref(), error))
            }
        }
    }

    fn request(
        &mut self,
        id: &Id,
        method: &str,
        params: Option<Raw>,
        batch: Option<BatchId>,
    ) -> Result<Dispatch, RpcError> {
        let raw = params.map_or_else(Params::none, Raw::into_bytes);
        let raw = match self.takes_empty_initialize {
            true => params::given(method, raw),
            false => raw,
        };
        let params = Params::read(&raw)?;
        let action = match params.meta.era()? {
            Era::Modern => protocol::modern(&self.client, &self.account, id, method, &params)?,
            Era::Legacy => protocol::legacy(
                &self.client,
                &self.account,
                self.revision.is_some(),
                method,
                &params,
            )?,
        };
        match action {
            Action::Answer(answer) => Ok(Dispatch::Now(answer)),
            Action::Initialize { .. } if batch.is_some() => Err(RpcError::new(
                INVALID_REQUEST,
                "`initialize` is not part of a batch",
            )),
            Action::Initialize { revision, answer } => {
                self.open(revision);
                Ok(Dispatch::Now(answer))
            }
            Action::SetLogLevel(level) => {
                self.client.set_log_level(level);
                Ok(Dispatch::Now(Ok(b"{}".to_vec().into())))
            }
            Action::Call(call) => self.call(id, call, batch),
            Action::Listen(subscription) => self.listen(id, subscription, batch),
        }
    }

    /// Stores the negotiated revision. From the first one on, a legacy client gets the changes of a list
    /// that can change, and the notifications of its tasks.
    fn open(&mut self, revision: &'static str) {
        let is_first = self.revision.replace(revision).is_none();
        if !is_first {
            return;
        }
        self.client
            .keep_session_tools_current(self.subscriptions.clone());
        if let Some(changes) = self.client.list_changes(&self.client.identity) {
            let (client, messages) = (Arc::clone(&self.client), self.messages.clone());
            let end = self.subscriptions.clone();
            tokio::spawn(async move {
                let announced = || client.list_change_announced();
                tokio::select! {
                    () = report_changes(changes, &messages, None, announced) => {}
                    () = end.cancelled() => {}
                }
            });
        }
        let (client, messages) = (Arc::clone(&self.client), self.messages.clone());
        let (account, end) = (self.account.clone(), self.subscriptions.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = client.report_tasks(&account, &messages) => {}
                () = end.cancelled() => {}
            }
        });
    }

    /// Returns what is known of a request for its trace, if calls are traced.
    fn trace_of(&self, id: &Id, era: Era) -> Option<Box<CallTrace>> {
        let broker = &self.client.broker;
        trace_of_rpc(broker, self.trace.as_deref(), Some(id), || match era {
            Era::Modern => Some(MODERN),
            Era::Legacy => self.revision,
        })
    }

    fn call(
        &mut self,
        id: &Id,
        call: ToolCall,
        batch: Option<BatchId>,
    ) -> Result<Dispatch, RpcError> {
        let request_id = self.client.ids.next();
        if self.in_flight.is_full() {
            let error = too_many_requests(self.in_flight.limit());
            return Ok(Dispatch::Now(Ok(result::error(
                &error,
                request_id.as_str(),
                call.era,
            )
            .into())));
        }
        if let Some(token) = &call.meta.progress_token
            && self.in_flight.has_token(token)
        {
            let message = "an open request has this `progressToken`";
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
        let token = call.meta.progress_token.clone();
        let waiting = match charge_waiting(&self.account, &call, self.in_flight.is_empty()) {
            Ok(charge) => charge,
            Err(error) => {
                let refusal = result::error(&error, request_id.as_str(), call.era);
                return Ok(Dispatch::Now(Ok(refusal.into())));
            }
        };
        let task = CallTask {
            level: match call.era {
                Era::Legacy => self.client.log_level.get(),
                Era::Modern => call.meta.log_level,
            },
            trace: self.trace_of(id, call.era),
            client: Arc::clone(&self.client),
            call: call.for_reader_of(self.answer_bytes),
            account: self.account.clone(),
            request_id,
            waiting,
        };
        let work = task.run(Some(self.messages.clone()));
        self.in_flight.begin(id.clone(), batch, token, work);
        Ok(Dispatch::Later)
    }

    /// A subscription is acknowledged at once, and ends with the broker.
    fn listen(
        &mut self,
        id: &Id,
        subscription: Subscription,
        batch: Option<BatchId>,
    ) -> Result<Dispatch, RpcError> {
        if self.in_flight.is_full() {
            let message = format!("{} requests are open already", self.in_flight.limit());
            return Err(RpcError::new(INTERNAL_ERROR, message));
        }
        self.outgoing.extend(subscription.acknowledgement_at_once());
        let changes = self
            .client
            .broker
            .services()
            .tool_list_changes(&self.client.identity);
        let work = subscription.run(changes, self.subscriptions.clone(), self.messages.clone());
        self.in_flight.begin(id.clone(), batch, None, work);
        Ok(Dispatch::Later)
    }

    fn notification(&mut self, method: &str, params: Option<&Raw>) {
        if method != CANCELLED {
            return;
        }
        match cancelled_request(params) {
            Some(id) => {
                let reason = cancel_reason(params);
                self.in_flight.cancel(&id, reason.as_deref());
            }
            None => tracing::debug!("a cancellation names no request"),
        }
    }
}

/// The refusal of a call whose client has `limit` open requests.
pub(super) fn too_many_requests(limit: usize) -> CoreError {
    let message = format!("{limit} requests are open already");
    let error = CoreError::new(CallCode::Overloaded, message)
        .hint("Wait for an answer before you send the next request.")
        .maybe_executed(false);
    CoreError {
        retryable: true,
        ..error
    }
}
