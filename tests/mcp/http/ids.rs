//! Clients with the same ids in flight.

use std::thread;

use harness::figure::{Watch, figure, shown};
use harness::mcp_http::{McpSession, modern};
use harness::{Broker, Chaos, faults::scaled};
use serde_json::{Value, json};

use crate::events::stdio;

use super::{chaos_broker, echo, echoed};

const CLIENTS: usize = 8;
const ROUTE: &str = "/mcp/direct";

/// Half of the clients use the number, half of them the text.
fn id(client: usize) -> Value {
    if client.is_multiple_of(2) {
        json!(1)
    } else {
        json!("1")
    }
}

/// Eight clients at one time call `/a/echo` again and again, each call with the same id and another text. The
/// function makes the calls of one client: it takes the id and the params, and returns the message of the
/// answer. Returns the number of all calls.
fn call_with_equal_ids<C: FnMut(&Value, &Value) -> Value>(
    client: impl Fn(usize) -> C + Sync,
) -> usize {
    let each = scaled("MCP_BROKER_EQUAL_IDS", 1_000) / CLIENTS;
    let client = &client;
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let mut ask = client(number);
                for call in 0..each {
                    let text = format!("{number}-{call}");
                    let answer = ask(&id(number), &echo(&text));
                    assert_eq!(answer["id"], id(number));
                    assert_eq!(echoed(&answer["result"]), text);
                }
            });
        }
    });
    each * CLIENTS
}

/// Calls in legacy sessions and as modern requests; each kind with its number and its time.
fn over_http(broker: &Broker) -> String {
    let address = broker.address();
    let watch = Watch::start();
    let legacy = call_with_equal_ids(|_| {
        let session = McpSession::begin(address, ROUTE);
        move |id, params| session.ask(id, "tools/call", params).json()
    });
    let legacy_time = shown(watch.passed());
    let watch = Watch::start();
    let own = call_with_equal_ids(|_| {
        |id: &Value, params: &Value| modern(address, ROUTE, id, "tools/call", params).json()
    });
    let own_time = shown(watch.passed());
    format!("{legacy} calls in sessions within {legacy_time}, {own} modern within {own_time}")
}

#[test]
fn clients_with_equal_ids_get_their_own_answers() {
    let (_chaos, broker) = chaos_broker(&[]);
    let calls = over_http(&broker);
    figure(
        "F-22-http",
        &format!("{CLIENTS} clients with equal ids: {calls}, none crossed"),
    );
}

#[test]
fn stdio_clients_with_equal_ids_get_their_own_answers() {
    let watch = Watch::start();
    let calls = call_with_equal_ids(|_| {
        let chaos = Chaos::new();
        let mut client = stdio(&chaos, &json!({}), &["--mcp-mode", "direct"]);
        move |id, params| {
            // The folder of its servers is kept as long as the client.
            let _kept = &chaos;
            client.request(id.clone(), "tools/call", params.clone())
        }
    });
    let took = shown(watch.passed());
    figure(
        "F-22-stdio",
        &format!(
            "{CLIENTS} clients over stdio with equal ids: {calls} calls within {took}, none crossed"
        ),
    );
}
