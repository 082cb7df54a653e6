//! What the spans of a call say of the request of its caller, and the context of a connection over WebSocket.

use harness::mcp_http::{McpSession, modern};
use harness::otlp::{Span, SpanKind, attribute, digits};
use harness::websocket::WebSocketClient;
use harness::{read, send};
use serde_json::{Value, json};

use crate::traces::{Stage, is_one_trace, pair, params, parent, trace};

/// The revision of clients of the legacy era.
const LEGACY: &str = "2025-11-25";
/// The revision of the server.
const MODERN: &str = "2026-07-28";

/// Returns the attributes of a span that are about the request of the caller: revision, id and port.
fn of_request(span: &Span) -> [Option<String>; 3] {
    ["mcp.protocol.version", "jsonrpc.request.id", "client.port"]
        .map(|key| attribute(&span.attributes, key))
}

fn texts(values: [Option<&str>; 3]) -> [Option<String>; 3] {
    values.map(|value| value.map(str::to_owned))
}

/// Makes a call over the meta API on one connection; returns the port of the client.
fn call_from_a_port(address: &str, headers: &str, meta: &Value) -> String {
    let body = json!({"path": "/a/echo", "args": {"text": "x"}, "meta": meta}).to_string();
    let head = format!(
        "POST /meta_call HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let stream = send(address, head.as_bytes());
    let port = stream.local_addr().expect("it is connected").port();
    let answer = read(stream);
    assert_eq!(answer.status, 200, "{}", answer.text());
    port.to_string()
}

#[test]
fn spans_have_the_revision_the_request_id_and_the_port_of_a_caller() {
    let stage = Stage::new(&json!({"parent": "meta"}), |config| {
        config["trusted_proxies"] = json!(["127.0.0.1"]);
    });
    let broker = stage.start();
    let address = broker.address();
    let meta = |number| json!({"traceparent": parent(number)});

    let port = call_from_a_port(address, "", &meta(1));
    call_from_a_port(address, "X-Forwarded-For: 192.0.2.1\r\n", &meta(2));
    let session = McpSession::begin(address, "/mcp");
    session.result("tools/call", &params(meta(3)));
    let id = json!(format!("a\u{1b}[2J\u{202e}{}", "x".repeat(400)));
    let answer = modern(address, "/mcp", &id, "tools/call", &params(meta(4)));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut socket = WebSocketClient::connect(address, "/ws/mcp");
    let socket_port = socket.socket.get_ref().local_addr().expect("connected");
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}});
    socket.result("initialize", &hello);
    socket.result("tools/call", &params(meta(5)));

    let spans = stage.receiver.await_spans(10);
    let server = |number| pair(&spans, &trace(number)).0;
    assert_eq!(of_request(&server(1)), texts([None, None, Some(&port)]));
    let behind_proxy = server(2);
    let address = attribute(&behind_proxy.attributes, "client.address");
    assert_eq!(address.as_deref(), Some("192.0.2.1"));
    assert_eq!(of_request(&behind_proxy), texts([None, None, None]));
    let [revision, id, port] = of_request(&server(3));
    assert_eq!(revision.as_deref(), Some(LEGACY));
    assert_eq!(id.as_deref(), Some("r"));
    assert!(port.expect("a port").parse::<u16>().is_ok());
    let [revision, id, _] = of_request(&server(4));
    assert_eq!(revision.as_deref(), Some(MODERN));
    let id = id.expect("an id");
    assert!(id.starts_with("a\\u{1b}[2J\\u{202e}xxx"), "{id}");
    assert!(id.ends_with('…') && id.chars().count() == 256, "{id}");
    let port = socket_port.port().to_string();
    let expected = texts([Some("2025-06-18"), Some("2"), Some(&port)]);
    assert_eq!(of_request(&server(5)), expected);
    // The span of the request to the server has the id of the call in the log and the revision of the session with it,
    // and no facts of the caller.
    for number in 1..=5 {
        let (server, client) = pair(&spans, &trace(number));
        let id = |span: &Span| attribute(&span.attributes, "mcp_broker.request_id");
        assert!(id(&client).is_some());
        assert_eq!(id(&client), id(&server));
        assert_eq!(of_request(&client), texts([Some(MODERN), None, None]));
    }
    // The id is not a label.
    let metrics = broker.get("/metrics").text();
    assert!(!metrics.contains("[2J"), "{metrics}");
}

#[test]
fn calls_on_a_websocket_have_the_context_of_its_upgrade() {
    let stage = Stage::new(&json!({"parent": "meta"}), |_| {});
    let broker = stage.start();
    let context = parent(1);
    let headers = [("Traceparent", context.as_str()), ("Tracestate", "a=b")];
    let socket = WebSocketClient::try_connect(broker.address(), "/ws/mcp", &headers);
    let mut socket = socket.expect("it is upgraded");
    let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}});
    socket.result("initialize", &hello);
    socket.result("tools/call", &params(json!({})));
    let spans = stage.receiver.await_spans(2);
    let sent = stage.sent_meta();
    is_one_trace(&spans, 1, &sent);
    assert_eq!(sent["tracestate"], "a=b");
    // A context in `_meta` comes first; then the one of the upgrade is linked.
    socket.result("tools/call", &params(json!({"traceparent": parent(2)})));
    let spans = stage.receiver.await_spans(4);
    is_one_trace(&spans, 2, &stage.sent_meta());
    let (server, _) = pair(&spans, &trace(2));
    let links: Vec<_> = server.links.iter().map(|it| digits(&it.trace_id)).collect();
    assert_eq!(links, [trace(1)]);
    // It is the one of each later call as well.
    socket.result("tools/call", &params(json!({})));
    let spans = stage.receiver.await_spans(6);
    let of_first = spans.iter().filter(|span| {
        digits(&span.trace_id) == trace(1) && span.kind == i32::from(SpanKind::Server)
    });
    assert_eq!(of_first.count(), 2);
}
