//! The headers of requests: the version, the session, and what a modern request repeats of its message.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use broker_model::header_params::{HeaderParam, HeaderParamKind, read_params};
use broker_model::snapshot::ListedTool;
use broker_wire::protocol::MODERN;
use broker_wire::{Era, JsonMembers, header_value};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::server_call::{ServerCall, ServerOperation};
use crate::trace_headers::TraceHeaders;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Maximum number of arguments that a call repeats. A tool with more cannot be called.
const MAX_PARAMS: usize = 32;
/// The largest integer that every JSON parser reads exactly, 2^53 - 1.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;
/// Maximum length of a session id.
const MAX_SESSION_ID_BYTES: usize = 1024;

/// Returns the headers of a POST with a message, without the era and session headers.
pub(super) fn new_post() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    headers
}

/// Returns the headers of a GET for a stream of events, without the era and session headers.
pub(super) fn new_stream() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
    headers
}

/// Adds what a modern request repeats of its message.
pub(super) fn add_modern(headers: &mut HeaderMap, method: &'static str) {
    headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
    headers.insert(METHOD, HeaderValue::from_static(method));
}

/// Adds the name and the parameters of a modern call.
pub(super) fn add_call(headers: &mut HeaderMap, call: &ServerCall<'_>, params: &ToolParams) {
    let (name, args) = match call.operation {
        ServerOperation::CallTool { name, args } => (name, args),
        ServerOperation::GetPrompt { name, .. } => return insert(headers, NAME, name),
        ServerOperation::ReadResource { uri } => return insert(headers, NAME, uri),
        ServerOperation::Complete { .. } => return,
    };
    insert(headers, NAME, name);
    let params = params.get(name);
    if params.is_empty() {
        return;
    }
    // Parsed once for all parameters, since arguments can be long.
    let arguments = std::str::from_utf8(args).ok();
    let Some(Ok(arguments)) = arguments.map(JsonMembers::parse) else {
        return;
    };
    for param in &*params {
        let Some((first, rest)) = param.pointer.split_first() else {
            continue;
        };
        let argument = arguments.given(first).and_then(|value| {
            let mut keys = rest.iter();
            keys.try_fold(value, |value, key| {
                JsonMembers::parse(value).ok()?.given(key)
            })
        });
        let Some(text) = argument.and_then(|argument| text_of(argument, param.kind)) else {
            continue;
        };
        if let Ok(name) = HeaderName::try_from(format!("mcp-param-{}", param.name)) {
            insert(headers, name, &text);
        }
    }
}

/// Adds the id of the task that a modern request is about.
pub(super) fn add_task(headers: &mut HeaderMap, task: &str) {
    insert(headers, NAME, task);
}

