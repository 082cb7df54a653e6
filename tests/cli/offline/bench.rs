//! Locks made without a server, and configs and tools for them.

use std::path::Path;

use broker_config::Config;
use broker_model::Snapshot;
use broker_model::lock::{LOCK_VERSION, Lock, PARTIAL_LOCK_VERSION};
use harness::Bench;
use serde_json::{Value, json};

/// The root of the workspace.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Writes a config and the lock that a server with these tools gives.
pub(crate) fn write_lock(bench: &Bench, stem: &str, config: &Value, tools: &[Value]) {
    write_lock_of_version(LOCK_VERSION, bench, stem, config, tools);
}

/// [`write_lock`] with a lock of this format version.
pub(crate) fn write_lock_of_version(
    version: u64,
    bench: &Bench,
    stem: &str,
    config: &Value,
    tools: &[Value],
) {
    let text = config.to_string();
    let parsed = Config::parse("c.json", text.as_bytes()).expect("the config is valid");
    let snapshot = Snapshot {
        resources: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        server_info: json!({"name": "server", "version": "1"}),
        protocol_version: "2025-11-25".to_owned(),
        capabilities: json!({"tools": {}}),
        instructions: None,
        tools: tools
            .iter()
            .map(|tool| {
                tool.as_object()
                    .expect("a tool is an object")
                    .clone()
                    .into()
            })
            .collect(),
    };
    let sources = parsed.config.sources();
    let lock = Lock {
        version,
        config_digest: parsed.config.digest(),
        access_digest: parsed
            .config
            .access_digest()
            .filter(|_| version == PARTIAL_LOCK_VERSION),
        generator: "broker-gen test".to_owned(),
        sources: sources
            .map(|source| {
                let mut locked = source.to_locked(&snapshot);
                parsed
                    .config
                    .describe(&mut locked, |_, tool| tool.upstream_name.clone());
                locked
            })
            .collect(),
        left_out: Vec::new(),
    };
    bench.write(&format!("{stem}.json"), &text);
    bench.write(&format!("{stem}.lock.json"), &lock.to_text());
}

/// A config with one source on `/a`.
pub(crate) fn config(source: Value) -> Value {
    let mut whole = json!({"command": "server"});
    for (key, value) in source.as_object().expect("members are an object") {
        whole[key] = value.clone();
    }
    json!({"tree": [{"path": "/a", "type": "node", "source": whole}]})
}

/// A tool that takes an object.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}. Then more."), "inputSchema": {"type": "object"}})
}
