//! Messages that are not valid, in both eras: each is refused with the status and the code of its era, and
//! leaves no session behind.

use harness::mcp_http::{ACCEPT, MODERN, McpSession};
use harness::{Broker, Response, raw, request};
use serde_json::{Value, json};

use crate::stdio::client::{Client, hello};

use super::{chaos_broker, echo, sessions, text_of};

const ROUTE: &str = "/mcp/direct";
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A client that sends any bytes with the headers of its era.
struct Sender<'a> {
    broker: &'a Broker,
    headers: Vec<(&'a str, String)>,
}

impl<'a> Sender<'a> {
    fn legacy(broker: &'a Broker) -> Self {
        let id = McpSession::begin(broker.address(), ROUTE).id;
        Self::with(broker, vec![("Mcp-Session-Id", id)])
    }

    /// Its requests have this method.
    fn modern(broker: &'a Broker, method: &str) -> Self {
        let headers = vec![
            ("MCP-Protocol-Version", MODERN.to_owned()),
            ("Mcp-Method", method.to_owned()),
        ];
        Self::with(broker, headers)
    }

    fn with(broker: &'a Broker, headers: Vec<(&'a str, String)>) -> Self {
        Self { broker, headers }
    }

    fn and(mut self, name: &'a str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn send(&self, body: &str) -> Response {
        self.ask("POST", body)
    }

    fn ask(&self, method: &str, body: &str) -> Response {
        let all = [("Content-Type", "application/json"), ("Accept", ACCEPT)].into_iter();
        let own = self.headers.iter();
        let all: Vec<_> = all
            .chain(own.map(|(name, value)| (*name, value.as_str())))
            .collect();
        let address = self.broker.address();
        request(address, method, ROUTE, &all, body.as_bytes())
    }
}

/// A message that describes itself, with these params.
fn describing(method: &str, mut params: Value) -> Value {
    params["_meta"][REVISION] = json!(MODERN);
    params["_meta"][CAPABILITIES] = json!({});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The status and the code of the JSON-RPC error; 0 if there is none.
fn outcome(reply: &Response) -> (u16, i64) {
    let code = match reply.body.is_empty() {
        true => 0,
        false => reply.json()["error"]["code"].as_i64().unwrap_or(0),
    };
    (reply.status, code)
}

#[test]
fn batch_over_http_is_accepted_only_in_revisions_that_have_it() {
    let (_chaos, broker) = chaos_broker(&[]);
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let session = |revision| {
        let id = McpSession::begin_revision(broker.address(), ROUTE, revision).id;
        Sender::with(&broker, vec![("Mcp-Session-Id", id)])
    };
    let pings = json!([ping(1), ping(2)]).to_string();
    for revision in ["2025-11-25", "2025-06-18"] {
        let refused = session(revision).send(&pings);
        assert_eq!(outcome(&refused), (400, -32600), "{revision}");
    }
    let listing = json!([describing("tools/list", json!({}))]).to_string();
    let modern = Sender::modern(&broker, "tools/list").send(&listing);
    assert_eq!(outcome(&modern), (400, -32600));
    let begun = sessions(&broker);
    let alone = Sender::with(&broker, Vec::new());
    assert_eq!(outcome(&alone.send(&pings)), (400, -32600));
    assert_eq!(outcome(&alone.send(&listing)), (400, -32600));
    assert_eq!(sessions(&broker), begun, "a batch begins no session");

    let batching = session("2025-03-26");
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": echo("x")});
    let again =
        json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": hello("2025-03-26")});
    let answered = batching.send(&json!([ping(1), note, call, again, 7]).to_string());
    assert_eq!(answered.status, 200, "{}", answered.text());
    let answers = answered.json();
    let of = |id: Value| {
        let answers = answers.as_array().expect("one array for the batch");
        let mut answers = answers.iter();
        answers
            .find(|answer| answer.get("id") == Some(&id))
            .cloned()
    };
    assert_eq!(answers.as_array().map(Vec::len), Some(4), "{answers}");
    assert_eq!(of(json!(1)).expect("an answer")["result"], json!({}));
    assert_eq!(
        super::echoed(&of(json!("c")).expect("an answer")["result"]),
        "x"
    );
    assert_eq!(of(json!(3)).expect("an answer")["error"]["code"], -32600);
    let notes = batching.send(&json!([note, note]).to_string());
    assert_eq!((notes.status, notes.body.len()), (202, 0));
    assert_eq!(outcome(&batching.send("[]")), (400, -32600));
}

#[test]
fn message_with_an_invalid_envelope_is_refused_in_both_eras() {
    let (_chaos, broker) = chaos_broker(&[]);
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
        "x".repeat(1 << 20)
    );
    let eras = [Sender::legacy(&broker), Sender::modern(&broker, "ping")];
    for sender in &eras {
        for (text, id) in [
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                Some(json!(1)),
            ),
            (r#"{"id":1,"method":"ping"}"#, Some(json!(1))),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(json!(1))),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(json!(1))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"notifications/initialized"}"#,
                Some(json!("a")),
            ),
            ("7", None),
            (&long, None),
        ] {
            let refused = sender.send(text);
            let shown = &text[..text.len().min(80)];
            assert_eq!(outcome(&refused), (400, -32600), "{shown}");
            assert_eq!(refused.json().get("id").cloned(), id, "{shown}");
            assert!(refused.body.len() < 1000, "{shown}");
        }
        for text in ["", "nope", "{\"a\":", "{\"jsonrpc\":\"2.0\",\"id\":1,}"] {
            assert_eq!(outcome(&sender.send(text)), (400, -32700), "{text}");
        }
    }
    assert_eq!(sessions(&broker), 1);
}