/// Adds the trace context of a call.
pub(super) fn add_trace(headers: &mut HeaderMap, trace: &TraceHeaders) {
    for (name, value) in trace.iter() {
        if let Some(value) = visible_value(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Returns the text as the value of a header; `None` if it has other characters than visible ASCII and blanks.
pub(crate) fn visible_value(text: &str) -> Option<HeaderValue> {
    let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let value = is_visible.then(|| HeaderValue::from_str(text).ok());
    value.flatten()
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // An encoded value is plain ASCII.
    if let Ok(value) = HeaderValue::from_str(&header_value::encode(text)) {
        headers.insert(name, value);
    }
}

/// Returns the header text of a JSON argument. An argument of another type than its schema says is refused by the
/// server.
fn text_of(argument: &str, kind: HeaderParamKind) -> Option<String> {
    match kind {
        HeaderParamKind::Text => serde_json::from_str(argument).ok(),
        HeaderParamKind::Boolean => {
            matches!(argument, "true" | "false").then(|| argument.to_owned())
        }
        HeaderParamKind::Integer => decimal(argument),
    }
}

/// Returns the decimal digits of an integer. JSON may write it with a fraction or an exponent.
fn decimal(number: &str) -> Option<String> {
    if !number.contains(['.', 'e', 'E']) {
        // An integer of any size has its digits.
        return broker_model::json::number_value(number).map(|_| number.to_owned());
    }
    let number: serde_json::Number = serde_json::from_str(number).ok()?;
    if number.is_i64() || number.is_u64() {
        return Some(number.to_string());
    }
    let number = number.as_f64()?;
    let is_exact = number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER;
    is_exact.then(|| format!("{number:.0}"))
}

/// Returns the session id of an answer; an error says why it cannot be used.
pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<HeaderValue>, &'static str> {
    let mut values = headers.get_all(SESSION_ID).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let bytes = value.as_bytes();
    if values.next().is_some() || bytes.is_empty() || bytes.len() > MAX_SESSION_ID_BYTES {
        return Err("the server sent more than one session id, or one that is empty or too long");
    }
    if !bytes.iter().all(u8::is_ascii_graphic) {
        return Err("the server sent a session id with other characters than visible ASCII");
    }
    let mut value = value.clone();
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Whether an answer has this media type.
pub(super) fn is_media(headers: &HeaderMap, media: &str) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let first = value.and_then(|value| value.split(';').next());
    first.is_some_and(|first| first.trim().eq_ignore_ascii_case(media))
}

/// The parameters of the tools of one server that calls repeat as headers, by tool.
#[derive(Debug, Default)]
pub(crate) struct ToolParams(RwLock<HashMap<String, Arc<[HeaderParam]>>>);

impl ToolParams {
    /// Takes the parameters of all tools, and removes and returns the tools that a client over HTTP must not use.
    pub(crate) fn replace(&self, tools: &mut Vec<ListedTool>) -> Vec<ListedTool> {
        let mut all = HashMap::new();
        let is_refused = |tool: &mut ListedTool| match read_params(&tool.read()) {
            Some(params) if params.len() <= MAX_PARAMS => {
                if !params.is_empty() {
                    all.insert(tool.name().to_owned(), params.into());
                }
                false
            }
            _ => true,
        };
        let refused = tools.extract_if(.., is_refused).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
        refused
    }

    /// Returns the parameters of a tool.
    pub(super) fn get(&self, tool: &str) -> Arc<[HeaderParam]> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(tool).cloned().unwrap_or_default()
    }
}

/// Returns the version header of an era; `None` before the handshake.
pub(super) fn version(era: Era, revision: &str) -> Option<HeaderValue> {
    match era {
        Era::Modern => Some(HeaderValue::from_static(MODERN)),
        Era::Legacy => HeaderValue::from_str(revision).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, pointer: &[&str], kind: HeaderParamKind) -> HeaderParam {
        HeaderParam {
            name: name.to_owned(),
            pointer: pointer.iter().map(|key| (*key).to_owned()).collect(),
            kind,
        }
    }

    #[test]
    fn call_headers_repeat_name_and_parameters() {
        let params = vec![
            param("Region", &["where", "region"], HeaderParamKind::Text),
            param("Count", &["count"], HeaderParamKind::Integer),
            param("Dry", &["dry"], HeaderParamKind::Boolean),
            param("Null", &["null"], HeaderParamKind::Text),
            param("Absent", &["absent"], HeaderParamKind::Text),
        ];
        let name = "say\r\nX: y";
        let params = HashMap::from([(name.to_owned(), Arc::from(params))]);
        let args = "{\"where\":{\"region\":\"é\"},\"count\":42,\"dry\":true,\"null\":null}";
        let mut headers = HeaderMap::new();
        add_call(
            &mut headers,
            &ServerCall::new(name, args.as_bytes()),
            &ToolParams(RwLock::new(params)),
        );
        let get = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(get("mcp-name"), Some("=?base64?c2F5DQpYOiB5?="));
        assert_eq!(get("mcp-param-region"), Some("=?base64?w6k=?="));
        assert_eq!(get("mcp-param-count"), Some("42"));
        assert_eq!(get("mcp-param-dry"), Some("true"));
        assert_eq!(
            (get("mcp-param-null"), get("mcp-param-absent")),
            (None, None)
        );
    }

    #[test]
    fn integer_in_a_header_is_decimal() {
        for (written, text) in [
            ("42", Some("42")),
            ("-7", Some("-7")),
            ("1e3", Some("1000")),
            ("42.0", Some("42")),
            ("9007199254740991.0", Some("9007199254740991")),
            ("1e300", None),
            ("1.5", None),
            ("\"42\"", None),
        ] {
            let shown = text_of(written, HeaderParamKind::Integer);
            assert_eq!(shown.as_deref(), text, "{written}");
        }
    }

    #[test]
    fn session_id_is_one_visible_text() {
        let id = |values: &[&'static [u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(SESSION_ID, HeaderValue::from_bytes(value).unwrap());
            }
            session_id(&headers).map(|id| id.map(|id| id.as_bytes().to_vec()))
        };
        assert_eq!(id(&[]), Ok(None));
        assert_eq!(id(&[b"a~!"]), Ok(Some(b"a~!".to_vec())));
        for refused in [&[&b""[..]][..], &[b"a b"], &[b"a\xe9"], &[b"a", b"a"]] {
            assert!(id(refused).is_err(), "{refused:?}");
        }
        static LONG: [u8; MAX_SESSION_ID_BYTES + 1] = [b'a'; MAX_SESSION_ID_BYTES + 1];
        assert!(id(&[&LONG]).is_err());
    }
}
