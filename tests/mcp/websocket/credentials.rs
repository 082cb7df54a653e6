//! Host, origin and credentials are checked before a connection is upgraded.

use harness::websocket::WebSocketClient;
use harness::{Broker, Chaos, raw};
use serde_json::json;

use super::initialize;

const SECRET: &str = "the secret+of/callers";
/// The secret as base64url, and as a value of the query.
const IN_SUBPROTOCOL: &str = "key.dGhlIHNlY3JldCtvZi9jYWxsZXJz";
const IN_QUERY: &str = "the%20secret%2Bof/callers";

fn guarded() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", "--log-level", "trace"]);
    let broker = Broker::start_ready(run.env("ZYRA_API_KEY", SECRET));
    (chaos, broker)
}

fn status(broker: &Broker, target: &str, headers: &[(&str, &str)]) -> u16 {
    match WebSocketClient::try_connect(broker.address(), target, headers) {
        Ok(_) => 101,
        Err(refused) => refused.status,
    }
}

#[test]
fn credential_is_a_header_a_subprotocol_or_a_parameter_of_these_routes() {
    let (_chaos, broker) = guarded();
    let with_query = format!("/v1/ws/mcp?api_key={IN_QUERY}");
    let wrong = "/v1/ws/mcp?api_key=wrong-secret-in-the-query";
    let protocols = format!("mcp, {IN_SUBPROTOCOL}");
    let protocol = ("Sec-WebSocket-Protocol", protocols.as_str());
    for target in ["/ws/mcp", "/v1/ws/mcp"] {
        assert_eq!(status(&broker, target, &[]), 401);
        assert_eq!(status(&broker, target, &[("X-API-Key", SECRET)]), 101);
        assert_eq!(status(&broker, target, &[protocol]), 101);
        assert_eq!(
            status(&broker, &format!("{target}?api_key={IN_QUERY}"), &[]),
            101
        );
    }
    assert_eq!(status(&broker, wrong, &[]), 401);
    assert_eq!(
        status(&broker, wrong, &[("X-API-Key", SECRET)]),
        101,
        "the header counts"
    );
    let two = format!("{with_query}&api_key={IN_QUERY}");
    assert_eq!(status(&broker, &two, &[]), 400);
    // Other routes take no credential in the query.
    for route in ["/v1/mcp", "/mcp", "/meta_tree"] {
        let target = format!("{route}?api_key={IN_QUERY}");
        let refused = harness::get(broker.address(), &target);
        assert!(refused.status >= 400, "{route}");
    }
    let mut client =
        WebSocketClient::try_connect(broker.address(), &with_query, &[]).expect("it is upgraded");
    client.result("initialize", &initialize());
    let log = broker.stderr();
    for hidden in [
        SECRET,
        IN_QUERY,
        IN_SUBPROTOCOL,
        "wrong-secret-in-the-query",
        "api_key=",
    ] {
        assert!(!log.contains(hidden), "{hidden} is in the log");
    }
}

#[test]
fn page_of_another_origin_is_refused_before_the_upgrade() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    for target in ["/ws/mcp", "/v1/ws/mcp"] {
        assert_eq!(
            status(&broker, target, &[("Origin", "https://evil.example")]),
            403
        );
        assert_eq!(status(&broker, target, &[("Origin", "null")]), 403);
        assert_eq!(
            status(&broker, target, &[("Origin", "https://app.example")]),
            101
        );
    }
    let head = "GET /ws/mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert_eq!(raw(broker.address(), head.as_bytes()).status, 403);
}

#[test]
fn request_that_is_not_an_upgrade_is_refused_with_the_way() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let refused = harness::get(broker.address(), "/ws/mcp");
    assert_eq!(
        (refused.status, refused.header("upgrade")),
        (426, Some("websocket"))
    );
    let refused = harness::post(broker.address(), "/ws/mcp", &json!({}));
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("GET"))
    );
}
