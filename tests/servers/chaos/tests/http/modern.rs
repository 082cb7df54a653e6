//! The modern era: headers, methods, subscriptions, and cancels.

use serde_json::{Value, json};

use crate::client::{LEGACY, MODERN, Server, meta, text};

#[test]
fn chaos_modern_request_is_answered_as_json_and_as_a_stream() {
    let mut script = json!({"plain": true});
    let server = Server::start(&script);
    let mut client = server.connect();
    client.modern("server/discover", json!({}));
    let found = client.response();
    assert_eq!(found.header("content-type"), Some("application/json"));
    assert_eq!(found.header("mcp-session-id"), None);
    assert_eq!(found.json()["result"]["supportedVersions"], json!([MODERN]));
    // The connection is kept for the next request.
    client.modern(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "a"}}),
    );
    assert_eq!(text(&client.response().json()), r#"{"text":"a"}"#);
    script["http"] = json!({"reply": "sse"});
    script["on_call"] = json!({"echo": {"log": [{"level": "info", "data": 1}]}});
    server.folder.write(&script);
    client.modern(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "b"}}),
    );
    let mut stream = client.stream();
    assert_eq!(
        stream.message()["params"],
        json!({"level": "info", "data": 1})
    );
    let answer = stream.next().unwrap();
    assert_eq!((&answer.id, &answer.name), (&None, &None));
    assert_eq!(text(&answer.json()), r#"{"text":"b"}"#);
    let mut client = stream.end();
    client.modern("tools/list", json!({}));
    assert_eq!(
        client.stream().message()["result"]["resultType"],
        "complete"
    );
    assert_eq!(server.folder.await_events("connected", 1).len(), 1);
}

type Headers = Vec<(&'static str, String)>;

/// Changes the headers and the body of a call; returns the status, and the code of the error if there is a body.
fn changed(server: &Server, change: impl Fn(&mut Headers, &mut Value)) -> (u16, Value) {
    let mut headers = vec![
        ("MCP-Protocol-Version", MODERN.to_owned()),
        ("Mcp-Method", "tools/call".to_owned()),
        ("Mcp-Name", "echo".to_owned()),
    ];
    let params = json!({"name": "echo", "arguments": {"text": "a"}, "_meta": meta()});
    let mut message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    change(&mut headers, &mut message);
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut client = server.connect();
    client.post(&headers, &message);
    let response = client.response();
    match response.body.is_empty() {
        true => (response.status, Value::Null),
        false => (response.status, response.json()["error"]["code"].take()),
    }
}

#[test]
fn chaos_modern_headers_that_differ_from_the_body_are_refused() {
    let server = Server::start(&json!({"era": "modern"}));
    let refused = |status: u16, code: i64, change: &dyn Fn(&mut Headers, &mut Value)| {
        assert_eq!(changed(&server, change), (status, json!(code)));
    };
    for at in 0..3 {
        refused(400, -32020, &|headers, _| drop(headers.remove(at)));
        for value in [LEGACY, "tools/list", "add", "=?base64?ZWNobw?="] {
            refused(400, -32020, &|headers, _| headers[at].1 = value.to_owned());
        }
        refused(400, -32020, &|headers, _| headers.push(headers[at].clone()));
    }
    refused(400, -32602, &|_, body| body["params"]["_meta"] = json!({}));
    refused(400, -32022, &|headers, body| {
        headers[0].1 = "2099-01-01".to_owned();
        let version = "io.modelcontextprotocol/protocolVersion";
        body["params"]["_meta"][version] = json!("2099-01-01");
    });
    for method in ["initialize", "tools/drop"] {
        refused(404, -32601, &|headers, body| {
            headers[1].1 = method.to_owned();
            body["method"] = json!(method);
        });
    }
    refused(400, -32600, &|_, body| *body = json!([body.clone()]));
    refused(400, -32600, &|_, body| {
        *body = json!({"id": 1, "result": {}})
    });
    for (header, value, status) in [
        ("Content-Type", "text/plain", 415),
        ("Accept", "application/json", 406),
        ("Host", "example.com", 403),
        ("Origin", "http://example.com", 403),
    ] {
        let refused = changed(&server, |headers, _| {
            headers.push((header, value.to_owned()))
        });
        assert_eq!(refused, (status, Value::Null), "{header}");
    }
    assert_eq!(
        server.folder.events("call").len(),
        0,
        "no refused call is executed"
    );
    let coded = "=?base64?ZWNobw==?=";
    assert_eq!(
        changed(&server, |headers, _| headers[2].1 = coded.to_owned()).0,
        200
    );
    server
        .folder
        .write(&json!({"era": "modern", "http": {"check_headers": false}}));
    assert_eq!(changed(&server, |headers, _| headers.clear()).0, 200);
}

#[test]
fn chaos_modern_parameter_headers_are_compared_with_the_arguments() {
    let properties = json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "nested": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
    });
    let tool = json!({"name": "echo", "inputSchema": {"type": "object", "properties": properties}});
    let server = Server::start(&json!({"era": "modern", "tools": [tool]}));
    let status = |arguments: &Value, given: &[(&'static str, &str)]| {
        let given = given
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        changed(&server, |headers, body| {
            headers.extend(given.clone());
            body["params"]["arguments"] = arguments.clone();
        })
        .0
    };
    let arguments = json!({"region": "ä", "nested": {"count": 42}, "dry": true});
    let right = [
        ("Mcp-Param-Region", "=?base64?w6Q=?="),
        ("mcp-param-count", "42.0"),
        ("Mcp-Param-Dry", "true"),
    ];
    assert_eq!(status(&arguments, &right), 200);
    assert_eq!(status(&json!({}), &[]), 200);
    for at in 0..right.len() {
        let mut less = right.to_vec();
        less.remove(at);
        assert_eq!(status(&arguments, &less), 400, "{less:?}");
        assert_eq!(status(&json!({}), &right[at..=at]), 400, "{at}");
        let mut wrong = right.to_vec();
        wrong[at].1 = "false";
        assert_eq!(status(&arguments, &wrong), 400, "{wrong:?}");
    }
}

