//! A message of a client: of the modern era, or of a legacy session. The era is decided for each message.

use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use broker_wire::protocol::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
};
use broker_wire::{ClientLine, Era, Id, Incoming, Raw, RpcError, read_client_line};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::headers::{self, Accepted, PROTOCOL_VERSION};
use super::reply::{self, Refused, ReplyBody, StreamReply};
use super::respond::{Begun, RpcRequest, begin_call, now, respond};
use super::simple::{self, Taken};
use super::stream::{EventStream, MAX_WAITING_CHANGES};
use super::{McpEndpoint, McpRequest, is_modern, legacy, session_required};
use crate::Client;
use crate::call::ToolCall;
use crate::params::{self, Params};
use crate::protocol::{self, Action};
use crate::reply::{answer, refusal};
use crate::subscription::Subscription;
use broker_core::{Account, Broker, CoreError, SMALL_BYTES};

/// Handles the message in `body`.
pub(super) async fn message(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    body: Bytes,
) -> Result<Response<ReplyBody>, Box<CoreError>> {
    let message = match body.len() {
        ..=SMALL_BYTES => Ok(read_client_line(&body)),
        _ => {
            let read = move || read_checked(&body);
            endpoint
                .broker
                .services()
                .read_long(&request.account, read)
                .await?
        }
    };
    let message = match simple::taken(request, message) {
        Taken::Simple(message) => return Ok(simple::answer(endpoint, request, message).await),
        Taken::Other(message) => message,
    };
    let accepted = headers::accepted(&request.parts.headers);
    if !accepted.json && !accepted.stream {
        let forms = "`application/json` or `text/event-stream`";
        return Ok(Refused::not_acceptable(forms).reply(None));
    }
    let reply = match message {
        Err((id, error)) => return Ok(Refused::bad_request(error).reply(Some(&id))),
        Ok(ClientLine::One(Incoming::Request { id, method, params })) => {
            let reply = one_request(endpoint, request, accepted, &id, &method, params).await;
            return Ok(reply.unwrap_or_else(|refused| refused.reply(Some(&id))));
        }
        Ok(ClientLine::One(Incoming::Notification { method, params })) => {
            notification(endpoint, request, &method, params.as_ref())
        }
        Ok(ClientLine::One(Incoming::Response { .. })) => response(endpoint, request),
        Ok(ClientLine::One(Incoming::Invalid { id, problem })) => {
            return Ok(Refused::bad_request(refusal(problem)).reply(id.as_ref()));
        }
        Ok(ClientLine::Batch(messages)) => {
            legacy::batch(endpoint, request, accepted, messages).await
        }
    };
    Ok(reply.unwrap_or_else(|refused| refused.reply(None)))
}

/// Reads a long message. Params that would take long to read are refused here, away from the runtime's
/// threads.
pub(super) fn read_checked(body: &Bytes) -> Result<ClientLine, (Id, RpcError)> {
    let message = read_client_line(body);
    if let ClientLine::One(Incoming::Request { id, params, .. }) = &message
        && let Some(params) = params
        && let Err(error) = Params::read(params.bytes())
    {
        return Err((id.clone(), error));
    }
    Ok(message)
}

fn notification(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    method: &str,
    params: Option<&Raw>,
) -> Result<Response<ReplyBody>, Refused> {
    // Without a session, no message names a request of another one.
    if !is_modern(request.parts) && endpoint.has_sessions(request) {
        let used = endpoint.session(request)?;
        legacy::notification(&used.session, method, params);
    }
    Ok(reply::empty(StatusCode::ACCEPTED))
}

/// Handles a response of a client, although the broker did not send it a request.
fn response(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
) -> Result<Response<ReplyBody>, Refused> {
    if is_modern(request.parts) {
        let message = "a client of this protocol version sends no responses";
        return Err(Refused::bad_request(RpcError::new(
            INVALID_REQUEST,
            message,
        )));
    }
    if endpoint.has_sessions(request) {
        endpoint.session(request)?;
    }
    Ok(reply::empty(StatusCode::ACCEPTED))
}

async fn one_request(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    accepted: Accepted,
    id: &Id,
    method: &str,
    params: Option<Raw>,
) -> Result<Response<ReplyBody>, Refused> {
    let raw = match params {
        Some(params) => params.into_bytes(),
        None => Params::none(),
    };
    let raw = params::given(method, raw);
    let params = Params::read(&raw).map_err(Refused::bad_request)?;
    let rpc = RpcRequest {
        accepted,
        id,
        method,
        params: &params,
    };
    if is_modern(request.parts) || params.meta.describes_itself() {
        return modern(endpoint, request, rpc).await;
    }
    let begun = if endpoint.has_sessions(request) {
        match endpoint.named_session(request)? {
            Some(used) => legacy::request(&used.session, request, rpc)?,
            None if method == "initialize" => return legacy::initialize(endpoint, request, rpc),
            None => return Err(session_required()),
        }
    } else {
        legacy::request_without_session(endpoint, request, rpc)?
    };
    Ok(respond(request, accepted, begun.messages, begun.ending).await)
}

