//! Writes the lines that are sent to servers. Each is built once, including its newline.

use std::num::NonZeroU32;

use broker_model::extension::{Extension, Extensions};
use broker_wire::protocol::{
    CANCELLED, LEGACY_LATEST, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL,
    META_PROTOCOL_VERSION, METHOD_NOT_FOUND, MODERN,
};
use broker_wire::write::{
    error, notification, push_number, push_one_line, push_string, request, result,
};
use broker_wire::{Id, LogLevel, RpcError};
use bytes::Bytes;

use crate::events::CallEvents;
use crate::server_call::{ServerCall, ServerOperation};
use crate::spec::ItemLists;

/// The room for the members of `_meta` that ask for events: their names, a level and a number.
const MAX_EVENT_MEMBERS: usize = 96;

/// The methods of the broker's messages. Requests over HTTP repeat them in a header.
pub(crate) const CALL: &str = "tools/call";
pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const INITIALIZED: &str = "notifications/initialized";
pub(crate) const PING: &str = "ping";
pub(crate) const LIST: &str = "tools/list";
pub(crate) const LIST_PROMPTS: &str = "prompts/list";
pub(crate) const LIST_TEMPLATES: &str = "resources/templates/list";
pub(crate) const LIST_RESOURCES: &str = "resources/list";
pub(crate) const GET_PROMPT: &str = "prompts/get";
pub(crate) const READ_RESOURCE: &str = "resources/read";
pub(crate) const COMPLETE: &str = "completion/complete";
pub(crate) const LISTEN: &str = "subscriptions/listen";
pub(crate) const SET_LEVEL: &str = "logging/setLevel";
pub(crate) const GET_TASK: &str = "tasks/get";
pub(crate) const TASK_RESULT: &str = "tasks/result";
pub(crate) const CANCEL_TASK: &str = "tasks/cancel";
/// The empty method of an answer.
pub(crate) const ANSWER: &str = "";

/// The `clientInfo` of the broker.
const CLIENT_INFO: &str = concat!(
    r#"{"name":"mcp-broker","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// Returns the `_meta` member of every modern request, without a comma. Capabilities are the same in every request, since
/// some servers choose their tools by them: the extensions of the source, and nothing else.
pub(crate) fn modern_meta(extensions: &Extensions) -> String {
    let mut declared = String::new();
    if !extensions.is_empty() {
        let names = extensions.names().map(|name| format!("\"{name}\":{{}}"));
        declared = format!("\"extensions\":{{{}}}", names.collect::<Vec<_>>().join(","));
    }
    format!(
        r#""_meta":{{"{META_PROTOCOL_VERSION}":"{MODERN}","{META_CLIENT_CAPABILITIES}":{{{declared}}},"{META_CLIENT_INFO}":{CLIENT_INFO}}}"#
    )
}

impl ServerOperation<'_> {
    /// Returns the method of its request.
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::CallTool { .. } => CALL,
            Self::GetPrompt { .. } => GET_PROMPT,
            Self::ReadResource { .. } => READ_RESOURCE,
            Self::Complete { .. } => COMPLETE,
        }
    }

    /// Returns its length in a line, in bytes, without the names of members.
    const fn size(&self) -> usize {
        match self {
            Self::CallTool { name, args } | Self::GetPrompt { name, args } => {
                name.len() + args.len()
            }
            Self::ReadResource { uri } => uri.len(),
            Self::Complete { params } => params.len(),
        }
    }
}

