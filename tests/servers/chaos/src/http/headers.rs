//! Checks the headers of a request: those of any era, and those that repeat members of a modern request.

use data_encoding::BASE64;
use serde_json::Value;

use super::request::HttpRequest;
use crate::eras::{META_VERSION, check_meta, check_version};
use crate::script::{RpcError, Script};
use crate::state::Request;

pub(crate) const VERSION: &str = "mcp-protocol-version";
pub(crate) const SESSION: &str = "mcp-session-id";
pub(crate) const LAST_EVENT: &str = "last-event-id";

/// The text of a header value, which may be in base64: `=?base64?…?=`; `None` if the base64 is not valid.
fn decode_header(value: &str) -> Option<String> {
    let coded = value.strip_prefix("=?base64?");
    match coded.and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        Some(coded) => String::from_utf8(BASE64.decode(coded.as_bytes()).ok()?).ok(),
    }
}

/// The status for a request that is not for this server, or comes from a page of another origin.
pub(crate) fn check_origin(request: &HttpRequest) -> Result<(), u16> {
    // Any port, since a proxy may be in front.
    let is_own = |host: &str| {
        let (name, _) = host.rsplit_once(':').unwrap_or((host, ""));
        ["127.0.0.1", "localhost"].contains(&name)
    };
    let origins = request.all("origin");
    let mut hosts = origins.map(|origin| origin.strip_prefix("http://").unwrap_or(origin));
    match request.only("host") {
        Some(host) if is_own(host) && hosts.all(is_own) => Ok(()),
        _ => Err(403),
    }
}

/// The status for a request whose content or accepted answers do not fit MCP.
pub(crate) fn check_media(request: &HttpRequest) -> Result<(), u16> {
    let accepted: Vec<&str> = request
        .all("accept")
        .flat_map(|value| value.split(','))
        .filter_map(|kind| kind.split(';').next())
        .map(str::trim)
        .collect();
    let accepts = |kind: &str| accepted.contains(&kind);
    if request.method == "GET" {
        return accepts("text/event-stream").then_some(()).ok_or(406);
    }
    let content = request.only("content-type").unwrap_or_default();
    let content = content.split(';').next().unwrap_or_default().trim();
    if !content.eq_ignore_ascii_case("application/json") {
        return Err(415);
    }
    let accepts_both = accepts("application/json") && accepts("text/event-stream");
    accepts_both.then_some(()).ok_or(406)
}

/// Checks a modern request in the order of the specification.
pub(crate) fn check_modern(
    script: &Script,
    request: &HttpRequest,
    message: &Request,
) -> Result<(), RpcError> {
    let version = only(request, VERSION)?;
    let meta = &message.params["_meta"];
    check_meta(meta)?;
    if meta[META_VERSION] != version {
        return Err(mismatch(VERSION));
    }
    check_version(script, &meta[META_VERSION])?;
    if only(request, "mcp-method")? != message.method {
        return Err(mismatch("mcp-method"));
    }
    let name = match message.method.as_str() {
        "tools/call" | "prompts/get" => &message.params["name"],
        "resources/read" => &message.params["uri"],
        "tasks/get" | "tasks/cancel" => &message.params["taskId"],
        _ => return Ok(()),
    };
    let given = decode_header(only(request, "mcp-name")?);
    if given.as_deref() != name.as_str() {
        return Err(mismatch("mcp-name"));
    }
    if message.method == "tools/call" {
        check_arguments(script, request, message)?;
    }
    Ok(())
}

/// Checks the headers `Mcp-Param-*` of a call against its arguments.
fn check_arguments(
    script: &Script,
    request: &HttpRequest,
    message: &Request,
) -> Result<(), RpcError> {
    let tools = script.tools.iter();
    let mut tools = tools.filter_map(|tool| serde_json::from_str::<Value>(tool).ok());
    let Some(tool) = tools.find(|tool| tool["name"] == message.params["name"]) else {
        return Ok(());
    };
    check_properties(&tool["inputSchema"], &message.params["arguments"], request)
}

fn check_properties(schema: &Value, value: &Value, request: &HttpRequest) -> Result<(), RpcError> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let argument = &value[name];
        if let Some(header) = property["x-mcp-header"].as_str() {
            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            if !equals(request, &header, argument) {
                return Err(mismatch(&header));
            }
        }
        check_properties(property, argument, request)?;
    }
    Ok(())
}

/// Whether the header repeats the argument, or both are missing.
fn equals(request: &HttpRequest, header: &str, argument: &Value) -> bool {
    if argument.is_null() {
        return request.header(header).is_none();
    }
    let Some(given) = request.only(header).and_then(decode_header) else {
        return false;
    };
    match argument {
        Value::String(text) => *text == given,
        Value::Bool(flag) => flag.to_string() == given,
        // The same number may be written in several ways.
        Value::Number(number) => {
            number.to_string() == given
                || given
                    .parse::<f64>()
                    .is_ok_and(|given| Some(given) == number.as_f64())
        }
        _ => false,
    }
}

fn only<'a>(request: &'a HttpRequest, name: &str) -> Result<&'a str, RpcError> {
    request.only(name).ok_or_else(|| mismatch(name))
}

fn mismatch(header: &str) -> RpcError {
    let message = format!("the header `{header}` is missing, repeated or differs from the body");
    RpcError::new(-32020, &message)
}
