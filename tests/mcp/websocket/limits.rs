//! The limits of a connection, and the codes with which it is closed (RFC 6455, 7.4.1).

use std::io::Write as _;
use std::time::Duration;

use harness::figure::Watch;
use harness::websocket::WebSocketClient;
use harness::{Chaos, ResourceUsage, wait_until};
use serde_json::json;
use tungstenite::Message;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use super::open;
use crate::http::{chaos_broker, echo};

/// Requests that a connection may have open.
const MAX_OPEN: usize = 32;
/// The head of a masked text frame of a length of eight bytes.
const LONG_TEXT: [u8; 2] = [0x81, 0xff];

#[test]
fn frames_that_are_not_messages_close_the_connection_with_their_code() {
    let (_chaos, broker) = chaos_broker(&[]);
    let after = |act: &dyn Fn(&mut WebSocketClient)| {
        let mut client = WebSocketClient::connect(broker.address(), "/ws/mcp");
        act(&mut client);
        client.close_code().0
    };
    let raw = |bytes: Vec<u8>| {
        move |client: &mut WebSocketClient| {
            client
                .socket
                .get_mut()
                .write_all(&bytes)
                .expect("it is open");
        }
    };
    let binary = after(&|client| {
        client
            .socket
            .send(Message::binary(b"{}".to_vec()))
            .expect("it is open");
    });
    assert_eq!(binary, 1003);
    let announced = |bytes: u64| [&LONG_TEXT[..], &bytes.to_be_bytes(), &[0; 4]].concat();
    assert_eq!(after(&raw(announced(17 << 20))), 1009);
    assert_eq!(after(&raw(announced((4 << 20) + 1))), 1009);
    let sent = after(&|client| {
        let text = format!("\"{}\"", "x".repeat(5 << 20));
        // The broker may close before it has read everything.
        let _ = client.socket.send(Message::text(text));
    });
    assert_eq!(sent, 1009);
    let fragments = after(&|client| {
        for number in 0..5 {
            let code = if number == 0 {
                Data::Text
            } else {
                Data::Continue
            };
            let frame = Frame::message(vec![b' '; 1 << 20], OpCode::Data(code), false);
            if client.socket.send(Message::Frame(frame)).is_err() {
                break;
            }
        }
    });
    assert_eq!(fragments, 1009);
    let invalid_utf8 = [0x81, 0x81, 0, 0, 0, 0, 0xff].to_vec();
    assert_eq!(after(&raw(invalid_utf8)), 1007);
    let unmasked = [0x81, 0x01, b'{'].to_vec();
    assert_eq!(after(&raw(unmasked)), 1002);
    let reserved = [0x83, 0x80, 0, 0, 0, 0].to_vec();
    assert_eq!(after(&raw(reserved)), 1002);
    let pings = after(&|client| {
        for _ in 0..50 {
            if client
                .socket
                .send(Message::Ping(Vec::new().into()))
                .is_err()
            {
                break;
            }
        }
    });
    assert_eq!(pings, 1002);
}

#[test]
fn message_of_the_maximum_length_in_fragments_is_answered() {
    let (_chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    let mut client = open(&broker, "/ws/mcp");
    let call = json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": echo(&"x".repeat(3 << 20))});
    let call = call.to_string().into_bytes();
    let parts: Vec<_> = call.chunks(1 << 20).collect();
    for (number, part) in parts.iter().enumerate() {
        let code = if number == 0 {
            Data::Text
        } else {
            Data::Continue
        };
        let is_last = number + 1 == parts.len();
        let frame = Frame::message(part.to_vec(), OpCode::Data(code), is_last);
        client
            .socket
            .send(Message::Frame(frame))
            .expect("it is open");
    }
    assert_eq!(client.next_message()["id"], "long");
}

#[test]
fn request_over_the_limit_of_open_ones_is_refused() {
    let (chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 600_000}}}));
    let mut client = open(&broker, "/ws/mcp");
    for _ in 0..MAX_OPEN {
        client.request("tools/call", &echo("x"));
    }
    chaos.await_events("a", "call", MAX_OPEN);
    let refused = client.result("tools/call", &echo("x"));
    let text = refused["content"][0]["text"].as_str().expect("a text");
    assert!(
        refused["isError"] == true && text.contains("overloaded"),
        "{text}"
    );
    assert_eq!(client.result("ping", &json!({})), json!({}));
}