/// Returns the request of a call. `meta` is empty or [`modern_meta`]; the call's own members of `_meta` follow those.
/// `task` has the milliseconds for which a legacy server is to keep the task that it makes of the call.
pub(crate) fn call(id: u64, call: &ServerCall<'_>, meta: &str, task: Option<NonZeroU32>) -> Bytes {
    let own = call.meta.map_or(0, str::len);
    let events = call.events.map_or(0, |_| MAX_EVENT_MEMBERS);
    let size = call.operation.size() + meta.len() + own + events + 64;
    request(id, call.operation.method(), size, |line| {
        line.push(b'{');
        push_meta(line, id, call, meta);
        if let Some(ttl) = task {
            line.extend_from_slice(format!(r#""task":{{"ttl":{ttl}}},"#).as_bytes());
        }
        match call.operation {
            ServerOperation::CallTool { name, args }
            | ServerOperation::GetPrompt { name, args } => {
                line.extend_from_slice(br#""name":"#);
                push_string(line, name);
                line.extend_from_slice(br#","arguments":"#);
                push_one_line(line, args);
            }
            ServerOperation::ReadResource { uri } => {
                line.extend_from_slice(br#""uri":"#);
                push_string(line, uri);
            }
            ServerOperation::Complete { params } => {
                let inner = params.trim_ascii();
                let inner = inner.strip_prefix(b"{").unwrap_or(inner);
                push_one_line(line, inner.strip_suffix(b"}").unwrap_or(inner));
            }
        }
        line.push(b'}');
    })
}

/// Appends the member `_meta` of a call with its comma, unless it is empty. The token of the call's progress is the id
/// of the request.
fn push_meta(line: &mut Vec<u8>, id: u64, call: &ServerCall<'_>, meta: &str) {
    let own = call.meta.and_then(members_of).unwrap_or_default();
    let wants = call.events.map(CallEvents::wants).unwrap_or_default();
    // A legacy server gets the level with a separate request.
    let level = wants.log.filter(|_| !meta.is_empty());
    if own.is_empty() && !wants.progress && level.is_none() {
        line.extend_from_slice(meta.as_bytes());
        if !meta.is_empty() {
            line.push(b',');
        }
        return;
    }
    let open = meta.strip_suffix('}').unwrap_or(r#""_meta":{"#);
    line.extend_from_slice(open.as_bytes());
    let mut is_first = meta.is_empty();
    let mut begin = |line: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            line.push(b',');
        }
    };
    if !own.is_empty() {
        begin(line);
        push_one_line(line, own.as_bytes());
    }
    if let Some(level) = level {
        begin(line);
        push_member_name(line, META_LOG_LEVEL);
        push_string(line, level.as_str());
    }
    if wants.progress {
        begin(line);
        push_member_name(line, "progressToken");
        push_number(line, id);
    }
    line.extend_from_slice(b"},");
}

/// Appends the name of a member, which needs no escape, and its colon.
fn push_member_name(line: &mut Vec<u8>, name: &str) {
    line.push(b'"');
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(br#"":"#);
}

/// Returns the text between the braces of a JSON object.
fn members_of(object: &str) -> Option<&str> {
    let inner = object.trim().strip_prefix('{')?.strip_suffix('}')?;
    Some(inner.trim())
}

/// Returns `server/discover`, the modern probe.
pub(crate) fn discover(id: u64, extensions: &Extensions) -> Bytes {
    request_with(id, DISCOVER, &modern_meta(extensions))
}

/// Returns `ping`, which a legacy server answers while it works.
pub(crate) fn ping(id: u64) -> Bytes {
    request_with(id, PING, "")
}

/// Returns `initialize`, the legacy opening. Tasks are a capability of this era: an empty one, since the broker takes no
/// requests of a server as tasks.
pub(crate) fn initialize(id: u64, extensions: &Extensions) -> Bytes {
    let capabilities = match extensions.has(Extension::Tasks) {
        true => r#""tasks":{}"#,
        false => "",
    };
    let params = format!(
        r#""protocolVersion":"{LEGACY_LATEST}","capabilities":{{{capabilities}}},"clientInfo":{CLIENT_INFO}"#
    );
    request_with(id, INITIALIZE, &params)
}

/// Returns a request about the task of a server. `meta` is empty or [`modern_meta`].
pub(crate) fn about_task(id: u64, method: &str, task: &str, meta: &str) -> Bytes {
    request(id, method, meta.len() + task.len() + 32, |line| {
        line.push(b'{');
        if !meta.is_empty() {
            line.extend_from_slice(meta.as_bytes());
            line.push(b',');
        }
        line.extend_from_slice(br#""taskId":"#);
        push_string(line, task);
        line.push(b'}');
    })
}

/// Returns the request for one page of a list.
pub(crate) fn list(id: u64, method: &str, cursor: Option<&str>, meta: &str) -> Bytes {
    let size = meta.len() + cursor.map_or(0, str::len) + 16;
    request(id, method, size, |line| {
        line.push(b'{');
        line.extend_from_slice(meta.as_bytes());
        if let Some(cursor) = cursor {
            line.extend_from_slice(if meta.is_empty() {
                br#""cursor":"#
            } else {
                br#","cursor":"#
            });
            push_string(line, cursor);
        }
        line.push(b'}');
    })
}

/// Returns `logging/setLevel`, for a legacy server.
pub(crate) fn set_level(id: u64, level: LogLevel) -> Bytes {
    request_with(id, SET_LEVEL, &format!(r#""level":"{}""#, level.as_str()))
}

/// Returns `subscriptions/listen` for changes of the lists that are read.
pub(crate) fn listen(id: u64, lists: ItemLists, meta: &str) -> Bytes {
    let mut wanted = r#""toolsListChanged":true"#.to_owned();
    if lists.prompts {
        wanted.push_str(r#","promptsListChanged":true"#);
    }
    if lists.has_uris() {
        wanted.push_str(r#","resourcesListChanged":true"#);
    }
    let params = format!(r#"{meta},"notifications":{{{wanted}}}"#);
    request_with(id, LISTEN, &params)
}

/// Returns `notifications/initialized`.
pub(crate) fn initialized() -> Bytes {
    notification(INITIALIZED, None).into_line().into_bytes()
}

/// Returns `notifications/cancelled` for a request of the broker, with the reason that the client gave.
pub(crate) fn cancelled(id: u64, reason: Option<&str>) -> Bytes {
    let reason = reason.unwrap_or("the caller no longer waits");
    let reason = serde_json::Value::from(reason);
    let params = format!(r#"{{"requestId":{id},"reason":{reason}}}"#);
    notification(CANCELLED, Some(&params))
        .into_line()
        .into_bytes()
}

/// Returns the answer to a request of the server: an empty result for a ping, an error for other methods.
pub(crate) fn answer(id: &Id, method: &str) -> Bytes {
    let answer = if method == PING {
        result(id, b"{}".to_vec().into())
    } else {
        error(
            Some(id),
            RpcError::new(METHOD_NOT_FOUND, "method not found"),
        )
    };
    answer.into_line().into_bytes()
}

/// Returns a request whose params have these members.
fn request_with(id: u64, method: &str, members: &str) -> Bytes {
    request(id, method, members.len() + 2, |line| {
        line.push(b'{');
        line.extend_from_slice(members.as_bytes());
        line.push(b'}');
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::WantedEvents;
    use serde_json::{Value, json};

    fn read(line: &Bytes) -> Value {
        let (end, body) = line.split_last().unwrap();
        assert_eq!(*end, b'\n');
        assert!(!body.contains(&b'\n') && !body.contains(&b'\r'));
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn call_request_is_one_line_and_keeps_its_arguments() {
        let args = b"{\r\n \"a\\n\": \"x\\ny\",\n\"n\": 1.0}";
        let line = call(
            1_234_567_890,
            &ServerCall::new("say \"hi\"\n", args),
            "",
            None,
        );
        assert_eq!(
            read(&line),
            json!({"jsonrpc": "2.0", "id": 1_234_567_890, "method": "tools/call",
                "params": {"name": "say \"hi\"\n", "arguments": {"a\n": "x\ny", "n": 1.0}}})
        );
        assert!(
            line.windows(3).any(|w| w == b"1.0"),
            "numbers stay as written"
        );
    }

    #[test]
    fn call_request_has_meta_of_caller_era_and_progress_token() {
        let progress_only = WantedEvents {
            progress: true,
            log: None,
        };
        let (sink, _received) = CallEvents::new(1, progress_only);
        let wants = WantedEvents {
            progress: false,
            log: Some(LogLevel::Notice),
        };
        let (logs, _received) = CallEvents::new(1, wants);
        for era in ["", &modern_meta(&Extensions::default())] {
            let mut expected: Value = serde_json::from_str(&format!("{{{era}}}")).unwrap();
            for (meta, events) in [
                (None, Some(&sink)),
                (Some("{ }"), Some(&sink)),
                (Some(r#"{"x/y": [1]}"#), None),
                (Some(" {\"x/y\":\n[1]} "), Some(&sink)),
                (Some(r#"{"x/y": [1]}"#), Some(&logs)),
            ] {
                let call_of = ServerCall {
                    meta,
                    events,
                    ..ServerCall::new("t", b"{}")
                };
                let message = read(&call(7, &call_of, era, None));
                let members = &mut expected["_meta"];
                let has_own = meta.is_some_and(|meta| meta.contains("x/y"));
                members["x/y"] = if has_own { json!([1]) } else { Value::Null };
                let wants = events.map(CallEvents::wants).unwrap_or_default();
                members["progressToken"] = if wants.progress {
                    json!(7)
                } else {
                    Value::Null
                };
                let level = wants.log.filter(|_| !era.is_empty());
                members[META_LOG_LEVEL] = level.map_or(Value::Null, |level| json!(level.as_str()));
                let mut want = members.as_object().unwrap().clone();
                want.retain(|_, value| !value.is_null());
                assert_eq!(message["params"]["_meta"], Value::Object(want), "{meta:?}");
                assert_eq!(message["params"]["name"], "t");
            }
        }
        let plain = read(&call(7, &ServerCall::new("t", b"{}"), "", None));
        assert!(plain["params"].get("_meta").is_none());
    }

    #[test]
    fn modern_request_describes_itself() {
        let meta = modern_meta(&Extensions::default());
        let lines = [
            call(0, &ServerCall::new("t", b"{}"), &meta, None),
            discover(1, &Extensions::default()),
            list(2, LIST, None, &meta),
            list(3, LIST, Some(""), &meta),
            listen(4, ItemLists::default(), &meta),
        ];
        for (id, line) in lines.iter().enumerate() {
            let message = read(line);
            assert_eq!(message["id"], id);
            let meta = &message["params"]["_meta"];
            assert_eq!(meta[META_PROTOCOL_VERSION], MODERN);
            assert_eq!(meta[META_CLIENT_CAPABILITIES], json!({}));
            assert_eq!(meta[META_CLIENT_INFO]["name"], "mcp-broker");
        }
        assert_eq!(read(&lines[3])["params"]["cursor"], "");
    }

    #[test]
    fn extension_of_a_source_is_declared_in_every_request_of_its_era() {
        let tasks = Extensions::from_iter([Extension::Tasks]);
        let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let meta = modern_meta(&tasks);
        for line in [
            discover(1, &tasks),
            list(2, LIST, None, &meta),
            call(3, &ServerCall::new("t", b"{}"), &meta, None),
            about_task(4, GET_TASK, "a\"b", &meta),
        ] {
            let found = &read(&line)["params"]["_meta"][META_CLIENT_CAPABILITIES];
            assert_eq!(*found, declared);
        }
        let opening = read(&initialize(5, &tasks));
        assert_eq!(opening["params"]["capabilities"], json!({"tasks": {}}));
        let asked = read(&about_task(6, CANCEL_TASK, "a\"b", ""));
        assert_eq!(asked["params"], json!({"taskId": "a\"b"}));
        let ttl = NonZeroU32::new(7_000);
        let asked = read(&call(7, &ServerCall::new("t", b"{}"), "", ttl));
        let params = json!({"name": "t", "arguments": {}, "task": {"ttl": 7_000}});
        assert_eq!(asked["params"], params);
    }

    #[test]
    fn legacy_requests_have_their_members() {
        assert_eq!(
            read(&initialize(7, &Extensions::default()))["params"]["protocolVersion"],
            LEGACY_LATEST
        );
        assert_eq!(
            read(&initialize(7, &Extensions::default()))["params"]["capabilities"],
            json!({})
        );
        assert_eq!(read(&list(8, LIST, None, ""))["params"], json!({}));
        assert_eq!(
            read(&list(8, LIST, Some("é"), ""))["params"],
            json!({"cursor": "é"})
        );
        let reasons = [(None, "the caller no longer waits"), (Some("\"\n"), "\"\n")];
        for (given, sent) in reasons {
            let expected = json!({"requestId": 9, "reason": sent});
            assert_eq!(read(&cancelled(9, given))["params"], expected);
        }
        assert_eq!(
            read(&answer(&Id::Text("x".to_owned()), "ping")),
            json!({"jsonrpc": "2.0", "id": "x", "result": {}})
        );
        assert_eq!(
            read(&answer(&Id::Integer(1), "roots/list"))["error"]["code"],
            -32601
        );
        assert_eq!(read(&initialized())["method"], "notifications/initialized");
    }
}