#[test]
fn method_that_is_unknown_is_refused_in_the_form_of_its_era() {
    let (_chaos, broker) = chaos_broker(&[]);
    let legacy = Sender::legacy(&broker);
    for method in ["nope", "resources/subscribe", "tasks/get", ""] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let refused = legacy.send(&message.to_string());
        assert_eq!(outcome(&refused), (200, -32601), "{method}");
    }
    for method in ["nope", "tasks/get", "initialize", "ping"] {
        let message = describing(method, json!({}));
        let refused = Sender::modern(&broker, method).send(&message.to_string());
        assert_eq!(outcome(&refused), (404, -32601), "{method}");
    }
}

#[test]
fn request_without_an_id_is_accepted_and_not_executed() {
    let (chaos, broker) = chaos_broker(&[]);
    let mut silent = describing("tools/call", echo("x"));
    silent.as_object_mut().expect("an object").remove("id");
    let modern = Sender::modern(&broker, "tools/call").and("Mcp-Name", "a-echo");
    for sender in [Sender::legacy(&broker), modern] {
        let accepted = sender.send(&silent.to_string());
        assert_eq!((accepted.status, accepted.body.len()), (202, 0));
    }
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(
        chaos.events("a", "call").len(),
        1,
        "only the call with an id"
    );
}