#[test]
fn client_that_does_not_read_is_closed_and_asked_to_connect_again() {
    let (_chaos, broker) = chaos_broker(&["--mcp-mode", "direct", "--log-level", "debug"]);
    let mut client = open(&broker, "/ws/mcp");
    // Together more than the buffers of the system hold.
    let text = "x".repeat(400_000);
    for _ in 0..MAX_OPEN {
        client.request("tools/call", &echo(&text));
    }
    wait_until("the broker closes", || {
        broker.stderr().contains("reason=SlowReader")
    });
    let (code, reason) = client.close_code();
    assert_eq!(
        (code, reason.as_str()),
        (1013, "messages are not read: connect again")
    );
}

#[test]
fn connections_end_with_the_broker() {
    let (chaos, broker) = chaos_broker(&["--mcp-mode", "direct"]);
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 300}}}));
    let (mut idle, mut calling) = (open(&broker, "/ws/mcp"), open(&broker, "/ws/mcp"));
    let id = calling.request("tools/call", &echo("last"));
    chaos.await_events("a", "call", 1);
    broker.signal("TERM");
    let (code, reason) = idle.close_code();
    assert_eq!(
        (code, reason.as_str()),
        (1001, "the broker is shutting down")
    );
    let answer = calling.next_message();
    assert_eq!(answer["id"], id);
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert_eq!(calling.close_code().0, 1001);
    let (status, _, _) = broker.finish();
    assert!(status.success());
}

#[test]
fn half_messages_of_many_connections_stay_within_the_memory_of_callers() {
    let _machine = harness::whole_machine();
    let chaos = Chaos::new();
    let args = harness::faults::config_args(&chaos, |config| {
        config["limits"]["memory_bytes"] = json!(32 << 20);
    });
    let run = chaos.run("chaos-broker", &args.each_ref().map(String::as_str));
    let broker = harness::Broker::start_ready(run);
    let before = ResourceUsage::measure(broker.pid());
    let mut half = Vec::new();
    for _ in 0..40 {
        let mut client = WebSocketClient::connect(broker.address(), "/ws/mcp");
        let bytes = 4_u64 << 20;
        let head = [&LONG_TEXT[..], &bytes.to_be_bytes(), &[0; 4]].concat();
        let stream = client.socket.get_mut();
        stream.write_all(&head).expect("it is open");
        stream
            .set_write_timeout(Some(Duration::from_secs(5)))
            .expect("a timeout can be set");
        // The broker closes connections for which there is no memory.
        let _ = stream.write_all(&vec![b' '; (4 << 20) - 1]);
        half.push(client);
    }
    let usage = ResourceUsage::measure(broker.pid());
    let grown = usage.resident.saturating_sub(before.resident);
    assert!(grown < 80 << 10, "{grown} KiB of 160 MiB are kept");
    drop(half);
    wait_until("a new connection is served", || {
        let mut client = open(&broker, "/ws/mcp");
        client.result("ping", &json!({})) == json!({})
    });
}

#[test]
fn both_sides_close_at_once() {
    let (_chaos, broker) = chaos_broker(&[]);
    let watch = Watch::start();
    for is_broken in [false, true] {
        let mut client = open(&broker, "/ws/mcp");
        match is_broken {
            false => client.socket.close(None).expect("it can be closed"),
            true => client
                .socket
                .send(Message::Binary(vec![0].into()))
                .expect("it is sent"),
        }
        // A client waits for the server to close the connection (RFC 6455, 7.1.1).
        while client.socket.read().is_ok() {}
    }
    // The broker gives up after 5 s if the other side does not close.
    assert!(
        watch.passed() < Duration::from_secs(4),
        "{:?}",
        watch.passed()
    );
}
