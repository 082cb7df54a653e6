//! The legacy era: sessions, the probe for the modern era, and cancels.

use serde_json::{Value, json};

use crate::client::{LEGACY, Server, legacy_headers, meta, text};

#[test]
fn chaos_legacy_session_is_opened_used_and_deleted() {
    let server = Server::start(&json!({"era": "legacy", "plain": true}));
    let mut client = server.connect();
    client.legacy("", "tools/list", json!({}));
    assert_eq!(client.response().status, 400, "a session is required");
    client.legacy("guessed", "tools/list", json!({}));
    assert_eq!(client.response().status, 404, "the session is not known");
    let session = server.open_session();
    client.legacy(
        &session,
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "a"}}),
    );
    assert_eq!(text(&client.response().json()), r#"{"text":"a"}"#);
    client.legacy(&session, "tools/drop", json!({}));
    let unknown = client.response();
    assert_eq!(
        (unknown.status, unknown.json()["error"]["code"].clone()),
        (200, json!(-32601))
    );
    let message = json!({"jsonrpc": "2.0", "id": 3, "result": {"roots": []}});
    client.post(&legacy_headers(&session), &message);
    assert_eq!(client.response().status, 202);
    assert_eq!(server.folder.events("response")[0]["message"], message);
    let mut headers = legacy_headers(&session);
    headers[1].1 = "1999-01-01";
    client.post(
        &headers,
        &json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}),
    );
    assert_eq!(client.response().status, 400, "the version is not known");
    client.delete(&session);
    assert_eq!(client.response().status, 204);
    client.legacy(&session, "ping", json!({}));
    assert_eq!(client.response().status, 404);
    let sessions = server.folder.events("session-start");
    assert_eq!(
        (sessions.len(), &sessions[0]["session"]),
        (1, &json!(session))
    );
}

#[test]
fn chaos_legacy_request_before_the_handshake_is_refused() {
    let server = Server::start(&json!({"era": "legacy"}));
    let mut client = server.connect();
    client.legacy("", "initialize", json!({"protocolVersion": LEGACY}));
    let session = client
        .response()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    client.legacy(&session, "tools/list", json!({}));
    assert_eq!(client.response().status, 400);
}

#[test]
fn chaos_delete_is_answered_as_scripted() {
    let server = Server::start(&json!({"http": {"delete": 405}}));
    let session = server.open_session();
    let mut client = server.connect();
    client.delete(&session);
    assert_eq!(client.response().status, 405);
    client.legacy(&session, "ping", json!({}));
    assert_eq!(client.response().status, 200, "the session has not ended");
    server.folder.write(&json!({"http": {"get": 405}}));
    client.get(&legacy_headers(&session));
    assert_eq!(client.response().status, 405);
}

#[test]
fn chaos_legacy_server_answers_a_probe_in_the_scripted_shape() {
    let server = Server::start(&json!({"era": "legacy"}));
    let shape = |script: Value| {
        server.folder.write(&script);
        let mut client = server.connect();
        client.modern("server/discover", json!({}));
        let response = client.response();
        let code = match response.body.is_empty() {
            true => Value::Null,
            false => response.json()["error"]["code"].take(),
        };
        (response.status, code)
    };
    assert_eq!(shape(json!({"era": "legacy"})), (400, json!(-32601)));
    for (probe, status, code) in [
        (json!({"status": 400}), 400, Value::Null),
        (json!({"status": 404}), 404, Value::Null),
        (json!({"status": 405}), 405, Value::Null),
        (json!({"status": 200, "error": true}), 200, json!(-32601)),
    ] {
        let script = json!({"era": "legacy", "http": {"probe": probe}});
        assert_eq!(shape(script), (status, code), "{probe}");
    }
    let error = json!({"code": -32000, "message": "no session"});
    let script = json!({"era": "legacy", "probe_error": error});
    assert_eq!(shape(script), (400, json!(-32000)));
    assert_eq!(server.folder.events("discover").len(), 6);
    server.folder.write(&json!({"era": "silent-probe"}));
    let silent = server.modern("server/discover", json!({}));
    server.folder.await_events("discover", 7);
    silent.leave();
    assert_eq!(server.end_of(7), "client-closed");
    server.open_session();
}

#[test]
fn chaos_session_ends_as_scripted() {
    let server = Server::start(&json!({}));
    let session = server.open_session();
    let mut client = server.connect();
    client.get(&legacy_headers(&session));
    let stream = client.stream();
    server.folder.write(&json!({"http": {"end_sessions": 1}}));
    let mut client = stream.end();
    client.legacy(&session, "ping", json!({}));
    assert_eq!(client.response().status, 404);
    server.open_session();
}

#[test]
fn chaos_server_without_sessions_needs_no_header() {
    let server = Server::start(&json!({"era": "legacy", "http": {"sessions": false}}));
    let mut client = server.connect();
    client.legacy("", "initialize", json!({"protocolVersion": LEGACY}));
    assert_eq!(client.response().header("mcp-session-id"), None);
    client.legacy("", "tools/list", json!({}));
    assert!(client.response().json()["result"]["tools"].is_array());
}

#[test]
fn chaos_server_of_both_eras_serves_each_request_in_its_era() {
    let server = Server::start(&json!({}));
    let session = server.open_session();
    let mut client = server.connect();
    client.modern("tools/list", json!({}));
    assert_eq!(client.response().json()["result"]["resultType"], "complete");
    client.legacy(&session, "tools/list", json!({}));
    assert_eq!(client.response().json()["result"].get("resultType"), None);
    // The header alone makes a request modern, so that a missing `_meta` is an error of that era.
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    client.post(
        &headers,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    );
    assert_eq!(client.response().json()["error"]["code"], -32602);
    let params = json!({"_meta": meta()});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "initialize"),
    ];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    client.post(&headers, &message);
    assert_eq!(client.response().status, 404);
}

#[test]
fn chaos_legacy_call_is_cancelled_by_a_notification_and_not_by_a_disconnect() {
    let script = json!({"http": {"reply": "sse"}, "on_call": {"add": {"delay_ms": 3_600_000}}});
    let server = Server::start(&script);
    let session = server.open_session();
    let call = server.legacy_call(&session, "add", json!({}));
    server.folder.await_events("call", 1);
    let mut client = server.connect();
    let params = json!({"requestId": 1, "reason": "late"});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    client.post(&legacy_headers(&session), &message);
    assert_eq!(client.response().status, 202);
    // The stream ends without an answer.
    drop(call.stream().end());
    assert_eq!(server.folder.events("cancelled")[0]["reason"], "late");
    server.folder.write(&json!({"on_call": {"add": "hang"}}));
    let call = server.legacy_call(&session, "add", json!({}));
    server.folder.await_events("call", 2);
    call.leave();
    assert_eq!(server.end_of(5), "client-closed");
    assert_eq!(server.folder.events("cancelled").len(), 1);
}