/// A request that describes itself. Its headers are checked in the order of the specification.
async fn modern(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    rpc: RpcRequest<'_>,
) -> Result<Response<ReplyBody>, Refused> {
    let RpcRequest {
        accepted,
        id,
        method,
        params,
    } = rpc;
    check_modern(request.parts, method, params).map_err(Refused::bad_request)?;
    let client = endpoint.client(request)?;
    let call = match protocol::modern(&client, &request.account, id, method, params) {
        Ok(Action::Call(call)) => call,
        Ok(Action::Listen(subscription)) => {
            return listen(endpoint, request, &client, accepted, id, subscription);
        }
        Ok(Action::Answer(outcome)) => {
            return Ok(now(request, accepted, StatusCode::OK, answer(id, outcome)));
        }
        // Methods that only the legacy era has.
        Ok(Action::Initialize { .. } | Action::SetLogLevel(_)) => {
            let error = RpcError::new(METHOD_NOT_FOUND, "the method does not exist");
            return Err(Refused::new(StatusCode::NOT_FOUND, error));
        }
        Err(error) if error.code == METHOD_NOT_FOUND => {
            return Err(Refused::new(StatusCode::NOT_FOUND, error));
        }
        Err(error) if error.code == MISSING_CAPABILITY => return Err(Refused::bad_request(error)),
        Err(error) => {
            return Ok(now(
                request,
                accepted,
                StatusCode::OK,
                answer(id, Err(error)),
            ));
        }
    };
    check_params((endpoint, &request.account), request.parts, &call).await?;
    let Begun { messages, ending } = begin_call(endpoint, request, client, accepted, id, call);
    Ok(respond(request, accepted, messages, ending).await)
}

fn check_modern(parts: &Parts, method: &str, params: &Params<'_>) -> Result<(), RpcError> {
    let header = headers::single(&parts.headers, &PROTOCOL_VERSION)?.ok_or_else(|| {
        headers::mismatch("the `MCP-Protocol-Version` header is missing".to_owned())
    })?;
    let checked = params.meta.era();
    let version = params.meta.named_revision();
    // Without `_meta` the header cannot be compared.
    if version.is_some_and(|version| version != header) {
        let message = "the `MCP-Protocol-Version` header differs from `_meta`";
        return Err(headers::mismatch(message.to_owned()));
    }
    if checked? == Era::Legacy {
        let message = format!(
            "a request of this protocol version needs `_meta` with `{}` and `{}`",
            broker_wire::protocol::META_PROTOCOL_VERSION,
            broker_wire::protocol::META_CLIENT_CAPABILITIES
        );
        return Err(RpcError::new(INVALID_PARAMS, message));
    }
    headers::check_method(&parts.headers, method)?;
    headers::check_name(&parts.headers, method, &params.members)
}

/// Compares the headers of arguments with the arguments of a call.
async fn check_params(
    (endpoint, account): (&McpEndpoint<impl Broker>, &Account),
    parts: &Parts,
    call: &ToolCall,
) -> Result<(), Refused> {
    let Some(tool) = call
        .flat_tool()
        .filter(|tool| !tool.header_params.is_empty())
    else {
        return Ok(());
    };
    let (arguments, params) = (call.arguments().clone(), tool.header_params);
    let checked = if arguments.len() > SMALL_BYTES {
        let headers = parts.headers.clone();
        let check = move || headers::check_params(&headers, params, &arguments);
        let checked = endpoint.broker.services().read_long(account, check).await;
        checked.unwrap_or_else(|error| Err(RpcError::new(INTERNAL_ERROR, error.message)))
    } else {
        headers::check_params(&parts.headers, params, &arguments)
    };
    checked.map_err(Refused::bad_request)
}

/// A subscription: a stream that ends with the broker or its connection.
fn listen(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    client: &Client<impl Broker>,
    accepted: Accepted,
    id: &Id,
    subscription: Subscription,
) -> Result<Response<ReplyBody>, Refused> {
    if !accepted.stream {
        return Err(Refused::not_acceptable("`text/event-stream`"));
    }
    let owned = endpoint.begin_stream(request)?;
    let (sender, messages) = mpsc::channel(MAX_WAITING_CHANGES);
    let changes = client.broker.services().tool_list_changes(&client.identity);
    let (broker, identity) = (client.broker.clone(), client.identity.clone());
    let end = broker.services().drain().draining();
    let acknowledgement = subscription.acknowledgement_at_once();
    let id = id.clone();
    let ending = Box::pin(async move {
        let outcome = tokio::select! {
            outcome = subscription.run(changes, end, sender) => Some(answer(&id, outcome)),
            () = broker.services().right_ended(&identity) => None,
        };
        drop(owned);
        outcome
    });
    let stream = EventStream::new(Some(messages), ending, request.event_limit());
    let stream = match acknowledgement {
        Some(acknowledgement) => stream.starting_with(acknowledgement),
        None => stream,
    };
    Ok(reply::stream(StreamReply::Open, stream))
}
