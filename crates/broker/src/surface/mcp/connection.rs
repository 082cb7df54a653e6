//! The state of one client: its negotiated revision and open requests. Answers may be sent in any
//! order.

use std::sync::Arc;

use broker_model::CallCode;
use broker_wire::protocol::{
    CANCELLED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, META_SUBSCRIPTION_ID,
    METHOD_NOT_FOUND, PARSE_ERROR,
};
use broker_wire::write::{self, Outgoing};
use broker_wire::{
    ClientLine, Era, Id, Incoming, JsonMembers, Raw, RpcError, cancelled_request, era,
    read_client_line,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::call::ToolCall;
use super::in_flight::{BatchId, InFlight, MAX_IN_FLIGHT};
use super::reply::{self, Answer, NO_ROOM, refusal};
use super::{ClientContext, result};
use crate::core::{ChargeError, CoreError, memory_error_for_request};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The connection of one client.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<ClientContext>,
    /// The revision that `initialize` negotiated.
    revision: Option<&'static str>,
    pub(super) in_flight: InFlight,
    /// Cancelled by the drain, or with the client: subscriptions end then, calls continue.
    subscriptions: CancellationToken,
    /// Lines to send, in this order.
    outgoing: Vec<Outgoing>,
}

/// The handling of a request.
enum Dispatch {
    /// It was answered at once.
    Now(Answer),
    /// A task works on it.
    Later,
}

impl Connection {
    pub(super) fn new(shared: Arc<ClientContext>) -> Self {
        Self {
            subscriptions: shared.drain.draining(),
            shared,
            revision: None,
            in_flight: InFlight::default(),
            outgoing: Vec::new(),
        }
    }

    /// Answers open subscriptions, which would otherwise stay open as long as the broker runs.
    pub(super) fn end_subscriptions(&self) {
        self.subscriptions.cancel();
    }

    /// Handles one line: a message or a batch. Returns the lines to send at once.
    pub(super) fn take(&mut self, line: &Bytes) -> Vec<Outgoing> {
        match read_client_line(line) {
            ClientLine::One(message) => {
                let answer = self.message(message, None);
                self.outgoing.extend(answer);
            }
            ClientLine::Batch(messages) => self.batch(messages),
        }
        std::mem::take(&mut self.outgoing)
    }

    /// Refuses a line of more than `limit` bytes, which was not kept.
    pub(super) fn line_too_long(&mut self, limit: usize) -> Vec<Outgoing> {
        let message = format!("the line is longer than {limit} bytes");
        self.refuse(None, RpcError::new(PARSE_ERROR, message));
        std::mem::take(&mut self.outgoing)
    }

    /// Refuses a line for which there was no memory.
    pub(super) fn memory_error_for_line(
        &mut self,
        id: Option<&Id>,
        charge_error: ChargeError,
        needed: usize,
    ) -> Vec<Outgoing> {
        let error = memory_error_for_request(charge_error, needed, &self.shared.account);
        let object = result::error_object(&error, &self.shared.ids.next());
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
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let raw = params.map_or(Bytes::from_static(b"{}"), Raw::into_bytes);
        let params = JsonMembers::parse(&raw).map_err(|_| wrong("`params` must be an object"))?;
        if let Some(name) = params.first_duplicate() {
            let name = broker_model::text::shown_line(name, 80);
            return Err(wrong(&format!("`params` has `{name}` twice")));
        }
        let era = era::of_request(&params)?;
        let now = |value: Value| Ok(Dispatch::Now(Ok(value.to_string().into_bytes().into())));
        match (era, method) {
            (Era::Modern, "server/discover") => now(self.shared.texts.discover()),
            (Era::Modern, "subscriptions/listen") => self.listen(id, &params, batch),
            (Era::Legacy, "initialize") if batch.is_some() => Err(RpcError::new(
                INVALID_REQUEST,
                "`initialize` is not part of a batch",
            )),
            (Era::Legacy, "initialize") => {
                let revision = era::negotiate(&params)?;
                self.revision = Some(revision);
                now(self.shared.texts.initialize(revision))
            }
            (Era::Legacy, "ping") => now(json!({})),
            (Era::Legacy, "server/discover" | "subscriptions/listen") => Err(wrong(&format!(
                "`{method}` needs `_meta` with `{}` and `{}`",
                broker_wire::protocol::META_PROTOCOL_VERSION,
                broker_wire::protocol::META_CLIENT_CAPABILITIES
            ))),
            (Era::Legacy, "tools/list" | "tools/call") if self.revision.is_none() => {
                let message = "the connection is not initialized: send `initialize` first, or a request that describes itself in `_meta`";
                Err(RpcError::new(INVALID_REQUEST, message))
            }
            (_, "tools/list") if params.given("cursor").is_some() => {
                Err(wrong("the cursor is unknown: the list has one page"))
            }
            (_, "tools/list") => now(self.shared.texts.list(era)),
            (_, "tools/call") => {
                let call = ToolCall::parse(&params, era, &raw)?;
                Ok(self.call(id, call, batch))
            }
            _ => {
                let method = broker_model::text::shown_line(method, 80);
                let message = format!("the method `{method}` does not exist");
                Err(RpcError::new(METHOD_NOT_FOUND, message))
            }
        }
    }

    fn call(&mut self, id: &Id, call: ToolCall, batch: Option<BatchId>) -> Dispatch {
        let request_id = self.shared.ids.next();
        if self.in_flight.is_full() {
            let message = format!("{MAX_IN_FLIGHT} requests are open already");
            let error = CoreError::new(CallCode::Overloaded, message)
                .hint("Wait for an answer before you send the next request.")
                .maybe_executed(false);
            let error = CoreError {
                retryable: true,
                ..error
            };
            return Dispatch::Now(Ok(result::error(&error, &request_id, call.era).into()));
        }
        let shared = Arc::clone(&self.shared);
        let work = async move { call.run(&shared, &request_id).await };
        self.in_flight.begin(id.clone(), batch, work);
        Dispatch::Later
    }

    /// The lists of the broker never change: a subscription is acknowledged, and ends with the broker.
    fn listen(
        &mut self,
        id: &Id,
        params: &JsonMembers<'_>,
        batch: Option<BatchId>,
    ) -> Result<Dispatch, RpcError> {
        if !params
            .get("notifications")
            .is_some_and(|raw| raw.starts_with('{'))
        {
            let message = "`notifications` must be an object";
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
        if self.in_flight.is_full() {
            let message = format!("{MAX_IN_FLIGHT} requests are open already");
            return Err(RpcError::new(INTERNAL_ERROR, message));
        }
        let id_value: Value = serde_json::from_str(&id.to_string()).unwrap_or_default();
        let meta = json!({ META_SUBSCRIPTION_ID: id_value });
        let acknowledged = json!({ "_meta": meta, "notifications": {} });
        self.outgoing.push(write::notification(
            ACKNOWLEDGED,
            Some(&acknowledged.to_string()),
        ));
        let closing = self.subscriptions.clone();
        let work = async move {
            closing.cancelled().await;
            let result = json!({ "resultType": "complete", "_meta": meta });
            Ok(result.to_string().into_bytes().into())
        };
        self.in_flight.begin(id.clone(), batch, work);
        Ok(Dispatch::Later)
    }

    fn notification(&mut self, method: &str, params: Option<&Raw>) {
        if method != CANCELLED {
            return;
        }
        match cancelled_request(params) {
            Some(id) => self.in_flight.cancel(&id),
            None => tracing::debug!("a cancellation names no request"),
        }
    }
}
