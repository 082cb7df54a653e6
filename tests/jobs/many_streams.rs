//! Many streams of jobs, and streams whose readers are slow: they are bounded, and other callers are served.

use std::io::Read as _;
use std::net::TcpStream;

use harness::mcp_http::without_chunks;
use harness::websocket::WebSocketClient;
use harness::{Broker, ResourceUsage, read, send, wait_until};
use serde_json::{Value, json};

use crate::stage::{Caller, KEYS, bench, serve};

/// The streams that one identity tries to open.
const STREAMS: usize = 1_000;
/// The streams of jobs that a caller may have.
const MAX_STREAMS: usize = 100;
/// The maximum growth of the broker's memory, in KiB.
const MAX_GROWTH: u64 = 56 << 10;
/// The log messages of a tool in a second, the seconds, and the bytes of each that are kept.
const MESSAGES: usize = 45;
const SECONDS: usize = 6;
const MESSAGE_BYTES: usize = 4_000;

fn identities() -> Value {
    let keys = KEYS
        .iter()
        .map(|(name, _, digest)| json!({"name": name, "sha256": digest, "groups": []}));
    json!({"identities": {"keys": keys.collect::<Vec<_>>()}})
}

fn caller(broker: &Broker, at: usize) -> Caller<'_> {
    Caller {
        broker,
        key: Some(KEYS[at].1),
    }
}

/// Sends the request for a stream of events, and leaves the connection open.
fn open(caller: Caller<'_>, id: &str) -> TcpStream {
    let (address, key) = (caller.broker.address(), caller.key.expect("a key"));
    let head =
        format!("GET /jobs/{id}/events HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n\r\n");
    send(address, head.as_bytes())
}

/// Returns the first line of a reply.
fn status_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).expect("a reply comes");
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("text")
}

#[test]
fn thousand_streams_of_one_identity_are_bounded_and_another_one_is_served() {
    harness::raise_file_limit(4_096);
    let bench = bench(&json!({}), &identities());
    let broker = serve(&bench);
    let (one, two) = (caller(&broker, 0), caller(&broker, 1));
    let id = one.make("long", json!({"n": 1}));
    let other = two.make("long", json!({"n": 2}));
    one.wait(&id, &["running"]);
    let before = ResourceUsage::measure(broker.pid()).resident;
    let mut opened = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = open(one, &id);
        match status_line(&mut stream).as_str() {
            "HTTP/1.1 200 OK\r\n" => opened.push(stream),
            refused => assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}"),
        }
    }
    assert_eq!(opened.len(), MAX_STREAMS);
    let refused = one.get(&format!("/jobs/{id}/events"));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "overloaded")
    );
    assert!(refused.header("retry-after").is_some());
    // WebSockets and ticks count as well.
    let key = [("X-API-Key", KEYS[0].1)];
    let socket = WebSocketClient::try_connect(broker.address(), &format!("/ws/jobs/{id}"), &key);
    assert_eq!(socket.expect_err("it is refused").status, 429);
    assert_eq!(one.get(&format!("/v1/mcp/progress/{id}")).status, 429);
    // Other requests of the caller, and streams of another one, are served.
    assert_eq!(one.job(&id)["status"], "running");
    let mut stream = open(two, &other);
    assert_eq!(status_line(&mut stream), "HTTP/1.1 200 OK\r\n");
    let grown = ResourceUsage::measure(broker.pid()).resident - before;
    assert!(grown < MAX_GROWTH, "{grown} KiB");
    // A place is free again once a stream has ended.
    drop(opened.pop());
    wait_until("a place is free", || {
        let mut stream = open(one, &id);
        let is_served = status_line(&mut stream).starts_with("HTTP/1.1 200 ");
        if is_served {
            opened.push(stream);
        }
        is_served
    });
}

#[test]
fn streams_that_are_not_read_hold_little_memory_and_miss_no_event() {
    harness::raise_file_limit(4_096);
    let bench = bench(&json!({}), &identities());
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    let text = "x".repeat(MESSAGE_BYTES);
    let messages = vec![json!({"level": "info", "data": text}); MESSAGES];
    let mut play = json!({"delay_ms": 100});
    for _ in 0..SECONDS {
        play = json!({"log": messages, "then": {"delay_ms": 1_100, "then": play}});
    }
    script["on_call"]["steps"] = play;
    bench.script("a", &script);
    let broker = serve(&bench);
    let one = caller(&broker, 0);
    let id = one.make("steps", json!({"n": 1}));
    assert_eq!(one.end(&id)["status"], "succeeded");
    let whole = one.get(&format!("/jobs/{id}/events"));
    let names = without_chunks(&whole.body).replace("xxxx", "");
    let whole = whole.body.len();
    assert!(
        whole > SECONDS * MESSAGES * MESSAGE_BYTES / 2,
        "{whole} bytes of events: {names}"
    );
    let before = ResourceUsage::measure(broker.pid()).resident;
    // Without a bound the broker would hold 100 MB.
    let mut streams: Vec<_> = (0..MAX_STREAMS / 2).map(|_| open(one, &id)).collect();
    let key = [("X-API-Key", KEYS[0].1)];
    let target = format!("/ws/jobs/{id}");
    let connect = || WebSocketClient::try_connect(broker.address(), &target, &key);
    let mut sockets: Vec<_> = (0..MAX_STREAMS / 2)
        .map(|_| connect().expect("it is upgraded"))
        .collect();
    for stream in &mut streams {
        assert_eq!(status_line(stream), "HTTP/1.1 200 OK\r\n");
    }
    // Others are served meanwhile.
    let two = caller(&broker, 1);
    let made = two.make("quick", json!({"n": 2}));
    two.end(&made);
    let grown = ResourceUsage::measure(broker.pid())
        .resident
        .saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{grown} KiB");
    // A reader that begins late gets everything.
    let mut socket = sockets.pop().expect("a connection");
    let mut bytes = 0;
    loop {
        match socket.socket.read().expect("it is closed with a code") {
            tungstenite::Message::Text(text) => bytes += text.len(),
            tungstenite::Message::Close(frame) => {
                assert_eq!(u16::from(frame.expect("a code").code), 1000);
                break;
            }
            _ => {}
        }
    }
    assert!(
        bytes > SECONDS * MESSAGES * MESSAGE_BYTES / 2,
        "{bytes} bytes of frames"
    );
    drop(streams);
    let late = read(open_and_close(one, &id));
    assert_eq!(late.body.len(), whole);
}

/// Sends the request for a stream whose connection ends with it.
fn open_and_close(caller: Caller<'_>, id: &str) -> TcpStream {
    let (address, key) = (caller.broker.address(), caller.key.expect("a key"));
    let head = format!(
        "GET /jobs/{id}/events HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n"
    );
    send(address, head.as_bytes())
}
