//! MCP clients over HTTP that do not read their replies, or begin sessions without end: other callers are
//! served, and the memory is released.

use std::io::Read as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::callers::drain;
use harness::faults::{ECHO, FaultFixture, scaled};
use harness::figure::{Watch, figure, shown};
use harness::mcp_http::{self, ACCEPT, McpSession, send_modern_accepting};
use harness::{KeepAlive, ResourceUsage, Tally, wait_until};
use serde_json::{Value, json};

const ROUTE: &str = "/mcp/direct";
/// Bytes of a result, far more than the buffers of the system.
const RESULT_BYTES: usize = 8 << 20;
/// Memory that the broker may use for each unread result of this size, in KiB.
const MAX_GROWTH: u64 = 32 << 10;

/// The params of a call of `/a/echo`, with the token of its progress.
fn echo(token: &str) -> Value {
    json!({"name": "a-echo", "arguments": {"text": "x"}, "_meta": {"progressToken": token}})
}

fn sessions(stage: &FaultFixture) -> u64 {
    let count = stage.broker.get("/sources").json()["mcp_sessions"].as_u64();
    count.expect("the sessions are counted")
}

/// Another call of the session has its result.
fn is_served(session: &McpSession, id: &str) {
    let sum = json!({"name": "a-add", "arguments": {"a": 1, "b": 2}});
    let reply = session.ask(&json!(id), "tools/call", &sum);
    assert_eq!(reply.json()["result"]["isError"], false, "{}", reply.text());
}

/// Clients of both eras that ask for the result as JSON, as a stream, and as a stream that begins with a
/// notification. None reads more than the first bytes.
fn unread(stage: &FaultFixture, session: &McpSession) -> Vec<(String, TcpStream)> {
    let address = stage.broker.address();
    let forms = ["application/json", "text/event-stream", ACCEPT];
    let mut clients = Vec::new();
    for (at, accept) in forms.into_iter().enumerate() {
        let params = echo(&at.to_string());
        let call = json!({"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params});
        let legacy = session.post(&call.to_string(), accept);
        let id = json!(1);
        let request = (&id, "tools/call", &params);
        let modern = send_modern_accepting(address, ROUTE, accept, request);
        clients.push((format!("legacy, {accept}"), legacy));
        clients.push((format!("modern, {accept}"), modern));
    }
    for (name, client) in &mut clients {
        client
            .read_exact(&mut [0])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    clients
}

#[test]
fn mcp_clients_that_do_not_read_are_dropped_and_delay_no_other() {
    let script = json!({"on_call": {"echo": {
        "progress": [{"progress": 1}],
        "then": {"big": RESULT_BYTES},
    }}});
    let stage = FaultFixture::with(&script, |config| {
        config["limits"]["line_bytes"] = json!(16 << 20);
    });
    let session = McpSession::begin(stage.broker.address(), ROUTE);
    let watch = Watch::start();
    let mut clients = unread(&stage, &session);
    thread::scope(|scope| {
        for caller in 0..4 {
            let (stage, session) = (&stage, &session);
            scope.spawn(move || {
                for call in 0..25 {
                    stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
                    is_served(session, &format!("{caller}-{call}"));
                }
            });
        }
    });
    let peak = ResourceUsage::measure(stage.broker.pid()).peak;
    let grown = peak.saturating_sub(stage.before.resident);
    let most = clients.len() as u64 * MAX_GROWTH;
    assert!(grown <= most, "{grown} KiB for {} results", clients.len());
    wait_until("the connections are given up", || {
        ResourceUsage::measure(stage.broker.pid()).files <= stage.before.files
    });
    let took = watch.passed();
    for (name, client) in &mut clients {
        let read = drain(client, Duration::from_secs(10));
        assert!(
            read < RESULT_BYTES as u64,
            "{name}: {read} bytes were sent to a client that did not read"
        );
    }
    assert_eq!(session.ask(&json!("p"), "ping", &json!({})).status, 200);
    figure(
        "F-35-mcp",
        &format!(
            "{} MCP clients dropped after {}; {} MiB more at the peak for results of 8 MiB",
            clients.len(),
            shown(took),
            grown >> 10
        ),
    );
    stage.is_as_before();
}

/// Begins sessions over one connection until `done`; returns their number.
fn begin_sessions(address: &str, each: usize, done: &AtomicBool) -> usize {
    let mut kept = KeepAlive::open(address);
    let message = serde_json::from_str(&mcp_http::initialize("2025-11-25")).expect("it is JSON");
    let mut begun = 0;
    while begun < each || !done.load(Ordering::Relaxed) {
        let reply = kept.post(ROUTE, &message).expect("the connection is kept");
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.header("mcp-session-id").is_some());
        begun += 1;
    }
    begun
}

#[test]
fn flood_of_initialize_affects_no_caller_and_no_session_in_use() {
    let _machine = harness::whole_machine();
    let stage = FaultFixture::with(
        &json!({"on_call": {"slow": {"delay_ms": 600_000}}}),
        |config| {
            config["mcp"] = json!({"session_idle": 1});
            config["tree"][0]["source"]["tool_overrides"]["slow"]["timeout"] = json!(600);
        },
    );
    let address = stage.broker.address();
    let calling = McpSession::begin(address, ROUTE);
    let slow = json!({"name": "a-slow", "arguments": {"ms": 1}});
    let call = calling.send(&json!("slow"), "tools/call", &slow);
    let streaming = McpSession::begin(address, ROUTE);
    let stream = streaming.stream();
    stage.chaos.await_events("a", "call", 1);

    // Four times as many as one owner may have.
    let each = scaled("MCP_BROKER_BEGUN_SESSIONS", 4_000) / 4;
    let done = AtomicBool::new(false);
    let watch = Watch::start();
    let (begun, tally, most) = thread::scope(|scope| {
        let flood: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| begin_sessions(address, each, &done)))
            .collect();
        let tally = Tally::flood(address, 2, 50, ECHO);
        let mut most = 0;
        while flood.iter().any(|thread| !thread.is_finished()) {
            is_served(&calling, "sum");
            is_served(&streaming, "sum");
            most = most.max(sessions(&stage));
            done.store(true, Ordering::Relaxed);
        }
        let begun = flood
            .into_iter()
            .map(|thread| thread.join().expect("it ends"));
        (begun.sum::<usize>(), tally, most)
    });
    let took = watch.passed();
    tally.is_clean();
    assert_eq!(tally.answered(), 100, "{:?}", tally.codes());
    assert!(most <= 1_000, "{most} sessions of one owner");
    assert_eq!(stage.chaos.events("a", "cancelled").len(), 0);
    wait_until("only the sessions in use are left", || {
        sessions(&stage) == 2
    });
    let after = ResourceUsage::measure(stage.broker.pid()).resident;
    let grown = after.saturating_sub(stage.before.resident);
    assert!(grown <= 16 << 10, "{grown} KiB are kept after the flood");
    figure(
        "F-39-flood",
        &format!(
            "{begun} sessions begun within {}, at most {most} at one time; calls of others answered, {grown} KiB kept",
            shown(took)
        ),
    );
    for session in [&calling, &streaming] {
        assert_eq!(session.bare("DELETE", "*/*").status, 204);
    }
    drop((call, stream));
    assert_eq!(sessions(&stage), 0);
    stage.is_as_before();
}
