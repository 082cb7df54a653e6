//! Idempotency keys of calls over MCP.

use serde_json::{Value, json};

use crate::front::{Front, Session, id};
use crate::owners::identities;
use crate::stage::{KEYS, executed, serve};
use crate::tasks_modern::tasks_bench;

const KEY: &str = "dev.mcp-broker/idempotency-key";
const REPLAYED: &str = "dev.mcp-broker/replayed";

fn call(tool: &str, n: i64, key: &Value) -> Value {
    let name = format!("a-{tool}");
    json!({"name": name, "arguments": {"n": n}, "_meta": {KEY: key}})
}

#[test]
fn repeated_call_with_a_key_is_the_same_job_or_result() {
    let bench = tasks_bench(&identities());
    let broker = serve(&bench);
    let front = Front::of(&broker).with_key(KEYS[0].1);
    let session = front.session();
    let params = call("quick", 1, &json!("order-1"));
    let first = session.result("tools/call", &params);
    assert!(first["_meta"].get(REPLAYED).is_none(), "{first}");
    let again = session.result("tools/call", &params);
    assert_eq!(again["_meta"][REPLAYED], true, "{again}");
    assert_eq!(again["content"], first["content"]);
    // The body of `meta_call` names the same path, so that it is the same call.
    let (meta, _) = front.begin("/mcp", "2025-11-25");
    let body = json!({"path": "/a/quick", "args": {"n": 1}});
    let params = json!({"name": "meta_call", "arguments": body, "_meta": {KEY: "order-1"}});
    assert_eq!(meta.result("tools/call", &params)["_meta"][REPLAYED], true);
    let other = session.result("tools/call", &call("quick", 2, &json!("order-1")));
    assert_eq!(other["isError"], true);
    assert!(text(&other).contains("idempotency_mismatch"), "{other}");
    assert_eq!(executed(&bench, "quick"), [1]);
    // The server does not get the key.
    let calls = bench.journal("a", "call");
    assert!(
        calls
            .iter()
            .all(|call| !call["meta"].to_string().contains("order-1")),
        "{calls:?}"
    );
}

#[test]
fn repeated_task_with_a_key_is_the_same_task_in_both_eras() {
    let bench = tasks_bench(&identities());
    let broker = serve(&bench);
    let front = Front::of(&broker).with_key(KEYS[0].1);
    let session = front.session();
    let mut params = call("long", 1, &json!("order-2"));
    params["task"] = json!({});
    let first = session.result("tools/call", &params);
    let again = session.result("tools/call", &params);
    assert_eq!(again["_meta"][REPLAYED], true, "{again}");
    assert_eq!(again["task"]["taskId"], first["task"]["taskId"]);
    let modern = front.result("tools/call", &params);
    assert_eq!(modern["resultType"], "task", "{modern}");
    assert_eq!(modern["taskId"], first["task"]["taskId"]);
    assert_eq!(modern["_meta"][REPLAYED], true);
    front.result("tasks/cancel", &json!({"taskId": id(&modern)}));
}

#[test]
fn key_needs_a_credential_a_store_and_visible_characters() {
    let with_store = tasks_bench(&json!({}));
    let without_store = crate::stage::bench(&json!({}), &identities());
    let without_jobs = crate::stage::bench(&Value::Null, &identities());
    for (bench, key) in [
        (with_store, None),
        (without_store, Some(KEYS[0].1)),
        (without_jobs, Some(KEYS[0].1)),
    ] {
        let broker = serve(&bench);
        let session = Front {
            broker: &broker,
            key,
            has_tasks: true,
        }
        .session();
        let refused = session.result("tools/call", &call("quick", 1, &json!("k")));
        assert!(text(&refused).contains("not_durable"), "{refused}");
        assert!(executed(&bench, "quick").is_empty());
        wrong_keys(&session);
    }
}

fn wrong_keys(session: &Session<'_>) {
    for key in [
        json!(""),
        json!("a b"),
        json!("é"),
        json!(5),
        json!({}),
        json!("x".repeat(256)),
    ] {
        let error = session.error("tools/call", &call("quick", 1, &key));
        assert_eq!(error["code"], -32602, "{key}");
    }
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].to_string()
}
