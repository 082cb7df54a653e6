//! Requests of the legacy era: the session that `initialize` begins, its requests, batches and streams.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, header};
use broker_wire::protocol::{
    CANCELLED, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, legacy_revision,
};
use broker_wire::write;
use broker_wire::{Id, Incoming, Raw, RpcError, cancel_reason, cancelled_request, era};
use tokio::sync::mpsc;

use super::headers::{self, Accepted, PROTOCOL_VERSION};
use super::reply::{self, Refused, ReplyBody, StreamReply};
use super::respond::{Begun, Ending, LastMessage, RpcRequest, begin_call, channel, now, respond};
use super::session::{BeginError, MAX_OPEN_REQUESTS, MAX_STREAMS, Session, SessionUse};
use super::session_id::SessionId;
use super::sessions::Full;
use super::stream::{EventStream, MAX_WAITING_CHANGES};
use super::{McpEndpoint, McpRequest, is_modern};
use crate::call_task::{CallTask, charge_waiting};
use crate::connection::too_many_requests;
use crate::params::Params;
use crate::protocol::{self, Action};
use crate::reply::{Answer, answer, failed, refusal};
use crate::result;
use crate::session_tools::SessionTools;
use crate::subscription::report_changes;
use broker_core::Broker;
use broker_surface::CallerShare;

/// `Retry-After` of a refused `initialize`, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("10");

/// Begins a legacy session.
pub(super) fn initialize(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    rpc: RpcRequest<'_>,
) -> Result<Response<ReplyBody>, Refused> {
    let RpcRequest {
        accepted,
        id,
        params,
        ..
    } = rpc;
    let session_id = SessionId::random().map_err(|error| {
        tracing::error!(%error, "the system gives no random bytes for a session");
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, failed())
    })?;
    let exec = request.settings.list_changed_exec.as_ref();
    let client = endpoint
        .client(request)?
        .with_session_tools(exec, || session_id.hash())
        .with_task_feed();
    let begun = protocol::legacy(&client, &request.account, false, "initialize", params);
    let (revision, outcome) = match begun {
        Ok(Action::Initialize { revision, answer }) => (revision, answer),
        Ok(_) => return Err(Refused::bad_request(failed())),
        Err(error) => {
            return Ok(now(
                request,
                accepted,
                StatusCode::OK,
                answer(id, Err(error)),
            ));
        }
    };
    let owner = CallerShare::new(&request.identity, request.address);
    let caller = (request.identity.clone(), request.account.clone());
    let session = Session::new(session_id, owner, caller, Arc::new(client), revision);
    if let Err(full) = endpoint.sessions.add(Arc::clone(&session)) {
        return Ok(too_many_sessions(full, id));
    }
    session
        .client
        .keep_session_tools_current(session.ended().clone());
    endpoint.sessions.end_with_right(session);
    tracing::debug!(session = ?session_id, revision, "a session began");
    let mut response = now(request, accepted, StatusCode::OK, answer(id, outcome));
    response
        .headers_mut()
        .insert(headers::SESSION_ID, session_id.header());
    Ok(response)
}

fn too_many_sessions(full: Full, id: &Id) -> Response<ReplyBody> {
    let message = match full {
        Full::Table => "the broker has too many sessions: try again later".to_owned(),
        Full::Share { limit } => {
            format!("this caller has {limit} sessions, all in use: end one, or try again later")
        }
    };
    let error = RpcError::new(INTERNAL_ERROR, message);
    let mut reply = Refused::new(StatusCode::SERVICE_UNAVAILABLE, error).reply(Some(id));
    reply.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    reply
}

