//! A config with an entry that is its own broker: the entry is left out with a warning, another broker is not.

use std::os::unix::fs::symlink;
use std::path::Path;

use harness::{Broker, binary, contains};
use serde_json::{Value, json};

use super::Bench;

/// Adds sources to the config, on the nodes `/own1` and so on.
fn add(bench: &Bench, sources: &[Value]) {
    bench.change(|config| {
        let nodes = config["tree"].as_array_mut().expect("a list");
        for (at, source) in (1..).zip(sources) {
            nodes.push(json!({"path": format!("/own{at}"), "source": source}));
        }
    });
}

#[test]
fn own_broker_in_the_config_is_left_out_by_lock_check_and_serve() {
    let bench = Bench::new();
    let in_folder = |name: &str| bench.chaos.path().join(name);
    symlink(binary("broker-gen"), in_folder("my-broker")).expect("a link");
    symlink(in_folder("given.json"), in_folder("link.json")).expect("a link");
    let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
    let broker = text(&binary("broker-gen"));
    let own = [
        json!({"command": broker, "args": ["serve", "--config", "given.json", "stdio"]}),
        json!({"command": text(&in_folder("my-broker")), "args": ["serve", "--config", bench.config, "stdio"]}),
        json!({"command": "./my-broker", "args": ["serve", "stdio", "--config", "link.json"]}),
        json!({"command": broker, "args": ["serve", "stdio"], "env": {"MCP_BROKER_CONFIG": "./given.json"}}),
        json!({"command": "sh", "args": ["-c", format!("exec {broker} serve --config given.json stdio")]}),
    ];
    add(&bench, &own);
    let warned = |log: &str| {
        for at in 1..=own.len() {
            contains(
                log,
                &[&format!("`/own{at}` is the broker of this config itself")],
            );
        }
    };
    let run = |verb: &str| {
        let args = [verb, "--config", &bench.config];
        let output = bench.chaos.run("broker-gen", &args).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        warned(&output.stderr);
    };
    run("lock");
    assert!(!bench.chaos_text("given.lock.json").contains("own1"));
    run("check");
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    broker.result("/a/echo", json!({"text": "x"}));
    let (_, log) = broker.terminate();
    warned(&log);
    contains(&log, &["own_broker"]);
}
