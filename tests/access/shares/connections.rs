//! The places of connections: idle streams of the caller with the most are closed for another caller.

use std::time::Duration;

use harness::websocket::WebSocketClient;
use harness::{Response, wait_until};
use serde_json::json;
use tungstenite::Message;

use super::Shared;
use crate::caller::Caller;

/// The open files of the broker, and the places for connections that follow.
const FILES: usize = 256;
const PLACES: usize = 180;

fn shared() -> Shared {
    let limit = format!("ulimit -n {FILES}; exec \"$0\" \"$@\"");
    Shared::with(
        &json!({"plain": true}),
        |_| {},
        |run| run.through("/bin/sh", &["-c", &limit]),
    )
}

/// A session over WebSocket, or the refusal of its connection.
pub(super) fn connect(caller: &Caller) -> Result<WebSocketClient, Response> {
    let key = &caller.credential[0];
    let headers = [(key.0.as_str(), key.1.as_str())];
    let mut client = WebSocketClient::try_connect(&caller.address, "/ws/mcp", &headers)?;
    client.result(
        "initialize",
        &json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    Ok(client)
}

/// The code with which a connection was closed, if it was; does not wait.
fn closed(client: &mut WebSocketClient) -> Option<u16> {
    client
        .socket
        .get_ref()
        .set_nonblocking(true)
        .expect("it can be asked");
    let read = client.socket.read();
    client
        .socket
        .get_ref()
        .set_nonblocking(false)
        .expect("it can be asked");
    match read {
        Ok(Message::Close(Some(frame))) => Some(frame.code.into()),
        _ => None,
    }
}

#[test]
fn idle_streams_of_one_caller_give_places_to_another() {
    let shared = shared();
    let [ada, bob, ..] = &shared.callers;
    let mut streams = Vec::new();
    let refusal = loop {
        match connect(ada) {
            Ok(client) => streams.push(client),
            Err(refusal) => break refusal,
        }
        assert!(streams.len() < 2 * PLACES, "there is a bound");
    };
    assert_eq!(refusal.status, 429, "{}", refusal.text());
    let reserve = PLACES / 8;
    assert!(
        (PLACES - reserve - 2..=PLACES - reserve + 1).contains(&streams.len()),
        "all but the reserve: {}",
        streams.len()
    );
    // Another caller is served at once, and gets places.
    assert_eq!(bob.call("/a/add", &json!({"a": 1, "b": 2})).status, 200);
    let mut open: Vec<_> = streams.iter_mut().map(|_| true).collect();
    wait_until("the oldest streams are closed", || {
        for (client, is_open) in streams.iter_mut().zip(&mut open) {
            if *is_open && let Some(code) = closed(client) {
                assert_eq!(code, 1013, "try again later");
                *is_open = false;
            }
        }
        open.iter().filter(|is_open| **is_open).count() <= PLACES / 4
    });
    let kept = open.iter().filter(|is_open| **is_open).count();
    assert!(kept + 2 >= PLACES / 4, "{kept} are kept");
    let first_open = open
        .iter()
        .position(|is_open| *is_open)
        .expect("some are kept");
    assert!(
        open[first_open..].iter().all(|is_open| *is_open),
        "the newest are kept"
    );
    let last = streams.last_mut().expect("some are kept");
    assert_eq!(last.answer("ping", &json!({}))["result"], json!({}));
    let of_bob: Vec<_> = (0..PLACES / 4).map(|_| connect(bob).is_ok()).collect();
    assert!(of_bob.iter().all(|is_open| *is_open));
}

#[test]
fn stream_with_an_open_request_is_not_closed_for_another_caller() {
    let shared = shared();
    shared
        .stage
        .bench
        .script("a", &json!({"plain": true, "on_call": {"echo": "hang"}}));
    let [ada, bob, ..] = &shared.callers;
    let mut busy = connect(ada).expect("a place");
    busy.request(
        "tools/call",
        &json!({"name": "a-echo", "arguments": {"text": "x"}}),
    );
    shared.stage.await_journal("a", "call", 1);
    let mut idle: Vec<_> = std::iter::from_fn(|| connect(ada).ok()).collect();
    assert_eq!(bob.call("/a/add", &json!({"a": 1, "b": 2})).status, 200);
    wait_until("an idle one is closed", || closed(&mut idle[0]).is_some());
    let sum = json!({"name": "b-add", "arguments": {"a": 1, "b": 2}});
    assert_eq!(busy.answer("tools/call", &sum)["result"]["isError"], false);
}

#[test]
fn websocket_whose_client_answers_no_ping_ends() {
    let shared = shared();
    let mut silent = connect(&shared.callers[0]).expect("a place");
    // A client that reads the raw stream answers nothing.
    let stream = silent.socket.get_mut();
    let longest = Some(Duration::from_secs(150));
    stream.set_read_timeout(longest).expect("it can be set");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(stream, &mut bytes).expect("the broker closes");
    let pings = bytes.windows(2).filter(|frame| *frame == [0x89, 0]).count();
    assert_eq!(pings, 2, "{bytes:?}");
}

#[test]
fn children_have_the_limit_of_files_that_the_broker_was_started_with() {
    let limits = |pid: u64| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let mut words = line.expect("there is a limit").split_whitespace();
        words.next().map(str::to_owned).expect("a soft limit")
    };
    let shared = Shared::with(
        &json!({"plain": true}),
        |_| {},
        |run| run.through("/bin/sh", &["-c", "ulimit -Sn 300; exec \"$0\" \"$@\""]),
    );
    let broker = shared.stage.broker.pid();
    let of_broker: u64 = limits(broker.into()).parse().expect("a number");
    assert!(of_broker > 300, "{of_broker}");
    let started = shared.stage.journal("a", "start");
    let pid = started.last().and_then(|start| start["pid"].as_u64());
    assert_eq!(limits(pid.expect("a process")), "300");
}
