//! The SDK's client against `mcp-broker` on the smoke config, over standard input and output and over HTTP, in both eras.

use std::path::Path;
use std::time::Duration;

use harness::{Broker, Run, binary, json_text, tree_paths};
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

/// A client of a broker over HTTP, on the route of a mode.
pub(crate) async fn connected(broker: &Broker, route: &str, era: Era) -> Client {
    let url = format!("http://{}{route}", broker.address());
    let client = tokio::time::timeout(CALL_TIMEOUT, Client::connect(&url, era)).await;
    client.expect("in time").expect("it connects")
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

/// Prints the version of the SDK with the revision that it negotiated, which must be this one.
#[expect(
    clippy::print_stdout,
    reason = "the test runner shows what a test prints beside its outcome"
)]
fn speaks(client: &Client, transport: &str, revision: &str) {
    let server = client.server();
    println!(
        "rmcp {} over {transport}: {}",
        Client::sdk_version(),
        server["protocolVersion"]
    );
    assert_eq!(server["protocolVersion"], revision);
}

async fn unknown_tool_is_an_error(client: &Client) {
    match call(client, "nope", json!({})).await {
        Err(CallError::Rpc(error)) => assert_eq!(error["code"], -32602),
        other => panic!("{other:?}"),
    }
}

async fn lists_calls_and_fails(client: Client) {
    let server = client.server();
    let instructions = server["instructions"].as_str();
    assert!(instructions.is_some_and(|text| text.contains("meta_tree")));
    let tools = client.tools().await.expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["meta_tree", "meta_desc", "meta_call"]);

    let tree = call(&client, "meta_tree", json!({}))
        .await
        .expect("a result");
    assert_eq!(tree_paths(&tree), ["/text", "/util"]);
    let described = call(&client, "meta_desc", json!({"path": "/util/hash_text"}))
        .await
        .expect("a result");
    let described = json_text(&described);
    assert_eq!(described["args_schema"]["required"], json!(["text"]));
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
    unknown_tool_is_an_error(&client).await;
    client.close().await.expect("it ends");
}

/// On a route with every tool under its flat name.
async fn lists_and_calls_directly(client: Client) {
    let tools = client.tools().await.expect("a list");
    assert!(tools.iter().any(|tool| tool["name"] == "util-hash_text"));
    let args = json!({"text": "hello", "algorithm": "crc32"});
    let hashed = call(&client, "util-hash_text", args).await;
    let hashed = hashed.expect("a result");
    assert_eq!(hashed["structuredContent"]["digest"], "3610a686");
    let mistake = call(&client, "util-hash_text", json!({})).await;
    assert_eq!(mistake.expect("a result")["isError"], true);
    unknown_tool_is_an_error(&client).await;
    client.close().await.expect("it ends");
}

async fn works_over_both_transports(era: Era, revision: &str) {
    let client = broker(era).await;
    speaks(&client, "stdio", revision);
    lists_calls_and_fails(client).await;

    let run = Run::new(&binary("mcp-broker")).folder(Path::new(env!("CARGO_MANIFEST_DIR")));
    let broker = Broker::start_ready(run.args(["127.0.0.1:0", "smoke_config.json"]));
    let client = connected(&broker, "/mcp", era).await;
    speaks(&client, "HTTP", revision);
    lists_calls_and_fails(client).await;
    let client = connected(&broker, "/v1/mcp", era).await;
    speaks(&client, "HTTP, `/v1/mcp`", revision);
    lists_and_calls_directly(client).await;
}

#[tokio::test]
async fn legacy_sdk_client_lists_calls_and_gets_errors() {
    works_over_both_transports(Era::Legacy, "2025-11-25").await;
}

#[tokio::test]
async fn modern_sdk_client_lists_calls_and_gets_errors() {
    works_over_both_transports(Era::Modern, "2026-07-28").await;
}

#[tokio::test]
async fn sdk_client_that_may_choose_uses_the_modern_era() {
    works_over_both_transports(Era::Auto, "2026-07-28").await;
}