/// A request of a session. A call runs on if its connection is lost; then its result is discarded.
pub(super) fn request(
    session: &Arc<Session<impl Broker>>,
    request: &McpRequest<'_>,
    rpc: RpcRequest<'_>,
) -> Result<Begun, Refused> {
    let RpcRequest {
        accepted,
        id,
        method,
        params,
    } = rpc;
    let invalid = |message| Refused::bad_request(RpcError::new(INVALID_REQUEST, message));
    if method == "initialize" {
        return Err(invalid("the session is initialized already"));
    }
    // A token may have been refreshed since the session began, and convey other rights.
    let client = match session.identity().has_same_right(&request.identity) {
        true => &session.client,
        false => &session.client.with_identity(&request.identity),
    };
    let at_once = |outcome: Answer| Ok(Begun::answered(answer(id, outcome)));
    let call = match protocol::legacy(client, &session.account, true, method, params) {
        Ok(Action::Call(call)) => call,
        Ok(Action::Answer(outcome)) => return at_once(outcome),
        Ok(Action::SetLogLevel(level)) => {
            client.set_log_level(level);
            return at_once(Ok(b"{}".to_vec().into()));
        }
        Ok(Action::Initialize { .. } | Action::Listen(_)) => return at_once(Err(failed())),
        Err(error) => return at_once(Err(error)),
    };
    let era = call.era;
    let token = call.meta.progress_token.clone();
    let waiting = match charge_waiting(&session.account, &call, session.is_unused()) {
        Ok(charge) => charge,
        Err(error) => {
            return at_once(Ok(
                result::error(&error, request.request_id.as_str(), era).into()
            ));
        }
    };
    let task = CallTask {
        level: client.log_level.get(),
        client: Arc::clone(client),
        call: call.for_reader_of(request.settings.event_bytes),
        account: session.account.clone(),
        request_id: request.request_id,
        trace: request.trace_of_rpc(&client.broker, Some(id), || Some(session.revision)),
        waiting,
    };
    let (sender, messages) = channel(&task, accepted);
    match session.begin(id.clone(), token, Box::pin(task.run(sender))) {
        Ok(outcome) => {
            let id = id.clone();
            let ending = Box::pin(async move {
                // An error of the channel: the request was cancelled, and gets no answer.
                let outcome = outcome.await.ok()?;
                let message = answer(&id, outcome);
                Some(LastMessage {
                    status: StatusCode::OK,
                    message,
                })
            });
            Ok(Begun { messages, ending })
        }
        Err(BeginError::Full) => {
            let error = too_many_requests(MAX_OPEN_REQUESTS);
            at_once(Ok(
                result::error(&error, request.request_id.as_str(), era).into()
            ))
        }
        Err(BeginError::SameToken) => {
            let message = "an open request has this `progressToken`";
            at_once(Err(RpcError::new(INVALID_PARAMS, message)))
        }
        Err(BeginError::SameId) => Err(invalid("a request with this id is still open")),
        Err(BeginError::Ended) => {
            let error = RpcError::new(INVALID_REQUEST, "the session has ended");
            Err(Refused::new(StatusCode::NOT_FOUND, error))
        }
    }
}

/// A request of a client that gets no session: it is answered alone, and its call ends with its connection.
pub(super) fn request_without_session(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    rpc: RpcRequest<'_>,
) -> Result<Begun, Refused> {
    let RpcRequest {
        accepted,
        id,
        method,
        params,
    } = rpc;
    if method != "initialize" {
        check_version(request.parts)?;
    }
    let client = endpoint.client(request)?;
    let answered = |outcome: Answer| Begun::answered(answer(id, outcome));
    Ok(
        match protocol::without_session(&client, &request.account, method, params) {
            Ok(Action::Call(call)) => begin_call(endpoint, request, client, accepted, id, call),
            Ok(Action::Answer(outcome)) => answered(outcome),
            // The level is that of no later request.
            Ok(Action::SetLogLevel(_)) => answered(Ok(b"{}".to_vec().into())),
            Ok(Action::Initialize { .. } | Action::Listen(_)) => answered(Err(failed())),
            Err(error) => answered(Err(error)),
        },
    )
}

/// Handles a batch. Only some legacy revisions have batches. Its answers are one message, without notifications.
pub(super) async fn batch(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    accepted: Accepted,
    messages: Vec<Incoming>,
) -> Result<Response<ReplyBody>, Refused> {
    let not_taken = || {
        let message = "batches are not part of this protocol version";
        Refused::bad_request(RpcError::new(INVALID_REQUEST, message))
    };
    if is_modern(request.parts) {
        return Err(not_taken());
    }
    let used = match endpoint.has_sessions(request) {
        true => Some(endpoint.session(request)?),
        false => None,
    };
    let revision = match &used {
        Some(used) => Some(used.session.revision),
        None => named_revision(request.parts)?,
    };
    if !era::takes_batches(revision) {
        return Err(not_taken());
    }
    let silent = Accepted {
        stream: false,
        ..accepted
    };
    let mut endings: Vec<Ending> = Vec::new();
    for message in messages {
        match message {
            Incoming::Request { id, method, params } => {
                let raw = params.map_or_else(Params::none, Raw::into_bytes);
                let begun = Params::read(&raw)
                    .map_err(Refused::bad_request)
                    .and_then(|params| {
                        let rpc = RpcRequest {
                            accepted: silent,
                            id: &id,
                            method: &method,
                            params: &params,
                        };
                        match &used {
                            Some(used) => self::request(&used.session, request, rpc),
                            None => request_without_session(endpoint, request, rpc),
                        }
                    });
                let begun = begun.unwrap_or_else(|refused| {
                    Begun::answered(write::error(Some(&id), refused.error))
                });
                endings.push(begun.ending);
            }
            Incoming::Notification { method, params } => {
                if let Some(used) = &used {
                    notification(&used.session, &method, params.as_ref());
                }
            }
            Incoming::Response { .. } => {}
            Incoming::Invalid { id, problem } => {
                let message = write::error(id.as_ref(), refusal(problem));
                endings.push(Begun::answered(message).ending);
            }
        }
    }
    drop(used);
    if endings.is_empty() {
        return Ok(reply::empty(StatusCode::ACCEPTED));
    }
    let ending = Box::pin(async move {
        let mut parts = Vec::with_capacity(endings.len());
        for ending in endings {
            parts.extend(ending.await.map(|part| part.message));
        }
        (!parts.is_empty()).then(|| LastMessage {
            status: StatusCode::OK,
            message: write::batch(parts),
        })
    });
    Ok(respond(request, accepted, None, ending).await)
}

