//! Log messages of a server that name no call.

use serde_json::json;

use super::Shared;
use crate::caller::Caller;

/// The number of log messages that a caller gets with the answer to a call.
fn logged(caller: &Caller) -> usize {
    let params = json!({
        "name": "a-echo",
        "arguments": {"text": "x"},
        "_meta": {"io.modelcontextprotocol/logLevel": "debug"},
    });
    let reply = caller.modern("/mcp/direct", "tools/call", &params);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text().matches("notifications/message").count()
}

#[test]
fn log_message_goes_to_no_caller_after_another_one_used_the_process() {
    let script = json!({
        "plain": true,
        "era": "legacy",
        "capabilities": {"tools": {}, "logging": {}},
        "on_call": {"echo": {"log": [{"level": "info", "data": "of this call"}]}},
    });
    let shared = Shared::new(&script);
    let [ada, bob, ..] = &shared.callers;
    assert_eq!(logged(ada), 1, "she uses the process alone");
    assert_eq!(logged(ada), 1);
    assert_eq!(logged(bob), 0, "it may be about a call of ada");
    assert_eq!(logged(ada), 0, "it may be about the call of bob");
}
