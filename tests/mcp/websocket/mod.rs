//! The broker as an MCP server over WebSocket.

mod credentials;
mod limits;

use harness::faults::scaled;
use harness::figure::figure;
use harness::mcp_http::McpSession;
use harness::websocket::WebSocketClient;
use harness::{Broker, Chaos, wait_until};
use serde_json::{Value, json};

use super::http::{chaos_broker, echo, echoed};

fn initialize() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}})
}

/// An initialized client of a route.
fn open(broker: &Broker, target: &str) -> WebSocketClient {
    let mut client = WebSocketClient::connect(broker.address(), target);
    client.result("initialize", &initialize());
    client
}

#[test]
fn connection_is_a_legacy_session() {
    let (_chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    let over_http = McpSession::begin(broker.address(), "/mcp");
    let mut client = WebSocketClient::connect(broker.address(), "/ws/mcp");
    let begun = client.result("initialize", &initialize());
    assert_eq!(begun["protocolVersion"], "2025-11-25");
    // A request before `notifications/initialized` is answered.
    let list = client.result("tools/list", &json!({}));
    assert_eq!(list, over_http.result("tools/list", &json!({})));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let result = client.result("tools/call", &echo("hello"));
    assert_eq!(echoed(&result), "hello");
    assert_eq!(client.result("ping", &json!({})), json!({}));
    let unknown = client.answer("nope", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    client.send("{");
    assert_eq!(client.next_message()["error"]["code"], -32700);
    client.socket.close(None).expect("it can be closed");
    while client.socket.read().is_ok() {}
}

#[test]
fn open_streams_and_connections_are_counted_in_the_metrics() {
    let (_chaos, broker) = chaos_broker(&[]);
    let await_count = |count: usize| {
        let line = format!("mcp_broker_streams {count}");
        wait_until(&line, || {
            let text = broker.get("/metrics").text();
            text.lines().any(|known| known == line)
        });
    };
    await_count(0);
    let client = open(&broker, "/ws/mcp");
    await_count(1);
    let session = McpSession::begin(broker.address(), "/mcp");
    let stream = session.stream();
    await_count(2);
    drop((client, stream));
    await_count(0);
}

#[test]
fn empty_initialize_is_taken_and_greeted_where_simple_clients_expect_it() {
    let (_chaos, broker) = chaos_broker(&[]);
    let first_two = |target: &str, headers: &[(&str, &str)]| {
        let client = WebSocketClient::try_connect(broker.address(), target, headers);
        let mut client = client.expect("it is upgraded");
        client.request("initialize", &json!({}));
        let begun = client.next_message();
        assert_eq!(begun["result"]["protocolVersion"], "2025-06-18", "{begun}");
        client.request("ping", &json!({}));
        (client.next_message(), client.subprotocol)
    };
    let protocol = [("Sec-WebSocket-Protocol", "other, mcp")];
    let greeting = json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}});
    assert_eq!(first_two("/v1/ws/mcp", &[]), (greeting, None));
    for (target, headers) in [("/ws/mcp", &[][..]), ("/v1/ws/mcp", &protocol)] {
        let (second, subprotocol) = first_two(target, headers);
        assert_eq!(second["result"], json!({}), "{target}");
        assert_eq!(subprotocol.is_some(), !headers.is_empty());
    }
}

#[test]
fn frames_of_simple_clients_are_answered() {
    let (_chaos, broker) = chaos_broker(&[]);
    let mut client = WebSocketClient::connect(broker.address(), "/v1/ws/mcp");
    client.request("initialize", &json!({}));
    let begun = client.next_message();
    assert_eq!(
        begun["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    assert!(begun["result"]["serverInfo"]["version"].is_string());
    assert_eq!(client.next_message()["method"], "notifications/initialized");
    let list = client.result("tools/list", &json!({}));
    assert!(list["tools"].as_array().is_some_and(|tools| {
        tools
            .iter()
            .all(|tool| tool["inputSchema"]["type"] == "object")
    }));
    let call = json!({"name": "a-echo", "arguments": {"text": "x"}, "mode": "sync"});
    let result = client.result("tools/call", &call);
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("ok"), &json!(0))
    );
    assert_eq!(result["stdout"], result["content"][0]["text"]);
    let command = json!({"stage": "a", "command": "echo", "args": {"text": "x"}});
    assert_eq!(client.result("callTool", &command)["status"], "ok");
    assert_eq!(client.result("statusReport", &json!({}))["status"], "ok");
}

