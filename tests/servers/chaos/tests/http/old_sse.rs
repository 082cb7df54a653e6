//! The transport HTTP+SSE of 2024-11-05.

use serde_json::{Value, json};

use crate::client::{Client, Server, Stream, text};

fn script(http: Value) -> Value {
    let mut script = json!({"plain": true, "http": {"transport": "sse"}});
    for (name, value) in http.as_object().unwrap() {
        script["http"][name] = value.clone();
    }
    script
}

/// Opens a stream; returns it with the address for messages.
fn open(server: &Server) -> (Stream, String) {
    let mut client = server.connect();
    client.get(&[]);
    let mut stream = client.stream();
    let endpoint = stream.next().unwrap();
    assert_eq!(endpoint.name.as_deref(), Some("endpoint"));
    (stream, endpoint.data)
}

fn post(server: &Server, endpoint: &str, message: &Value) -> Client {
    let mut client = server.connect();
    let address = server.origin().strip_prefix("http://").unwrap();
    let headers = [("Host", address), ("Content-Type", "application/json")];
    client.send("POST", endpoint, &headers, &message.to_string());
    client
}

fn accepted(server: &Server, endpoint: &str, message: &Value) {
    let response = post(server, endpoint, message).response();
    assert_eq!(response.status, 202, "{response:?}");
}

fn ask(server: &Server, endpoint: &str, method: &str, params: Value) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    accepted(server, endpoint, &message);
}

/// Opens a stream and ends the handshake.
fn connected(server: &Server) -> (Stream, String) {
    let (mut stream, endpoint) = open(server);
    ask(
        server,
        &endpoint,
        "initialize",
        json!({"protocolVersion": "2024-11-05"}),
    );
    let event = stream.next().unwrap();
    assert_eq!(event.name.as_deref(), Some("message"));
    assert_eq!(event.json()["result"]["protocolVersion"], "2024-11-05");
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    accepted(server, &endpoint, &message);
    (stream, endpoint)
}

fn call(server: &Server, endpoint: &str) {
    let params = json!({"name": "echo", "arguments": {"text": "a"}});
    ask(server, endpoint, "tools/call", params);
}

#[test]
fn chaos_old_transport_replies_on_the_stream() {
    let server = Server::start(&script(json!({})));
    assert_eq!(server.path(), "/sse");
    let (mut stream, endpoint) = connected(&server);
    let (mut other, _) = connected(&server);
    call(&server, &endpoint);
    assert_eq!(text(&stream.message()), r#"{"text":"a"}"#);
    let mut changed = script(json!({}));
    changed["notify"] = json!(1);
    server.folder.write(&changed);
    for stream in [&mut stream, &mut other] {
        assert_eq!(
            stream.message()["method"],
            "notifications/tools/list_changed"
        );
    }
    ask(&server, &endpoint, "server/discover", json!({}));
    assert_eq!(stream.message()["error"]["code"], -32601);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(post(&server, "/sse", &ping).response().status, 405);
    assert_eq!(
        post(&server, "/messages?session=x", &ping)
            .response()
            .status,
        404
    );
    stream.leave();
    assert_eq!(server.end_of(1), "client-closed");
    let mut client = post(&server, &endpoint, &ping);
    assert_eq!(
        client.response().status,
        404,
        "the session ended with its stream"
    );
}

#[test]
fn chaos_old_transport_has_the_scripted_endpoint() {
    let server = Server::start(&script(json!({"endpoint": "http://example.com/$SESSION"})));
    let (stream, endpoint) = open(&server);
    let session = server.folder.events("session-start")[0]["session"].clone();
    assert_eq!(
        endpoint,
        format!("http://example.com/{}", session.as_str().unwrap())
    );
    drop(stream);
    server.folder.write(&script(json!({
        "endpoint": null, "rules": [{"on": {"http_method": "GET"}, "do": {"before": ["{}"]}}],
    })));
    let mut client = server.connect();
    client.get(&[]);
    assert_eq!(client.stream().next().unwrap().data, "{}");
}

#[test]
fn chaos_old_transport_has_faults_of_posts_and_of_replies() {
    let server = Server::start(&script(json!({})));
    let (mut stream, endpoint) = connected(&server);
    let fault = |reply: bool, fault: Value| {
        let on = json!({"tool": "echo", "reply": reply});
        server
            .folder
            .write(&script(json!({"rules": [{"on": on, "do": fault}]})));
    };
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"},
    });
    fault(false, json!({"status": 503}));
    assert_eq!(post(&server, &endpoint, &message).response().status, 503);
    assert_eq!(server.folder.events("call").len(), 0);
    fault(false, json!("close"));
    assert_eq!(post(&server, &endpoint, &message).rest().0, "");
    assert_eq!(stream.message()["id"], 1, "the call was executed");
    fault(
        true,
        json!({"raw": "data: other\n\n", "before": ["{\"a\":1}"]}),
    );
    call(&server, &endpoint);
    assert_eq!(stream.message(), json!({"a": 1}));
    assert_eq!(stream.next().unwrap().data, "other");
    fault(
        true,
        json!({"endless": {"kind": "comments", "bytes": 1000}, "body_drip": {"bytes": 9}}),
    );
    call(&server, &endpoint);
    while stream.next().unwrap().comment.is_some() {}
    fault(true, json!({"cut": "event"}));
    call(&server, &endpoint);
    let (rest, _) = stream.rest();
    assert!(
        rest.contains("data: {") && !rest.ends_with("0\r\n\r\n"),
        "{rest}"
    );
    assert_eq!(server.end_of(1), "cut-off");
}
