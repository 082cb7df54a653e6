//! The methods of MCP in both eras, the same for every transport: a request becomes an action.

use broker_wire::era;
use broker_wire::protocol::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use broker_wire::{Era, Id, LogLevel, RpcError};
use serde_json::json;

use super::adapter::{AdapterMethod, Dialect, SIMPLE_REVISION, status_report};
use super::call::ToolCall;
use super::items::{self, ItemAnswer, ItemMethod};
use super::own_listing::decided_later;
use super::params::Params;
use super::reply::Answer;
use super::subscription::Subscription;
use super::tasks::{TaskRequest, extension, is_task_method};
use super::{Client, exposure, job_resource};
use broker_core::{Account, Broker};

/// The action that a request with checked params asks for.
#[derive(Debug)]
pub(super) enum Action {
    /// Only this answer.
    Answer(Answer),
    /// `initialize`. It negotiated `revision`.
    Initialize {
        revision: &'static str,
        answer: Answer,
    },
    /// `logging/setLevel`, answered by `{}`.
    SetLogLevel(LogLevel),
    /// `tools/call`.
    Call(ToolCall),
    /// `subscriptions/listen`.
    Listen(Subscription),
}

/// A request of the modern era, whose `_meta` was checked. Its answer is charged to `account`.
pub(super) fn modern(
    client: &Client<impl Broker>,
    account: &Account,
    id: &Id,
    method: &str,
    params: &Params<'_>,
) -> Result<Action, RpcError> {
    match method {
        "server/discover" => Ok(Action::Answer(Ok(exposure::discover(client)))),
        "subscriptions/listen" => Subscription::read(client, id, params).map(Action::Listen),
        _ => tools(client, account, method, params, Era::Modern),
    }
}

/// A request of the legacy era. Its answer is charged to `account`. `is_open` says whether `initialize` was answered before.
pub(super) fn legacy(
    client: &Client<impl Broker>,
    account: &Account,
    is_open: bool,
    method: &str,
    params: &Params<'_>,
) -> Result<Action, RpcError> {
    let wrong = |message: String| RpcError::new(INVALID_PARAMS, message);
    match method {
        "initialize" => {
            let revision = era::negotiate(&params.members)?;
            let answer = Ok(exposure::initialize(client, revision, true));
            Ok(Action::Initialize { revision, answer })
        }
        "ping" => Ok(Action::Answer(Ok(json!({})
            .to_string()
            .into_bytes()
            .into()))),
        "server/discover" | "subscriptions/listen" => Err(wrong(format!(
            "`{method}` needs `_meta` with `{}` and `{}`",
            broker_wire::protocol::META_PROTOCOL_VERSION,
            broker_wire::protocol::META_CLIENT_CAPABILITIES
        ))),
        _ if !is_open && client.dialect != Dialect::Simple && needs_session(client, method) => {
            let message = "the connection is not initialized: send `initialize` first, or a request that describes itself in `_meta`";
            Err(RpcError::new(INVALID_REQUEST, message))
        }
        "logging/setLevel" => {
            let level = params.members.get("level").and_then(LogLevel::from_json);
            let names = || LogLevel::ALL.map(LogLevel::as_str).join("`, `");
            level
                .map(Action::SetLogLevel)
                .ok_or_else(|| wrong(format!("`level` must be one of `{}`", names())))
        }
        _ => tools(client, account, method, params, Era::Legacy),
    }
}

/// A request of the legacy era from a client without a session. Its answer is charged to `account`.
pub(super) fn without_session(
    client: &Client<impl Broker>,
    account: &Account,
    method: &str,
    params: &Params<'_>,
) -> Result<Action, RpcError> {
    match method {
        "initialize" => {
            let revision = era::negotiate(&params.members)?;
            let answer = exposure::initialize(client, revision, false);
            Ok(Action::Answer(Ok(answer)))
        }
        _ => legacy(client, account, true, method, params),
    }
}

/// A request of a client that sends no handshake. Its answer is charged to `account`.
pub(super) fn simple(
    client: &Client<impl Broker>,
    account: &Account,
    method: &str,
    params: &Params<'_>,
) -> Result<Action, RpcError> {
    match method {
        "initialize" => {
            let answer = exposure::initialize(client, SIMPLE_REVISION, true);
            Ok(Action::Answer(Ok(answer)))
        }
        "logging/setLevel" => {
            let message = "`logging/setLevel` needs a session: send `initialize` with params first";
            Err(RpcError::new(INVALID_REQUEST, message))
        }
        _ => legacy(client, account, true, method, params),
    }
}

/// Whether a legacy client must have sent `initialize` before this method.
fn needs_session(client: &Client<impl Broker>, method: &str) -> bool {
    matches!(method, "tools/list" | "tools/call" | "logging/setLevel")
        || is_task_method(method)
        || ItemMethod::parse(method).is_some()
        || client.dialect.method(method).is_some()
}

/// The methods that both eras have.
fn tools(
    client: &Client<impl Broker>,
    account: &Account,
    method: &str,
    params: &Params<'_>,
    era: Era,
) -> Result<Action, RpcError> {
    if client.broker.jobs().is_some()
        && let Some(id) = job_resource::asked_id(method, &params.members)
    {
        let read = TaskRequest::Resource(id, era);
        return ToolCall::about_tasks(read, params, era).map(Action::Call);
    }
    if let Some(method) = ItemMethod::parse(method) {
        let services = client.broker.services();
        // The call waits until sources have listed their resources for the first time.
        if method.needs_resources() && services.awaits_resources(&client.identity) {
            return ToolCall::after_start(method, params, era).map(Action::Call);
        }
        return Ok(match items::answer(client, account, method, params, era)? {
            ItemAnswer::List(list) => Action::Answer(Ok(list)),
            ItemAnswer::Call(call) => Action::Call(ToolCall::wrap(call, params, era)?),
        });
    }
    let list = || {
        let cursor = params.members.given("cursor");
        let has_tasks = era == Era::Modern && extension::is_declared(&params.meta);
        let form = (era, has_tasks);
        decided_later(|| exposure::list(client, account, cursor, form))
            .map(|list| Action::Answer(Ok(list)))
    };
    if let Some(request) = TaskRequest::read(client, method, params, era)? {
        return ToolCall::about_tasks(request, params, era).map(Action::Call);
    }
    match method {
        "tools/list" => list(),
        "tools/call" => ToolCall::parse(client, params, era).map(Action::Call),
        _ => match client.dialect.method(method) {
            Some(AdapterMethod::ListTools) => list(),
            Some(AdapterMethod::CallTool) => {
                ToolCall::parse_command(client, params, era).map(Action::Call)
            }
            Some(AdapterMethod::StatusReport) => Ok(Action::Answer(Ok(status_report(client, era)))),
            None => {
                let method = broker_model::text::shown_line(method, 80);
                let message = format!("the method `{method}` does not exist");
                Err(RpcError::new(METHOD_NOT_FOUND, message))
            }
        },
    }
}
