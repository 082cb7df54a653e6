//! `broker-gen serve` with the tools of a call as a process and as a server over HTTP.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::server::Server;

/// The config of a broker that starts the server of the tools.
pub(crate) fn process(toolbox: &Path) -> Value {
    let command = [toolbox.to_string_lossy()];
    config(&json!({"command": command, "tool_filter": ["text_case", "text_lorem"]}))
}

/// The config of a broker that reaches the tools at another broker.
pub(crate) fn http(address: &str) -> Value {
    config(&json!({
        "url": format!("http://{address}/mcp/direct"),
        "tool_filter": ["text-text_case", "text-text_lorem"],
        "path_aliases": {"text-text_case": "text_case", "text-text_lorem": "text_lorem"},
    }))
}

fn config(source: &Value) -> Value {
    json!({"tree": [{"path": "/text", "source": source}]})
}

/// Locks a config in `folder` and serves it.
pub(crate) fn serve(generator: &Path, folder: &Path, config: &Value) -> io::Result<Server> {
    let file = folder.join("config.json");
    fs::write(&file, config.to_string())?;
    let file = file.to_string_lossy();
    let locked = harness::Run::new(generator)
        .args(["lock", "--config", &file])
        .output();
    if locked.code != Some(0) {
        return Err(io::Error::other(locked.stderr));
    }
    Server::listening(generator, &["serve", "--config", &file, "127.0.0.1:0"])
}
