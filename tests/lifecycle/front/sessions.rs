//! Two replicas behind a balancer that knows no sessions: with `mcp.legacy_sessions: "none"` each answers every request.

use harness::faults::FaultFixture;
use harness::mcp_http::{ACCEPT, McpSession};
use harness::{Proxy, Response, Run, access, official_clients, request};
use serde_json::{Value, json};

fn replica(change: impl FnOnce(&mut Value)) -> FaultFixture {
    FaultFixture::with(&json!({}), |config| {
        config["mcp"] = json!({"legacy_sessions": "none", "mode": "direct"});
        change(config);
    })
}

/// HAProxy that sends each request to the next of these brokers, unless `rules` say otherwise.
fn balanced(brokers: [&FaultFixture; 2], rules: &str) -> Proxy {
    let [first, second] = brokers.map(|stage| stage.broker.address());
    let proxy = Proxy::haproxy(&format!(
        "defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n\
         frontend front\n    bind :80\n    default_backend brokers\n\
         backend brokers\n    balance roundrobin\n{rules}    server a {first}\n    server b {second}\n"
    ));
    access::listens(proxy.address());
    proxy
}

fn post(address: &str, route: &str, body: &Value) -> Response {
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", ACCEPT),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    request(
        address,
        "POST",
        route,
        &headers,
        body.to_string().as_bytes(),
    )
}

fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[test]
fn replicas_without_sessions_answer_each_request_of_a_legacy_client() {
    let replicas = [replica(|_| {}), replica(|_| {})];
    let proxy = balanced([&replicas[0], &replicas[1]], "");
    let front = proxy.address();
    for route in ["/mcp", "/mcp/meta", "/mcp/direct", "/v1/mcp"] {
        let begun = post(front, route, &initialize());
        assert_eq!(begun.status, 200, "{}", begun.text());
        assert!(begun.header("mcp-session-id").is_none());
        let capabilities = &begun.json()["result"]["capabilities"];
        // No stream announces changes, and no level outlives a request.
        assert!(
            capabilities["tools"].get("listChanged").is_none(),
            "{capabilities}"
        );
        assert!(capabilities.get("logging").is_none(), "{capabilities}");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(post(front, route, &ready).status, 202);
        for id in 1..5 {
            let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
            let listed = post(front, route, &list).json();
            assert!(listed["result"]["tools"].is_array(), "{listed}");
        }
        let stream = request(front, "GET", route, &[("Accept", "text/event-stream")], b"");
        assert_eq!(stream.status, 405, "{}", stream.text());
    }
    let call = |id: u64| {
        let params = json!({"name": "a-echo", "arguments": {"text": "x"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    for id in 1..5 {
        let answer = post(front, "/mcp/direct", &call(id)).json();
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
    for replica in &replicas {
        assert_eq!(replica.chaos.events("a", "call").len(), 2);
    }
    // A client that still has the session of an earlier broker is served too.
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", ACCEPT),
        ("Mcp-Session-Id", "s1-of-an-earlier-broker"),
    ];
    let body = call(9).to_string();
    let answer = request(front, "POST", "/mcp/direct", &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn official_client_works_with_replicas_without_sessions() {
    let replicas = [replica(|_| {}), replica(|_| {})];
    let proxy = balanced([&replicas[0], &replicas[1]], "");
    let call = json!({"name": "a-echo", "arguments": {"text": "x"}});
    let steps = json!([call, call, call, call]).to_string();
    let url = format!("http://{}/mcp", proxy.address());
    if access::is_on() {
        return;
    }
    let output = Run::new("node".as_ref())
        .args([official_clients().join("typescript_v1.mjs")])
        .args(["legacy", "--steps", &steps, &url])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let seen: Value = serde_json::from_str(&output.stdout).expect("one JSON object");
    for call in seen["calls"].as_array().expect("the calls") {
        assert!(call["content"][0]["text"].is_string(), "{seen}");
    }
}

#[test]
fn list_that_depends_on_searches_keeps_its_session() {
    let stage = replica(|config| {
        config["mcp"]["mode"] = json!("search");
        config["mcp"]["routing"] = json!("DYNAMIC");
    });
    let address = stage.broker.address();
    assert!(McpSession::try_begin(address, "/mcp").is_ok());
    assert!(McpSession::try_begin(address, "/mcp/direct").is_err());
}

#[test]
fn legacy_client_has_a_session_by_default() {
    let stage = FaultFixture::new(&json!({}));
    let address = stage.broker.address();
    let session = McpSession::begin(address, "/mcp/direct");
    assert!(session.result("tools/list", &json!({}))["tools"].is_array());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(post(address, "/mcp/direct", &list).status, 400);
}

#[test]
fn balancer_with_affinity_sends_the_requests_of_a_session_to_its_broker() {
    let replicas = [(), ()].map(|()| FaultFixture::new(&json!({})));
    // As the page says.
    let rules = "    stick-table type string len 64 size 100k expire 30m\n\
                 \u{20}   stick on req.hdr(Mcp-Session-Id)\n\
                 \u{20}   stick store-response res.hdr(Mcp-Session-Id)\n";
    let proxy = balanced([&replicas[0], &replicas[1]], rules);
    let sessions = [(), ()].map(|()| McpSession::begin(proxy.address(), "/mcp/direct"));
    for session in &sessions {
        for _ in 0..4 {
            assert!(session.result("tools/list", &json!({}))["tools"].is_array());
        }
    }
}