/// The stream of a session for messages that belong to no request: the changes of a list that can change. Each
/// change is reported on one stream of the session.
pub(super) fn open_stream(
    endpoint: &McpEndpoint<impl Broker>,
    request: &McpRequest<'_>,
    mut used: SessionUse<impl Broker>,
) -> Result<Response<ReplyBody>, Refused> {
    if !headers::accepted(&request.parts.headers).stream {
        return Err(Refused::not_acceptable("`text/event-stream`"));
    }
    if !used.become_stream() {
        let message = format!("the session has {MAX_STREAMS} streams already");
        let error = RpcError::new(INVALID_REQUEST, message);
        return Err(Refused::new(StatusCode::CONFLICT, error));
    }
    let owned = endpoint.begin_stream(request)?;
    let (sender, messages) = mpsc::channel(MAX_WAITING_CHANGES);
    let identity = request.identity.seeing_as(&used.session.client.identity);
    let ending = Box::pin(async move {
        let client = &used.session.client;
        let changes = client.list_changes(&identity);
        let draining = client.broker.services().drain().draining();
        let report = async {
            let _reporter = used.session.become_reporter().await;
            let _announcing = client.session_tools.as_ref().map(SessionTools::open_stream);
            if let Some(changes) = changes {
                let announced = || client.list_change_announced();
                tokio::join!(
                    report_changes(changes, &sender, None, announced),
                    client.report_tasks(&used.session.account, &sender),
                );
            } else {
                client.report_tasks(&used.session.account, &sender).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = report => {}
            () = used.session.ended().cancelled() => {}
            () = draining.cancelled() => {}
            () = client.broker.services().right_ended(&identity) => {}
        }
        drop(owned);
        None
    });
    let stream = EventStream::new(Some(messages), ending, request.event_limit());
    Ok(reply::stream(StreamReply::Open, stream))
}

/// Handles a notification of a session.
pub(super) fn notification(session: &Session<impl Broker>, method: &str, params: Option<&Raw>) {
    if method != CANCELLED {
        return;
    }
    match cancelled_request(params) {
        Some(id) => session.cancel(&id, cancel_reason(params).as_deref()),
        None => tracing::debug!("a cancellation names no request"),
    }
}

/// Returns the revision of a request without a session; without the header it is the one that had none
/// (MCP 2025-11-25, transports).
fn named_revision(parts: &Parts) -> Result<Option<&'static str>, Refused> {
    check_version(parts)?;
    let version = headers::single(&parts.headers, &PROTOCOL_VERSION);
    let version = version.ok().flatten().unwrap_or("2025-03-26");
    Ok(legacy_revision(version))
}

/// Refuses a request of a session that names a revision unknown to the broker.
pub(super) fn check_version(parts: &Parts) -> Result<(), Refused> {
    let version = headers::single(&parts.headers, &PROTOCOL_VERSION);
    match version {
        Ok(None) => Ok(()),
        Ok(Some(version)) if legacy_revision(version).is_some() => Ok(()),
        Ok(Some(_)) | Err(_) => {
            let known = broker_wire::protocol::LEGACY.join("`, `");
            let message =
                format!("the `MCP-Protocol-Version` header of a session must be one of `{known}`");
            Err(Refused::bad_request(RpcError::new(
                INVALID_REQUEST,
                message,
            )))
        }
    }
}