#[test]
fn chaos_modern_server_has_no_get_and_no_delete() {
    let server = Server::start(&json!({"era": "modern"}));
    let mut client = server.connect();
    client.get(&[]);
    let refused = client.response();
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("POST"))
    );
    client.delete("a");
    assert_eq!(client.response().status, 405);
    client.legacy("", "initialize", json!({"protocolVersion": LEGACY}));
    let refused = client.response();
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.json()["error"]["data"]["supported"],
        json!([MODERN])
    );
    let address = server.origin().strip_prefix("http://").unwrap();
    client.send("POST", "/other", &[("Host", address)], "{}");
    assert_eq!(client.response().status, 404);
}

#[test]
fn chaos_modern_subscription_receives_changes_until_it_ends() {
    let server = Server::start(&json!({"era": "modern"}));
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut stream = server
        .modern("subscriptions/listen", params.clone())
        .stream();
    let acknowledged = stream.message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    server.folder.write(&json!({"era": "modern", "notify": 1}));
    let id = json!({"io.modelcontextprotocol/subscriptionId": 1});
    let changed = stream.message();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"], id);
    stream.leave();
    assert_eq!(
        server.folder.await_events("cancelled", 1)[0]["by"],
        "disconnect"
    );
    let rule = json!({"on": {"method": "subscriptions/listen"}, "do": {"open_ms": 0}});
    server
        .folder
        .write(&json!({"era": "modern", "notify": 1, "http": {"rules": [rule]}}));
    let mut stream = server.modern("subscriptions/listen", params).stream();
    let acknowledged = stream.message();
    assert_eq!(acknowledged["params"]["_meta"], id);
    drop(stream.end());
}

#[test]
fn chaos_modern_call_of_a_client_that_leaves_is_cancelled() {
    let server = Server::start(&json!({"on_call": {"add": "hang"}}));
    for (number, tool) in [(1, "slow"), (2, "add")] {
        let client = server.call(tool, json!({"ms": 3_600_000}));
        let is_call = |call: &Value| call["request"] == number;
        let has_call = |calls: &[Value]| calls.iter().any(is_call);
        server.folder.await_entries("call", has_call);
        client.leave();
        let cancelled = server.folder.await_entries("cancelled", has_call);
        assert_eq!(cancelled.last().unwrap()["by"], "disconnect");
        assert_eq!(server.end_of(number), "client-closed");
    }
}
