//! Spans of calls as messages. Names and attributes follow semantic-conventions-genai 0393513, docs/gen-ai/mcp.md.

use std::borrow::Cow;
use std::collections::HashMap;

use broker_core::{ItemKind, Via};
use broker_observe::{CallSpans, SpanContext};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

use crate::attributes::{nanos, number, resource, scope, text};

/// The flag of a span that is recorded.
const SAMPLED: u32 = 1;
/// Says that the next flag is set.
const KNOWS_REMOTE: u32 = 0x100;
/// The parent, or the linked span, belongs to another process.
const IS_REMOTE: u32 = 0x200;

/// The name of an item that does not exist for its caller.
const UNKNOWN: &str = "_unknown";

/// Where the server of a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A process of the broker.
    Process,
    /// A server over HTTP.
    Network {
        /// Its host.
        host: String,
        /// Its port.
        port: u16,
    },
}

/// The sources by their paths.
pub(crate) type Sources = HashMap<String, ServerAddress>;

/// Returns the request that exports the spans of calls.
pub(crate) fn request(
    calls: &[CallSpans],
    sources: &Sources,
    attributes: &[(String, String)],
) -> ExportTraceServiceRequest {
    let mut spans = Vec::with_capacity(2 * calls.len());
    for call in calls {
        spans.push(server(call));
        spans.extend(client(call, sources));
    }
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource(attributes)),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope()),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

/// Returns the span of the caller's request.
fn server(call: &CallSpans) -> Span {
    let path = call.item.map(|item| item.path);
    let mut attributes = common(call, path);
    if let Some(id) = &call.rpc_id {
        attributes.push(text("jsonrpc.request.id", &**id));
    }
    attributes.extend(revision(call.revision));
    match call.via {
        Via::Program => {}
        Via::Stdio => attributes.push(text("network.transport", "pipe")),
        Via::Http | Via::McpHttp => attributes.extend(over_tcp("http")),
        Via::WebSocket => attributes.extend(over_tcp("websocket")),
    }
    if let Some(peer) = call.peer {
        attributes.push(text("client.address", peer.to_string()));
        let port = call.client_port.map(i64::from);
        attributes.extend(port.map(|port| number("client.port", port)));
    }
    add_end(&mut attributes, call, call.error_type.as_ref());
    let parent = call.parent.as_ref();
    Span {
        trace_id: call.server.trace_id.to_vec(),
        span_id: call.server.span_id.to_vec(),
        parent_span_id: parent.map_or_else(Vec::new, |parent| parent.span_id.to_vec()),
        flags: SAMPLED | KNOWS_REMOTE | parent.map_or(0, |_| IS_REMOTE),
        name: name(call, path),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: nanos(call.began),
        end_time_unix_nano: nanos(call.began + call.duration),
        attributes,
        links: call.links.iter().flatten().map(link).collect(),
        status: Some(status(call.error_type.as_ref())),
        ..Span::default()
    }
}

/// Returns the span of the request to the server.
fn client(call: &CallSpans, sources: &Sources) -> Option<Span> {
    let (client, item) = (call.client.as_ref()?, call.item?);
    // A URI can have values of arguments, and names a host: the path stands for it.
    let shown = match item.kind {
        ItemKind::Tool | ItemKind::Prompt => item.id,
        ItemKind::Template | ItemKind::Resource => item.path,
    };
    let mut attributes = common(call, Some(shown));
    attributes.extend(revision(client.revision));
    match sources.get(item.source) {
        Some(ServerAddress::Process) => attributes.push(text("network.transport", "pipe")),
        Some(ServerAddress::Network { host, port }) => {
            attributes.extend(over_tcp("http"));
            attributes.push(text("server.address", host));
            attributes.push(number("server.port", i64::from(*port)));
        }
        None => {}
    }
    add_end(&mut attributes, call, client.error_type.as_ref());
    Some(Span {
        trace_id: call.server.trace_id.to_vec(),
        span_id: client.span_id.to_vec(),
        parent_span_id: call.server.span_id.to_vec(),
        flags: SAMPLED | KNOWS_REMOTE,
        name: name(call, Some(shown)),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: nanos(client.began),
        end_time_unix_nano: nanos(client.began + client.duration),
        attributes,
        status: Some(status(client.error_type.as_ref())),
        ..Span::default()
    })
}

/// Returns the name of a span: the method, and its tool or prompt.
fn name(call: &CallSpans, shown: Option<&str>) -> String {
    let is_named = call.item.is_some_and(|item| match item.kind {
        ItemKind::Tool | ItemKind::Prompt => true,
        ItemKind::Template | ItemKind::Resource => false,
    });
    match shown.filter(|_| is_named) {
        Some(shown) => format!("{} {shown}", call.method),
        None => call.method.to_owned(),
    }
}

/// Returns the attributes of both spans. `shown` is the name of the item.
fn common(call: &CallSpans, shown: Option<&str>) -> Vec<KeyValue> {
    let mut attributes = vec![text("mcp.method.name", call.method)];
    let key = match call.item.map(|item| item.kind) {
        Some(ItemKind::Tool) => "gen_ai.tool.name",
        Some(ItemKind::Prompt) => "gen_ai.prompt.name",
        Some(ItemKind::Template | ItemKind::Resource) => "mcp_broker.item",
        None if call.is_tool_call() => "gen_ai.tool.name",
        None => "mcp_broker.item",
    };
    attributes.push(text(key, shown.unwrap_or(UNKNOWN)));
    if call.is_tool_call() {
        attributes.push(text("gen_ai.operation.name", "execute_tool"));
    }
    if let Some(item) = call.item {
        attributes.push(text("mcp_broker.source", item.source));
        attributes.push(text("mcp_broker.digest", item.digest));
    }
    attributes.push(text("mcp_broker.request_id", call.request_id.as_str()));
    attributes
}

/// Returns the attribute of a revision of MCP.
fn revision(revision: Option<&'static str>) -> Option<KeyValue> {
    revision.map(|revision| text("mcp.protocol.version", revision))
}

fn over_tcp(protocol: &str) -> [KeyValue; 2] {
    [
        text("network.transport", "tcp"),
        text("network.protocol.name", protocol),
    ]
}

/// Adds what is known at the end of a call.
fn add_end(
    attributes: &mut Vec<KeyValue>,
    call: &CallSpans,
    error_type: Option<&Cow<'static, str>>,
) {
    if let Some(code) = call.rpc_code {
        attributes.push(text("rpc.response.status_code", code.to_string()));
    }
    if let Some(error_type) = error_type {
        attributes.push(text("error.type", error_type.as_ref()));
    }
}

/// Returns the status: it is an error if there is an `error.type`. Its message stays empty, since messages of servers can
/// have values.
fn status(error_type: Option<&Cow<'static, str>>) -> Status {
    let code = match error_type {
        Some(_) => StatusCode::Error,
        None => StatusCode::Unset,
    };
    Status {
        code: code.into(),
        ..Status::default()
    }
}

fn link(context: &SpanContext) -> Link {
    Link {
        trace_id: context.trace_id.to_vec(),
        span_id: context.span_id.to_vec(),
        flags: u32::from(context.is_sampled) | KNOWS_REMOTE | IS_REMOTE,
        ..Link::default()
    }
}
