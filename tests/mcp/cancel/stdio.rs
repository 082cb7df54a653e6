//! A client over standard input and output that sends `notifications/cancelled`.

use serde_json::{Value, json};

use crate::stdio::client::{Client, quick, slow};

#[test]
fn call_cancelled_by_a_client_is_cancelled_and_not_answered() {
    let mut client = Client::legacy("2025-11-25");
    client.ask(json!(1), "tools/call", slow(9_000));
    client.ask(json!("1"), "tools/call", slow(100));
    let cancel = |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}});
    client.send(&cancel(json!(1)));
    client.send(&cancel(json!("never")));
    client.send(&cancel(Value::Null));
    assert_eq!(
        client.answer(&json!("1"))["result"]["content"][0]["text"],
        "late"
    );
    // The id is free, and a call that reuses it gets its answer.
    let again = client.request(json!(1), "tools/call", quick());
    assert!(again["result"]["structuredContent"].is_object(), "{again}");
    let end = client.end();
    assert_eq!(end.rest, [] as [Value; 0]);
    assert!(!end.stderr.contains("still running"), "{}", end.stderr);
}
