//! Clients with the same ids in flight.

use std::thread;

use harness::faults::scaled;
use harness::mcp_http::{McpSession, modern};
use serde_json::{Value, json};

use super::{chaos_broker, echo, echoed};

/// Half of the callers use the number, half of them the text.
fn id(caller: usize) -> Value {
    if caller.is_multiple_of(2) {
        json!(1)
    } else {
        json!("1")
    }
}

#[test]
fn clients_with_equal_ids_get_their_own_answers() {
    let (_chaos, broker) = chaos_broker(&[]);
    let each = scaled("MCP_BROKER_EQUAL_IDS", 1_000) / 8;
    thread::scope(|scope| {
        for caller in 0..8 {
            let address = broker.address();
            scope.spawn(move || {
                let session = McpSession::begin(address, "/mcp/direct");
                for call in 0..each {
                    let text = format!("{caller}-{call}");
                    let params = echo(&text);
                    let reply = match call % 2 {
                        0 => session.ask(&id(caller), "tools/call", &params),
                        _ => modern(address, "/mcp/direct", &id(caller), "tools/call", &params),
                    };
                    let value = reply.json();
                    assert_eq!(value["id"], id(caller));
                    assert_eq!(echoed(&value["result"]), text);
                }
            });
        }
    });
}
