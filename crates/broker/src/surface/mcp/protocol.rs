//! The methods of MCP in both eras, the same for every transport: a request becomes an action.

use broker_wire::era::{self, Meta};
use broker_wire::protocol::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use broker_wire::{Era, Id, JsonMembers, LogLevel, RpcError};
use bytes::Bytes;
use serde_json::json;

use super::adapter::{AdapterMethod, Dialect, SIMPLE_REVISION, status_report};
use super::call::ToolCall;
use super::items::{self, ItemMethod};
use super::reply::Answer;
use super::subscription::Subscription;
use super::{Client, exposure};
use crate::core::{Account, Broker};

/// The maximum number of members of params; the protocol has far fewer. Members of arguments do not count.
const MAX_MEMBERS: usize = 64;
/// The maximum bytes of `_meta`, with the members that only the broker reads.
const MAX_META_BYTES: usize = 64 << 10;

/// The params for an `initialize` without params. The revision is [`SIMPLE_REVISION`].
const SIMPLEST_INITIALIZE: &[u8] = br#"{"protocolVersion":"2025-06-18"}"#;

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

/// The params of a request.
#[derive(Debug)]
pub(super) struct Params<'a> {
    /// One JSON object.
    pub(super) raw: &'a Bytes,
    pub(super) members: JsonMembers<'a>,
    pub(super) meta: Meta<'a>,
}

impl<'a> Params<'a> {
    /// Reads the params of a message that was read as JSON: an object without duplicate names.
    pub(super) fn read(raw: &'a Bytes) -> Result<Self, RpcError> {
        let wrong = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let text = std::str::from_utf8(raw).ok();
        let members = text.and_then(JsonMembers::from_valid);
        let members = members.ok_or_else(|| wrong("`params` must be an object"))?;
        if members.len() > MAX_MEMBERS {
            return Err(wrong(&format!(
                "`params` has more than {MAX_MEMBERS} members"
            )));
        }
        if members
            .get("_meta")
            .is_some_and(|meta| meta.len() > MAX_META_BYTES)
        {
            return Err(wrong(&format!(
                "`_meta` has more than {MAX_META_BYTES} bytes"
            )));
        }
        if let Some(name) = members.first_duplicate() {
            let name = broker_model::text::shown_line(name, 80);
            return Err(wrong(&format!("`params` has `{name}` twice")));
        }
        let meta = Meta::read(&members);
        Ok(Self { raw, members, meta })
    }

    /// Returns the params for a request without params.
    pub(super) const fn none() -> Bytes {
        Bytes::from_static(b"{}")
    }
}

/// Returns the params of a request; for an `initialize` without any, the params of the simplest clients.
pub(super) fn given_params(method: &str, raw: Bytes) -> Bytes {
    match method == "initialize" && is_empty_object(&raw) {
        true => Bytes::from_static(SIMPLEST_INITIALIZE),
        false => raw,
    }
}

/// Whether a JSON text is an object without members.
pub(super) fn is_empty_object(raw: &[u8]) -> bool {
    let inner = raw.trim_ascii().strip_prefix(b"{");
    let inner = inner.and_then(|raw| raw.strip_suffix(b"}"));
    inner.is_some_and(|inner| inner.trim_ascii().is_empty())
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
        "subscriptions/listen" => {
            Subscription::read(id, &params.members, client.view.mode).map(Action::Listen)
        }
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
            let answer = Ok(exposure::initialize(client, revision));
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

/// A request of a client that sends no handshake. Its answer is charged to `account`.
pub(super) fn simple(
    client: &Client<impl Broker>,
    account: &Account,
    method: &str,
    params: &Params<'_>,
) -> Result<Action, RpcError> {
    match method {
        "initialize" => {
            let answer = exposure::initialize(client, SIMPLE_REVISION);
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
        || ItemMethod::of_name(method).is_some()
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
    if let Some(method) = ItemMethod::of_name(method) {
        return items::action(client, account, method, params, era);
    }
    let list = || {
        let cursor = params.members.given("cursor");
        exposure::list(client, account, cursor, era).map(|list| Action::Answer(Ok(list)))
    };
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
