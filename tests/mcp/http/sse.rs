//! The transport HTTP+SSE of MCP 2024-11-05.

use std::fs;

use harness::mcp_http::EventReader;
use harness::{Broker, Chaos, Response, read, request, send};
use serde_json::{Value, json};

use super::{echo, text_of};

/// Keys for tests only, and their digests.
const KEY: &str = harness::access::KEY;
const DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
const OTHER_KEY: &str = "mbk_abcdefghijklmnopqrstuvwxyz234567";
const OTHER_DIGEST: &str = "389c64e5c798138162fd6e688a0df6b8a8eec2d491d7c6b9c82b1716403b5355";
const REVISION: &str = "2024-11-05";

/// A broker over scripted servers, with these members in its config.
fn served(members: Value, args: &[&str]) -> (Chaos, Broker) {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    ));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("it is JSON");
    for (name, value) in members.as_object().expect("members") {
        config[name] = value.clone();
    }
    let chaos = Chaos::new();
    let file = chaos.file("given.json", &config.to_string());
    let name = file.to_str().expect("the path is text");
    let all: Vec<_> = ["127.0.0.1:0", name].iter().chain(args).copied().collect();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &all));
    (chaos, broker)
}

/// A client with an open stream.
struct Client<'b> {
    broker: &'b Broker,
    key: Option<&'static str>,
    stream: EventReader,
    endpoint: String,
}

impl<'b> Client<'b> {
    fn open(broker: &'b Broker, route: &str, key: Option<&'static str>) -> Self {
        let address = broker.address();
        let credential = key.map_or_else(String::new, |key| format!("X-API-Key: {key}\r\n"));
        let head = format!(
            "GET {route} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{credential}\r\n"
        );
        let mut stream = EventReader::open(send(address, head.as_bytes()));
        let endpoint = stream.next_data().expect("the event `endpoint`");
        Self {
            broker,
            key,
            stream,
            endpoint,
        }
    }

    fn post(&self, message: &Value) -> Response {
        post(self.broker, &self.endpoint, self.key, message)
    }

    /// Sends a request and reads messages up to its answer.
    fn ask(&mut self, id: u64, method: &str, params: Value) -> (Value, Vec<Value>) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let taken = self.post(&message);
        assert_eq!((taken.status, body(&taken)), (202, ""));
        let mut before = Vec::new();
        loop {
            let message = self.stream.next_message().expect("an answer");
            if message["id"] == id {
                return (message["result"].clone(), before);
            }
            before.push(message);
        }
    }

    fn initialize(&mut self) -> Value {
        let client = json!({"name": "old", "version": "1"});
        let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        self.ask(0, "initialize", params).0
    }
}

fn body(reply: &Response) -> &str {
    std::str::from_utf8(&reply.body).expect("a text")
}

fn post(broker: &Broker, route: &str, key: Option<&str>, message: &Value) -> Response {
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(key.map(|key| ("X-API-Key", key)));
    let body = message.to_string();
    request(broker.address(), "POST", route, &headers, body.as_bytes())
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})
}

fn sse() -> Value {
    json!({"surfaces": {"sse": true}})
}

#[test]
fn transport_is_off_unless_the_config_turns_it_on() {
    let (_chaos, broker) = served(json!({}), &[]);
    for (method, route) in [
        ("GET", "/sse"),
        ("POST", "/sse"),
        ("POST", "/sse/message?session=x"),
    ] {
        let refused = request(broker.address(), method, route, &[], b"{}");
        assert_eq!(refused.status, 404, "{method} {route}");
        for part in ["surfaces.sse", "`/mcp`"] {
            assert!(body(&refused).contains(part), "{}", body(&refused));
        }
    }
}