#[test]
fn legacy_request_before_initialize_begins_no_session() {
    let (chaos, broker) = chaos_broker(&[]);
    let alone = Sender::with(&broker, Vec::new());
    for (method, params) in [
        ("tools/call", echo("x")),
        ("tools/list", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
        ("ping", json!({})),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let refused = alone.send(&message.to_string());
        assert_eq!(outcome(&refused), (400, -32600), "{method}");
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(outcome(&alone.send(&note.to_string())), (400, -32600));
    assert_eq!(sessions(&broker), 0);
    assert_eq!(chaos.events("a", "call").len(), 0);
}

#[test]
fn unknown_tool_is_an_error_and_refused_arguments_are_a_result() {
    let (_chaos, broker) = chaos_broker(&[]);
    let wrong = json!({"name": "a-add", "arguments": {"a": "one"}});
    let through_meta =
        json!({"name": "meta_call", "arguments": {"path": "/a/add", "args": {"a": "one"}}});
    for (route, params) in [("/mcp/direct", wrong), ("/mcp/meta", through_meta)] {
        let unknown = json!({"name": "nope", "arguments": {}});
        let session = McpSession::begin(broker.address(), route);
        let modern = |params: &Value| {
            harness::mcp_http::modern(broker.address(), route, &json!(1), "tools/call", params)
        };
        let legacy = |params: &Value| session.ask(&json!(1), "tools/call", params);
        for reply in [legacy(&unknown), modern(&unknown)] {
            assert_eq!(outcome(&reply), (200, -32602), "{route}");
        }
        for reply in [legacy(&params), modern(&params)] {
            let result = &reply.json()["result"];
            assert_eq!((reply.status, &result["isError"]), (200, &json!(true)));
            let error: Value = serde_json::from_str(text_of(result)).expect("an error object");
            assert_eq!(error["code"], "args_invalid", "{route}: {error}");
            assert!(error["details"]["errors"][0].is_object(), "{error}");
        }
    }
}

#[test]
fn unknown_tool_over_stdio_is_an_error_in_both_modes() {
    for (mode, wrong) in [
        (
            "direct",
            json!({"name": "util-hash_text", "arguments": {"text": 1}}),
        ),
        (
            "meta",
            json!({"name": "meta_call", "arguments": {"path": "/util/hash_text", "args": {"text": 1}}}),
        ),
    ] {
        let mut client = Client::start(&["--mcp-mode", mode]);
        client.request(json!(0), "initialize", hello("2025-11-25"));
        let unknown = json!({"name": "nope", "arguments": {}});
        assert_eq!(client.refusal("tools/call", unknown), -32602, "{mode}");
        let result = client.request(json!(1), "tools/call", wrong)["result"].clone();
        assert_eq!(result["isError"], true, "{mode}: {result}");
        assert!(
            text_of(&result).contains("args_invalid"),
            "{mode}: {result}"
        );
    }
}

#[test]
fn modern_request_with_headers_of_a_session_belongs_to_none() {
    let (_chaos, broker) = chaos_broker(&[]);
    let session = McpSession::begin(broker.address(), "/mcp/direct?under=/b");
    let list = describing("tools/list", json!({})).to_string();
    for id in [
        session.id.as_str(),
        "s1-00000000000000000000000000000000",
        "x",
    ] {
        let modern = || {
            Sender::modern(&broker, "tools/list")
                .and("Mcp-Session-Id", id)
                .and("Last-Event-ID", "7")
        };
        let reply = modern().send(&list);
        assert_eq!(reply.status, 200, "{id}: {}", reply.text());
        let names = super::names(&reply.json()["result"]);
        assert!(names.contains(&"a-echo".to_owned()), "{names:?}");
        assert_eq!(reply.header("mcp-session-id"), None);
        for method in ["GET", "DELETE"] {
            let refused = modern().ask(method, "");
            assert_eq!(outcome(&refused), (405, -32600), "{method}");
            assert_eq!(refused.header("allow"), Some("POST"));
        }
    }
    assert_eq!(session.ask(&json!(1), "ping", &json!({})).status, 200);
    assert_eq!(sessions(&broker), 1);
}

#[test]
fn unsupported_revision_over_http_is_refused_with_the_supported() {
    let (_chaos, broker) = chaos_broker(&[]);
    let discover = describing("server/discover", json!({})).to_string();
    let discovered = Sender::modern(&broker, "server/discover").send(&discover);
    let supported = &discovered.json()["result"]["supportedVersions"];
    for revision in ["2031-01-01", "2025-11-25", "x"] {
        let message = discover.replace(MODERN, revision);
        let headers = vec![
            ("MCP-Protocol-Version", revision.to_owned()),
            ("Mcp-Method", "server/discover".to_owned()),
        ];
        let refused = Sender::with(&broker, headers).send(&message);
        assert_eq!(outcome(&refused), (400, -32022), "{revision}");
        let data = json!({"supported": supported, "requested": revision});
        assert_eq!(refused.json()["error"]["data"], data);
    }
    let legacy = Sender::legacy(&broker).and("MCP-Protocol-Version", "2031-01-01");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let refused = legacy.send(&ping);
    assert_eq!(outcome(&refused), (400, -32600));
    assert!(refused.text().contains("2025-11-25"), "{}", refused.text());
}

/// A modern call with these header lines.
fn call_with(broker: &Broker, lines: &[&[u8]]) -> Response {
    let body = describing("tools/call", echo("x")).to_string();
    let mut bytes = format!(
        "POST {ROUTE} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: {ACCEPT}\r\nContent-Length: {}\r\n",
        broker.address(),
        body.len()
    )
    .into_bytes();
    for line in lines {
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.as_bytes());
    raw(broker.address(), &bytes)
}

#[test]
fn modern_headers_that_are_missing_wrong_or_illegal_are_refused() {
    let (chaos, broker) = chaos_broker(&[]);
    let version: &[u8] = b"MCP-Protocol-Version: 2026-07-28";
    let method: &[u8] = b"Mcp-Method: tools/call";
    let name: &[u8] = b"Mcp-Name: a-echo";
    let encoded: &[u8] = b"Mcp-Name: =?base64?YS1lY2hv?=";
    for lines in [[version, method, name], [version, method, encoded]] {
        let reply = call_with(&broker, &lines);
        assert_eq!(outcome(&reply), (200, 0), "{}", reply.text());
    }
    let refused: [&[&[u8]]; 15] = [
        &[method, name],
        &[b"MCP-Protocol-Version: 2025-11-25", method, name],
        &[b"MCP-Protocol-Version: 2026-07-28\xff", method, name],
        &[version, version, method, name],
        &[version, name],
        &[version, b"Mcp-Method: tools/list", name],
        &[version, b"Mcp-Method: Tools/Call", name],
        &[version, b"Mcp-Method: tools/call\xff", name],
        &[version, method, method, name],
        &[version, method],
        &[version, method, b"Mcp-Name: a-add"],
        &[version, method, b"Mcp-Name: a-\xc3\xa9cho"],
        &[version, method, name, name],
        &[version, method, b"Mcp-Name: =?base64?YS1lY2hv?"],
        &[version, method, b"Mcp-Name: =?base64?/w==?="],
    ];
    for lines in refused {
        let reply = call_with(&broker, lines);
        let shown = String::from_utf8_lossy(&lines.concat()).into_owned();
        assert_eq!(outcome(&reply), (400, -32020), "{shown}: {}", reply.text());
        assert_eq!(reply.json()["id"], 1, "{shown}");
    }
    // A control character in a header is not HTTP.
    let control = call_with(&broker, &[version, method, b"Mcp-Name: a-echo\x01"]);
    assert_eq!(control.status, 400);
    assert_eq!(chaos.events("a", "call").len(), 2);
}
