//! The headers of requests. A modern request repeats parts of its message in headers, so that proxies need not
//! read the message; both must agree (revision 2026-07-28, Streamable HTTP).

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use broker_wire::protocol::{self, HEADER_MISMATCH};
use broker_wire::{JsonMembers, RpcError, header_value, valid_string};

use super::reply::{EVENT_STREAM, JSON};
use broker_core::catalog::{HeaderParam, HeaderParamKind};
use broker_core::{BAGGAGE, TRACEPARENT, TRACESTATE};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The headers of the trace context.
static TRACE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static(TRACEPARENT),
    HeaderName::from_static(TRACESTATE),
    HeaderName::from_static(BAGGAGE),
];
/// The beginning of the names of headers of the specification.
pub(super) const MCP_PREFIX: &str = "mcp-";
/// The beginning of the headers of arguments.
pub(super) const PARAM_PREFIX: &str = "mcp-param-";

/// The value of `Accept` that most clients send.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";
/// Integers beyond this have no exact value in every reader of JSON.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Returns the values of a header of the trace context, joined by commas; `None` without the header, and if one has other
/// characters than visible ASCII.
pub fn trace_header(headers: &HeaderMap, name: &'static str) -> Option<String> {
    // A static name: each traced broker looks it up in each request, and parsing the name costs more than the look-up.
    let name = TRACE_HEADERS.iter().find(|known| known.as_str() == name)?;
    let mut values = headers.get_all(name).iter().map(HeaderValue::to_str);
    let mut joined = values.next()?.ok()?.to_owned();
    for value in values {
        joined.push(',');
        joined.push_str(value.ok()?);
    }
    Some(joined)
}

/// Returns the legacy revision that the headers name, if there is one.
pub(super) fn legacy_revision(headers: &HeaderMap) -> Option<&'static str> {
    protocol::legacy_revision(headers.get(PROTOCOL_VERSION)?.to_str().ok()?)
}

/// The forms of a reply that its caller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) json: bool,
    pub(super) stream: bool,
}

/// Reads `Accept`. Without the header, a reply is JSON.
pub(super) fn accepted(headers: &HeaderMap) -> Accepted {
    if headers
        .get(header::ACCEPT)
        .is_some_and(|accept| accept == USUAL_ACCEPT)
    {
        // Both forms: a second header with this name has no effect.
        return Accepted {
            json: true,
            stream: true,
        };
    }
    let mut accepted = Accepted {
        json: !headers.contains_key(header::ACCEPT),
        stream: false,
    };
    let values = headers.get_all(header::ACCEPT).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    for range in texts.flat_map(|text| text.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if parts.any(is_zero_quality) {
            continue;
        }
        let is = |known: &str| media.eq_ignore_ascii_case(known);
        accepted.json |= is(JSON) || is("application/*") || is("*/*");
        accepted.stream |= is(EVENT_STREAM) || is("text/*") || is("*/*");
    }
    accepted
}

fn is_zero_quality(parameter: &str) -> bool {
    let quality = parameter
        .split_once('=')
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .and_then(|(_, value)| value.trim().parse::<f32>().ok());
    quality == Some(0.0)
}

/// The only value of a header without blanks around it. An error if there are two, or if it is not ASCII.
pub(super) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(mismatch(format!("there is more than one `{name}` header")));
    }
    let visible = HeaderValue::to_str(value)
        .map_err(|_| mismatch(format!("the `{name}` header has bytes that are not ASCII")))?;
    Ok(Some(visible.trim_matches([' ', '\t'])))
}

/// Checks `Mcp-Method`.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    check_equal(&METHOD, single(headers, &METHOD)?, method)
}

/// Checks `Mcp-Name`. Requests that name a tool, a prompt, a resource or a task must have it.
pub(super) fn check_name(
    headers: &HeaderMap,
    method: &str,
    params: &JsonMembers<'_>,
) -> Result<(), RpcError> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    // Without a name in the message, the error of its params says more.
    let Some(name) = params.get(member).and_then(valid_string) else {
        return Ok(());
    };
    let decoded = single(headers, &NAME)?.map(|value| decoded(&NAME, value));
    check_equal(&NAME, decoded.transpose()?.as_deref(), &name)
}

fn check_equal(header: &HeaderName, value: Option<&str>, expected: &str) -> Result<(), RpcError> {
    match value {
        Some(value) if value == expected => Ok(()),
        Some(_) => Err(mismatch(format!(
            "the `{header}` header differs from the message"
        ))),
        None => Err(mismatch(format!("the `{header}` header is missing"))),
    }
}

/// Checks the `Mcp-Param-…` headers of the tool's parameters against `arguments`, one JSON object.
pub(super) fn check_params(
    headers: &HeaderMap,
    params: &[HeaderParam],
    arguments: &[u8],
) -> Result<(), RpcError> {
    // Arguments that cannot be read are refused by the call, with their place.
    let Ok(arguments) = std::str::from_utf8(arguments) else {
        return Ok(());
    };
    for param in params {
        let name = HeaderName::try_from(format!("{PARAM_PREFIX}{}", param.name))
            .map_err(|_| mismatch(format!("`{}` is not the name of a header", param.name)))?;
        let value = single(headers, &name)?
            .map(|value| decoded(&name, value))
            .transpose()?;
        let argument = param.pointer.iter().try_fold(arguments, |value, key| {
            JsonMembers::parse(value).ok()?.given(key)
        });
        match (value, argument) {
            (None, None) => {}
            (Some(value), Some(argument)) if is_same(&value, argument, param.kind) => {}
            (Some(_), Some(_)) => {
                return Err(mismatch(format!(
                    "the `{name}` header differs from its argument"
                )));
            }
            (None, Some(_)) => {
                return Err(mismatch(format!("the `{name}` header is missing")));
            }
            (Some(_), None) => {
                return Err(mismatch(format!(
                    "the `{name}` header has no argument in the message"
                )));
            }
        }
    }
    Ok(())
}