#[test]
fn modern_requests_describe_themselves() {
    let (_chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    let mut client = WebSocketClient::connect(broker.address(), "/ws/mcp");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let found = client.result("server/discover", &json!({"_meta": meta}));
    assert_eq!(found["resultType"], "complete");
    let mut call = echo("modern");
    call["_meta"] = meta;
    let result = client.result("tools/call", &call);
    assert_eq!(
        (echoed(&result).as_str(), &result["resultType"]),
        ("modern", &json!("complete"))
    );
}

#[test]
fn progress_and_changes_of_the_list_are_notifications() {
    let (chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    chaos.script("a", &json!({"on_call": {"echo": {"progress": 3}}}));
    let mut client = open(&broker, "/ws/mcp");
    let mut call = echo("x");
    call["_meta"] = json!({"progressToken": "p"});
    let messages = client.messages("tools/call", &call);
    let progress = messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress");
    assert_eq!(progress.count(), 3, "{messages:?}");
    let changed = json!({"tools": Chaos::tools_asking_more("echo"), "generation": 1});
    chaos.script("a", &changed);
    loop {
        let message = client.next_message();
        if message["method"] == "notifications/tools/list_changed" {
            break;
        }
    }
    let list = client.result("tools/list", &json!({}));
    let tools = list["tools"].as_array().expect("a list");
    assert!(
        tools.iter().all(|tool| tool["name"] != "a-echo"),
        "withdrawn"
    );
}

#[test]
fn cancelled_call_reaches_the_server() {
    let (chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 600_000}}}));
    let mut client = open(&broker, "/ws/mcp");
    let id = client.request("tools/call", &echo("x"));
    chaos.await_events("a", "call", 1);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    client.send(&cancel.to_string());
    chaos.await_events("a", "cancelled", 1);
    assert_eq!(client.result("ping", &json!({})), json!({}));
    // A client that leaves cancels its calls too.
    client.request("tools/call", &echo("y"));
    chaos.await_events("a", "call", 2);
    drop(client);
    chaos.await_events("a", "cancelled", 2);
}

#[test]
fn callers_of_many_connections_get_their_own_answers() {
    const CONNECTIONS: usize = 50;
    let calls = scaled("MCP_BROKER_WEBSOCKET_CALLS", 2_000);
    let _machine = harness::whole_machine();
    let (_chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let broker = &broker;
            scope.spawn(move || {
                let mut client = open(broker, "/ws/mcp");
                let own = (0..calls / CONNECTIONS).collect::<Vec<_>>();
                // Together fewer than the source takes and queues.
                for batch in own.chunks(4) {
                    let texts = batch.iter().map(|call| format!("{connection}-{call}"));
                    let mut open: Vec<_> = texts
                        .map(|text| (client.request("tools/call", &echo(&text)), text))
                        .collect();
                    while !open.is_empty() {
                        let answer = client.next_message();
                        let at = open.iter().position(|(id, _)| answer["id"] == *id);
                        let (_, text) = open.swap_remove(at.expect("an answer to an open request"));
                        assert_eq!(echoed(&answer["result"]), text);
                    }
                }
            });
        }
    });
    let made = calls / CONNECTIONS * CONNECTIONS;
    figure(
        "F-56",
        &format!("{made} calls over {CONNECTIONS} connections, each answered to its caller"),
    );
}

#[test]
fn routes_are_absent_without_mcp_and_those_below_v1_without_their_surface() {
    let (_chaos, broker) = chaos_broker(&["--no-mcp"]);
    for target in ["/ws/mcp", "/v1/ws/mcp"] {
        let refused = WebSocketClient::try_connect(broker.address(), target, &[]);
        assert_eq!(refused.expect_err("no route").status, 404, "{target}");
    }
    for route in ["/mcp", "/v1/mcp"] {
        assert_eq!(harness::get(broker.address(), route).status, 404, "{route}");
    }
    let chaos = Chaos::new();
    let args = harness::faults::config_args(&chaos, |config| {
        config["surfaces"] = json!({"v1": false});
    });
    let broker =
        Broker::start_ready(chaos.run("chaos-broker", &args.each_ref().map(String::as_str)));
    let refused = WebSocketClient::try_connect(broker.address(), "/v1/ws/mcp", &[]);
    assert_eq!(refused.expect_err("no route").status, 404);
    WebSocketClient::connect(broker.address(), "/ws/mcp");
    assert_eq!(harness::get(broker.address(), "/v1/mcp").status, 404);
    assert_eq!(
        harness::get(broker.address(), "/mcp").status,
        400,
        "no discovery"
    );
}
