//! Opens a broker whose sources are served by tasks of this program instead of processes. The tasks list the reviewed
//! tools without `time_now`, so that this tool is withdrawn. Run it with `cargo run --example in_process`.

use std::error::Error;
use std::io::Write as _;

use mcp_broker::core::{LinkFactory, Pipes, ServerTask};
use mcp_broker::typed::{Broker, CallError, Options, StartMode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

mcp_broker::include_catalog!();
mcp_broker::include_tools!();

use tools::util::{hash_text, time_now};

const LOCK: &str = include_str!("../smoke_config.lock.json");

/// Serves a source until the broker closes the stream; returns the exit code.
async fn serve(locked: Value, pipes: Pipes) -> i32 {
    let (mut lines, mut output) = (BufReader::new(pipes.input).lines(), pipes.output);
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap_or_default();
        // A notification has no id and gets no answer.
        let Some(id) = request.get("id") else {
            continue;
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        match request["method"].as_str() {
            Some("initialize") => {
                answer["result"] = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": locked["server_info"],
                    "instructions": text(&locked["instructions"]),
                });
            }
            Some("tools/list") => answer["result"] = json!({"tools": tools_of(&locked)}),
            Some("tools/call") => {
                let bytes = request["params"]["arguments"]["text"]
                    .as_str()
                    .map(str::len);
                let output = json!({"algorithm": "sha256", "digest": "00", "bytes": bytes});
                answer["result"] = json!({"content": [], "structuredContent": output});
            }
            _ => answer["error"] = json!({"code": -32601, "message": "unknown method"}),
        }
        if output
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
    0
}

/// Returns the reviewed tools that the server has.
fn tools_of(locked: &Value) -> Vec<Value> {
    let tools = locked["exposed"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| {
        let mut raw = tool["raw"].clone();
        raw["description"] = text(&raw["description"]);
        raw
    });
    tools.filter(|tool| tool["name"] != "time_now").collect()
}

/// Returns a text of the lock, which has a string for each line.
fn text(lines: &Value) -> Value {
    let lines = lines.as_array().into_iter().flatten();
    let lines: Vec<_> = lines.filter_map(Value::as_str).collect();
    lines.join("\n").into()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let lock: Value = serde_json::from_str(LOCK)?;
    let links = LinkFactory::new(move |source| {
        let mut sources = lock["sources"].as_array()?.iter();
        let locked = sources.find(|locked| locked["path"] == source)?.clone();
        let task: ServerTask = Box::new(|pipes| Box::pin(serve(locked, pipes)));
        Some(task)
    });
    let options = Options::new().mode(StartMode::Tolerant).link_factory(links);
    let broker = Broker::open(&CATALOG, options).await?;
    let args = hash_text::Args {
        text: "hello".to_owned(),
        algorithm: None,
    };
    let called = broker.call::<hash_text::Tool>(args).await?;
    let refused = broker.call::<time_now::Tool>(time_now::Args {}).await;
    broker.close().await;

    let mut out = std::io::stdout().lock();
    writeln!(out, "hash: {} bytes", called.output.bytes)?;
    if let Err(CallError::Failed(error)) = refused {
        writeln!(out, "time: {}", error.code)?;
    }
    Ok(())
}