/// Whether a header has the value of an argument. The argument is JSON. An argument of another type than its schema
/// says is refused by the call.
fn is_same(header: &str, argument: &str, kind: HeaderParamKind) -> bool {
    match kind {
        HeaderParamKind::Text if argument.starts_with('"') => {
            serde_json::from_str::<String>(argument).is_ok_and(|text| text == header)
        }
        HeaderParamKind::Boolean if matches!(argument, "true" | "false") => header == argument,
        HeaderParamKind::Integer => match (header.parse::<f64>(), argument.parse::<f64>()) {
            (Ok(header), Ok(argument)) => header.abs() <= MAX_INTEGER && header == argument,
            (Err(_), Ok(_)) => false,
            (_, Err(_)) => true,
        },
        _ => true,
    }
}

/// Decodes the text of a value that may be encoded.
fn decoded<'h>(name: &HeaderName, value: &'h str) -> Result<Cow<'h, str>, RpcError> {
    header_value::decode(value)
        .ok_or_else(|| mismatch(format!("the `{name}` header has invalid base64")))
}

/// The error of headers that do not fit their message.
pub(super) fn mismatch(message: String) -> RpcError {
    RpcError::new(HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&'static str, &'static str)]) -> HeaderMap {
        let entries = entries.iter();
        entries
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    fn accept(value: &'static str) -> (bool, bool) {
        let accepted = accepted(&map(&[("accept", value)]));
        (accepted.json, accepted.stream)
    }

    #[test]
    fn accept_header_names_the_forms_of_a_reply() {
        assert_eq!(accept("application/json, text/event-stream"), (true, true));
        assert_eq!(accept("Text/Event-Stream"), (false, true));
        assert_eq!(accept("application/json;q=0.9, text/*;q=0"), (true, false));
        assert_eq!(accept("*/*"), (true, true));
        assert_eq!(accept("text/html"), (false, false));
        let none = accepted(&HeaderMap::new());
        assert_eq!((none.json, none.stream), (true, false));
    }

    const PARAMS: &[HeaderParam] = &[
        HeaderParam {
            name: "Region",
            pointer: &["where", "region"],
            kind: HeaderParamKind::Text,
        },
        HeaderParam {
            name: "Count",
            pointer: &["count"],
            kind: HeaderParamKind::Integer,
        },
        HeaderParam {
            name: "Dry",
            pointer: &["dry"],
            kind: HeaderParamKind::Boolean,
        },
    ];

    #[test]
    fn parameter_headers_must_agree_with_the_arguments() {
        let check = |headers: &[(&'static str, &'static str)], arguments: &str| {
            check_params(&map(headers), PARAMS, arguments.as_bytes()).is_ok()
        };
        assert!(check(&[], "{}"));
        assert!(check(&[], r#"{"where":null,"count":null}"#));
        let all = [
            ("mcp-param-region", "eu"),
            ("mcp-param-count", "42.0"),
            ("mcp-param-dry", "true"),
        ];
        let arguments = r#"{"where":{"region":"eu"},"count":42,"dry":true}"#;
        assert!(check(&all, arguments));
        assert!(!check(&all[..2], arguments), "one is missing");
        assert!(
            !check(&all, r#"{"count":42,"dry":true}"#),
            "one is too many"
        );
        assert!(!check(&all, &arguments.replace("42", "43")));
        assert!(!check(&all, &arguments.replace("true", "false")));
        let encoded = [("mcp-param-region", "=?base64?w6k=?=")];
        assert!(check(&encoded, r#"{"where":{"region":"é"}}"#));
        for invalid in ["=?base64?w6k?=", "=?base64?!!!?=", "=?BASE64?w6k=?="] {
            let headers = [("mcp-param-region", invalid)];
            assert!(!check(&headers, r#"{"where":{"region":"é"}}"#), "{invalid}");
        }
        let twice = [("mcp-param-count", "1"), ("mcp-param-count", "1")];
        let mut headers = HeaderMap::new();
        for (name, value) in twice {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert!(check_params(&headers, PARAMS, br#"{"count":1}"#).is_err());
    }

    #[test]
    fn method_and_name_headers_must_agree_with_the_message() {
        let headers = map(&[("mcp-method", " tools/call "), ("mcp-name", "t")]);
        assert!(check_method(&headers, "tools/call").is_ok());
        assert!(check_method(&headers, "Tools/call").is_err());
        let params = |text: &'static str| JsonMembers::parse(text).unwrap();
        assert!(check_name(&headers, "tools/call", &params(r#"{"name":"t"}"#)).is_ok());
        assert!(check_name(&headers, "tools/call", &params(r#"{"name":"u"}"#)).is_err());
        assert!(check_name(&headers, "tools/list", &params("{}")).is_ok());
        let none = HeaderMap::new();
        assert!(check_name(&none, "tools/call", &params(r#"{"name":"t"}"#)).is_err());
        assert!(check_method(&none, "tools/call").is_err());
    }
}