#[test]
fn old_client_lists_and_calls_over_its_stream() {
    let (_chaos, broker) = served(sse(), &[]);
    let mut client = Client::open(&broker, "/sse/?under=/a", None);
    assert!(
        client.endpoint.starts_with("/sse/message?session=s1-"),
        "{}",
        client.endpoint
    );
    let hello = client.initialize();
    assert_eq!(hello["protocolVersion"], REVISION);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(client.post(&ready).status, 202);
    let (tools, _) = client.ask(1, "tools/list", json!({}));
    assert_eq!(tools["tools"][2]["name"], "meta_call");
    let call =
        json!({"name": "meta_call", "arguments": {"path": "/a/echo", "args": {"text": "x"}}});
    let (result, _) = client.ask(2, "tools/call", call);
    assert!(text_of(&result).contains('x'), "{result}");
    let hidden =
        json!({"name": "meta_call", "arguments": {"path": "/b/echo", "args": {"text": "x"}}});
    let (result, _) = client.ask(3, "tools/call", hidden);
    assert_eq!(result["isError"], true, "{result}");
    // What no answer can carry is refused at once.
    let broken = request(
        broker.address(),
        "POST",
        &client.endpoint,
        &[("Content-Type", "text/plain")],
        b"{}",
    );
    assert_eq!(broken.status, 415);
    let invalid = client.ask(4, "tools/none", json!({})).0;
    assert!(invalid.is_null());
}

#[test]
fn mode_of_the_config_applies_and_the_endpoint_has_the_path_of_the_public_url() {
    let members = json!({
        "surfaces": {"sse": true},
        "public_url": "https://tools.example/broker/mcp",
        "identities": {"keys": [{"name": "one", "sha256": DIGEST}]},
        "allowed_hosts": ["tools.example"],
    });
    let (_chaos, broker) = served(members, &["--mcp-mode", "direct"]);
    let mut client = Client::open(&broker, "/sse", Some(KEY));
    let stripped = client.endpoint.strip_prefix("/broker").map(str::to_owned);
    client.endpoint = stripped.expect("the path of `public_url`");
    client.initialize();
    let (result, _) = client.ask(1, "tools/call", echo("direct"));
    assert!(text_of(&result).contains("direct"), "{result}");
}

#[test]
fn messages_of_other_callers_are_those_of_an_unknown_stream() {
    let keys = json!([
        {"name": "one", "sha256": DIGEST},
        {"name": "two", "sha256": OTHER_DIGEST},
    ]);
    let members = json!({"surfaces": {"sse": true}, "identities": {"keys": keys}});
    let (_chaos, broker) = served(members, &[]);
    let mut client = Client::open(&broker, "/sse", Some(KEY));
    client.initialize();
    let known = client.endpoint.clone();
    let unknown = format!("/sse/message?session=s1-{}", "0".repeat(32));
    let refused = |route: &str, key: Option<&str>| post(&broker, route, key, &ping());
    let of_unknown = refused(&unknown, Some(KEY));
    assert_eq!(of_unknown.status, 404);
    let of_other = refused(&known, Some(OTHER_KEY));
    let message = |reply: &Response| reply.json()["error"]["message"].clone();
    assert_eq!(of_other.status, 404);
    assert_eq!(message(&of_other), message(&of_unknown));
    assert_eq!(refused(&known, None).status, 401);
    assert_eq!(refused(&known, Some("mbk_wrong")).status, 401);
    let address = broker.address();
    for (host, origin) in [
        ("evil.example", ""),
        (address, "Origin: https://evil.example\r\n"),
    ] {
        for (method, route) in [("GET", "/sse"), ("POST", known.as_str())] {
            let head = format!(
                "{method} {route} HTTP/1.1\r\nHost: {host}\r\n{origin}X-API-Key: {KEY}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            );
            let reply = read(send(address, head.as_bytes()));
            let code = &reply.json()["error"]["data"]["code"];
            let expected = if origin.is_empty() {
                "host_forbidden"
            } else {
                "origin_forbidden"
            };
            assert_eq!(
                (reply.status, code),
                (403, &json!(expected)),
                "{method} {route}"
            );
        }
    }
    assert_eq!(client.ask(1, "ping", json!({})).0, json!({}));
    // A stream that has ended is unknown as well.
    drop(client);
    harness::wait_until("the stream is unknown", || {
        refused(&known, Some(KEY)).status == 404
    });
}

#[test]
fn id_of_a_stream_is_in_no_log() {
    let (_chaos, broker) = served(sse(), &["--log-level", "trace"]);
    let mut client = Client::open(&broker, "/sse", None);
    client.initialize();
    let (_, id) = client.endpoint.split_once("session=").expect("an id");
    let id = id.to_owned();
    client.ask(1, "ping", json!({}));
    drop(client);
    let (_, log) = broker.terminate();
    assert!(log.contains("HTTP+SSE"), "{log}");
    assert!(!log.contains(&id) && !log.contains(&id[3..]), "{log}");
}
