//! Responses that are complete but not what a client expects: status, headers, frames, sizes.

use serde_json::{Value, json};

use crate::client::{Response, Server, legacy_headers, text};

fn rule(fault: Value) -> Value {
    json!({"plain": true, "http": {"rules": [{"on": {"tool": "echo"}, "do": fault}]}})
}

/// The response to a call with this fault.
fn answered(server: &Server, fault: Value) -> Response {
    server.folder.write(&rule(fault));
    server.call("echo", json!({"text": "a"})).response()
}

/// Everything that a call with this fault receives until the server ends the connection.
fn everything(server: &Server, fault: Value) -> String {
    server.folder.write(&rule(fault));
    server.call("echo", json!({"text": "a"})).rest().0
}

#[test]
fn chaos_status_and_headers_are_as_scripted_and_nothing_is_executed() {
    let server = Server::start(&json!({}));
    let fault = json!({"status": 401, "headers": {"WWW-Authenticate": "Bearer realm=\"x\""}});
    let refused = answered(&server, fault);
    assert_eq!((refused.status, refused.body.len()), (401, 0));
    assert_eq!(
        refused.header("www-authenticate"),
        Some("Bearer realm=\"x\"")
    );
    for status in [403, 404, 405, 429, 503] {
        let fault = json!({"status": status, "headers": {"Retry-After": "1"}, "body": "<html>"});
        let refused = answered(&server, fault);
        assert_eq!(
            (refused.status, refused.text().as_str()),
            (status, "<html>")
        );
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    let error = json!({"code": -32603, "message": "broken"});
    let failed = answered(&server, json!({"status": 500, "body": error}));
    assert_eq!((failed.status, &failed.json()["id"]), (500, &json!(1)));
    assert_eq!(failed.json()["error"], error);
    assert_eq!(server.folder.events("call").len(), 0);
    let executed = answered(&server, json!({"status": 500, "execute": true}));
    assert_eq!(
        (executed.status, text(&executed.json())),
        (500, r#"{"text":"a"}"#)
    );
    assert_eq!(server.folder.events("call").len(), 1);
    let skipped = answered(&server, json!({"execute": false}));
    assert_eq!((skipped.status, skipped.body.len()), (200, 0));
    assert_eq!(server.folder.events("call").len(), 1);
}

#[test]
fn chaos_redirect_names_any_location() {
    let server = Server::start(&json!({}));
    for (location, expected) in [
        ("$URL", server.url.clone()),
        ("$ORIGIN/other", format!("{}/other", server.origin())),
        (
            "http://example.com/mcp",
            "http://example.com/mcp".to_owned(),
        ),
    ] {
        let fault = json!({"status": 307, "headers": {"Location": location}});
        let redirect = answered(&server, fault);
        assert_eq!(redirect.status, 307);
        assert_eq!(redirect.header("location"), Some(expected.as_str()));
    }
}

#[test]
fn chaos_headers_are_replaced_removed_and_repeated() {
    let server = Server::start(&json!({}));
    let html = answered(&server, json!({"headers": {"content-type": "text/html"}}));
    assert_eq!(html.header("content-type"), Some("text/html"));
    assert_eq!(text(&html.json()), r#"{"text":"a"}"#);
    let none = answered(&server, json!({"headers": {"Content-Type": null}}));
    assert_eq!(none.header("content-type"), None);
    let twice = answered(&server, json!({"headers": {"X-A": ["1", "2"]}}));
    let values: Vec<_> = twice
        .headers
        .iter()
        .filter(|(name, _)| name == "X-A")
        .collect();
    assert_eq!(values.len(), 2);
    let flood = answered(
        &server,
        json!({"header_flood": {"count": 300, "bytes": 100}}),
    );
    assert_eq!(flood.headers.len(), 302);
    let other = server.open_session();
    let session = server.open_session();
    let fault = json!({"headers": {"Mcp-Session-Id": "$OTHER_SESSION"}});
    server.folder.write(&rule(fault));
    let mut call = server.legacy_call(&session, "echo", json!({"text": "a"}));
    assert_eq!(
        call.response().header("mcp-session-id"),
        Some(other.as_str())
    );
}

#[test]
fn chaos_rule_applies_to_the_nth_request_that_matches() {
    let rules = json!([
        {"on": {"tool": "echo"}, "nth": 2, "do": {"status": 503}},
        {"on": {"method": "tools/call"}, "nth": [3, 4], "do": {"status": 429}},
        {"on": {"http_method": "POST", "path": "/mcp", "method": "tools/list"}, "do": {"status": 500}},
    ]);
    let server = Server::with_rules(rules);
    let statuses = |tools: &[&str]| -> Vec<u16> {
        let call = |tool: &&str| server.call(tool, json!({})).response().status;
        tools.iter().map(call).collect()
    };
    assert_eq!(
        statuses(&["echo", "add", "echo", "add", "echo"]),
        [200, 200, 503, 429, 200]
    );
    assert_eq!(
        server.modern("tools/list", json!({})).response().status,
        500
    );
    assert_eq!(
        server
            .modern("server/discover", json!({}))
            .response()
            .status,
        200
    );
    let faults = server.folder.events("fault");
    let of = |name: &str| {
        faults
            .iter()
            .map(|fault| fault[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("rule"), [json!(0), json!(1), json!(2)]);
    assert_eq!(of("request"), [json!(3), json!(4), json!(6)]);
}

#[test]
fn chaos_request_without_a_required_header_is_unauthorized() {
    let script = json!({"http": {"require_headers": {"Authorization": "Bearer right"}}});
    let server = Server::start(&script);
    let mut client = server.connect();
    for (value, status) in [("Bearer wrong", 401), ("Bearer right", 400)] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        client.post(&[("Authorization", value)], &message);
        let response = client.response();
        assert_eq!(response.status, status);
        assert_eq!(response.header("www-authenticate").is_some(), status == 401);
    }
}

#[test]
fn chaos_frame_of_a_body_is_wrong_as_scripted() {
    let server = Server::start(&json!({}));
    let whole = answered(&server, json!({}));
    let length = whole.body.len();
    let body = whole.text();
    let named = |length: usize| format!("Content-Length: {length}\r\n");
    for (change, expected) in [
        (json!(3), 3),
        (json!({"add": 5}), length + 5),
        (json!({"add": -5}), length - 5),
    ] {
        let all = everything(&server, json!({"content_length": change}));
        assert!(
            all.contains(&named(expected)) && all.ends_with(&body),
            "{all}"
        );
    }
    let text = everything(
        &server,
        json!({"headers": {"Content-Length": "x"}, "end": "close"}),
    );
    assert!(text.contains("Content-Length: x\r\n"), "{text}");
    let chunked = answered(&server, json!({"transfer": "chunked"}));
    assert_eq!(
        (chunked.header("content-length"), chunked.text()),
        (None, body.clone())
    );
    let closed = everything(&server, json!({"transfer": "close"}));
    assert!(
        !closed.contains("Content-Length") && closed.ends_with(&body),
        "{closed}"
    );
    let both = answered(&server, json!({"transfer": "both"}));
    assert!(both.header("content-length").is_some());
    assert_eq!(both.text(), body);
    let chunk = format!("{length:x}\r\n{body}\r\n");
    let open = everything(&server, json!({"transfer": "no-last-chunk"}));
    assert!(open.ends_with(&format!("\r\n\r\n{chunk}")), "{open}");
    for (name, size) in [
        ("bad-chunk", "not-a-size"),
        ("huge-chunk", "fffffffffffffffff"),
    ] {
        let all = everything(&server, json!({"transfer": name}));
        assert!(
            all.ends_with(&format!("\r\n\r\n{size}\r\n{body}\r\n")),
            "{all}"
        );
    }
    let raw = "HTTP/9.9 abc\r\n\u{e9}\r\n";
    server.folder.write(&rule(json!({"raw": raw})));
    let all = server.call("echo", json!({})).rest().0;
    // The byte E9 alone is not UTF-8.
    assert_eq!(all, "HTTP/9.9 abc\r\n\u{fffd}\r\n");
}

#[test]
fn chaos_body_in_gzip_was_not_asked_for() {
    let server = Server::start(&json!({}));
    let packed = answered(&server, json!({"gzip": true}));
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.body[..3], [0x1f, 0x8b, 8]);
    let bomb = answered(&server, json!({"gzip_bomb": 1_000_000}));
    assert_eq!(bomb.header("content-encoding"), Some("gzip"));
    assert!(bomb.body.len() < 2000, "{}", bomb.body.len());
    let size = u32::from_le_bytes(bomb.body[bomb.body.len() - 4..].try_into().unwrap());
    assert!(size > 1_000_000, "{size}");
    let lie = answered(&server, json!({"headers": {"Content-Encoding": "br"}}));
    assert_eq!(lie.header("content-encoding"), Some("br"));
    assert!(lie.json()["result"].is_object());
}

#[test]
fn chaos_head_and_body_are_written_slowly() {
    let server = Server::start(&json!({}));
    let drip = json!({"bytes": 7, "ms": 0});
    let fault = json!({"delay_ms": 1, "head_drip": drip, "body_drip": drip});
    assert_eq!(
        text(&answered(&server, fault.clone()).json()),
        r#"{"text":"a"}"#
    );
    let mut slow = fault;
    slow["reply"] = json!("sse");
    server.folder.write(&rule(slow));
    let mut stream = server.call("echo", json!({"text": "a"})).stream();
    assert_eq!(text(&stream.message()), r#"{"text":"a"}"#);
    let session = server.open_session();
    server
        .folder
        .write(&json!({"on_call": {"*": {"drip": {"bytes": 5, "ms": 0}}}}));
    let mut client = server.connect();
    client.post(
        &legacy_headers(&session),
        &json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"},
        }),
    );
    assert!(client.response().json()["result"].is_object());
}
