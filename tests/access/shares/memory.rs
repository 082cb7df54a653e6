//! The memory of requests that wait, of many sessions and connections.

use std::net::TcpStream;

use harness::faults::scaled;
use harness::figure::figure;
use harness::{ResourceUsage, raise_file_limit, wait_until};
use serde_json::{Value, json};

use super::Shared;
use super::connections::connect;

/// The usual number of sessions or connections; a larger one has a larger budget.
const USUAL: usize = 160;
/// How far the memory may be above that before, once all is over.
const LEFT_KIB: u64 = 32 << 10;
/// The open requests of a session or connection, and the bytes of their arguments.
const OPEN: usize = 32;
const TEXT_BYTES: usize = 16_000;
/// Open files of this process.
const FILES: u64 = 2_048;

/// The budget of memory of the broker in KiB, and what the process may use beside it and beside what it used before.
fn bounds(count: usize) -> (u64, u64) {
    match count > USUAL {
        true => (64 << 10, 128 << 10),
        false => (16 << 10, 32 << 10),
    }
}

fn shared(count: usize) -> Shared {
    let budget = bounds(count).0 << 10;
    let script = json!({"plain": true, "on_call": {"echo": "hang"}});
    Shared::with(
        &script,
        |config| {
            config["limits"] = json!({"memory_bytes": budget});
            let source = &mut config["tree"][0]["source"];
            source["timeout"] = json!(20);
            source["max_in_flight"] = json!(10_000);
        },
        |run| run,
    )
}

fn resident(shared: &Shared) -> u64 {
    ResourceUsage::measure(shared.stage.broker.pid()).resident
}

fn call() -> Value {
    json!({"name": "a-echo", "arguments": {"text": "x".repeat(TEXT_BYTES)}})
}

/// Asserts the bound of the process, and that it is near its size before once all is over.
fn is_bounded((shared, count): (&Shared, usize), before: u64, what: &str, release: impl FnOnce()) {
    let peak = ResourceUsage::measure(shared.stage.broker.pid()).peak;
    let (budget, beside) = bounds(count);
    let bound = before + budget + beside;
    assert!(peak <= bound, "{what}: {before} KiB to {peak} KiB");
    release();
    wait_until("the memory is returned", || {
        resident(shared) <= before + LEFT_KIB
    });
    figure(
        &format!(
            "shares-memory-{}",
            what.split(' ').next().unwrap_or_default()
        ),
        &format!(
            "{what}: {} MiB before, {} MiB at the peak, {} MiB after",
            before >> 10,
            peak >> 10,
            resident(shared) >> 10
        ),
    );
}

#[test]
fn open_requests_of_many_sessions_stay_within_the_memory() {
    let _machine = harness::whole_machine();
    let count = scaled("MCP_BROKER_MEMORY_SESSIONS", USUAL);
    let shared = shared(count);
    let before = resident(&shared);
    let each = count / 4;
    let (mut open, mut sent) = (Vec::<TcpStream>::new(), 0);
    for caller in &shared.callers {
        for _ in 0..each {
            let session = caller.session("/mcp/direct");
            // The connections are closed: a legacy session works on.
            for number in 0..OPEN {
                open.push(session.begin(&json!(number), "tools/call", &call()));
                sent += 1;
                if open.len() >= 200 {
                    open.clear();
                }
            }
        }
    }
    is_bounded(
        (&shared, count),
        before,
        &format!("sessions: {sent} calls"),
        || drop(open),
    );
}

#[test]
fn open_requests_of_many_websockets_stay_within_the_memory() {
    let _machine = harness::whole_machine();
    let count = scaled("MCP_BROKER_MEMORY_WEBSOCKETS", USUAL);
    raise_file_limit(FILES);
    let shared = shared(count);
    let before = resident(&shared);
    let each = count / 4;
    let mut clients = Vec::new();
    for caller in &shared.callers {
        for _ in 0..each {
            let mut client = connect(caller).expect("a place");
            for _ in 0..OPEN {
                client.request("tools/call", &call());
            }
            clients.push(client);
        }
    }
    let sent = clients.len() * OPEN;
    is_bounded(
        (&shared, count),
        before,
        &format!("websockets: {sent} calls"),
        || drop(clients),
    );
}

#[test]
fn session_has_more_than_32_open_requests() {
    let shared = shared(1);
    let caller = &shared.callers[0];
    let session = caller.session("/mcp/direct");
    let small = json!({"name": "a-echo", "arguments": {"text": "x"}});
    let open: Vec<_> = (100..140)
        .map(|number| session.begin(&json!(number), "tools/call", &small))
        .collect();
    shared.stage.await_journal("a", "call", 32);
    let answer = session.result(
        "tools/call",
        &json!({"name": "b-add", "arguments": {"a": 1, "b": 2}}),
    );
    assert_eq!(answer["isError"], false, "{answer}");
    drop(open);
}
