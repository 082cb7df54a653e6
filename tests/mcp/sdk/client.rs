//! The SDK's client against `mcp-broker stdio` on the smoke config, in both eras.

use std::path::Path;
use std::time::Duration;

use harness::{binary, tree_paths};
use oracle_mcp::{CallError, Client, Era};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// Long, since test machines are shared.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn broker(era: Era) -> Client {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let args = ["stdio", "smoke_config.json", "--log-level", "error"];
    let program = binary("mcp-broker");
    let client = Client::start(&program, args, Some(root), era);
    let started = tokio::time::timeout(CALL_TIMEOUT, client).await;
    started.expect("in time").expect("it connects")
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

pub(crate) async fn call(client: &Client, tool: &str, args: Value) -> Result<Value, CallError> {
    let called = tokio::time::timeout(CALL_TIMEOUT, client.call(tool, object(args))).await;
    called.expect("in time")
}

async fn lists_calls_and_fails(era: Era, revision: &str) {
    let client = broker(era).await;
    let server = client.server();
    assert_eq!(server["protocolVersion"], revision);
    assert!(
        server["instructions"]
            .as_str()
            .is_some_and(|text| text.contains("meta_tree"))
    );
    let tools = client.tools().await.expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["meta_tree", "meta_desc", "meta_call"]);

    let tree = call(&client, "meta_tree", json!({}))
        .await
        .expect("a result");
    assert_eq!(tree_paths(&tree), ["/text", "/util"]);
    let args = json!({"path": "/util/hash_text", "args": {"text": "hello", "algorithm": "crc32"}});
    let hashed = call(&client, "meta_call", args).await.expect("a result");
    assert_eq!(hashed["structuredContent"]["digest"], "3610a686");
    let args = json!({"path": "/util/hash_text", "args": {}});
    let mistake = call(&client, "meta_call", args).await.expect("a result");
    assert_eq!(mistake["isError"], true);
    assert!(
        mistake["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("args_invalid"))
    );
    match call(&client, "nope", json!({})).await {
        Err(CallError::Rpc(error)) => assert_eq!(error["code"], -32602),
        other => panic!("{other:?}"),
    }
    client.close().await.expect("it ends");
}

#[tokio::test]
async fn legacy_sdk_client_lists_calls_and_gets_errors() {
    lists_calls_and_fails(Era::Legacy, "2025-11-25").await;
}

#[tokio::test]
async fn modern_sdk_client_lists_calls_and_gets_errors() {
    lists_calls_and_fails(Era::Modern, "2026-07-28").await;
}

#[tokio::test]
async fn sdk_client_that_may_choose_uses_the_modern_era() {
    lists_calls_and_fails(Era::Auto, "2026-07-28").await;
}
