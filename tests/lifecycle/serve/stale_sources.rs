//! A lock that is stale for some sources, and a variable that is missing: over stdio the other sources are served.

use harness::{Broker, Chaos, Run, binary, contains, refusal, wait_until};
use serde_json::{Value, json};

use super::{Bench, CONFIG, LOCK, StdioClient, read};

/// The error object of a call that failed.
fn error_of(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str(text).expect("an error object")
}

fn works(client: &mut StdioClient, source: &str) {
    wait_until("the source serves", || {
        client.echo(source)["isError"] == false
    });
}

#[test]
fn stdio_client_is_served_by_the_sources_that_are_not_stale() {
    let bench = Bench::new();
    bench.change(|config| config["tree"][1]["source"]["tool_filter"] = json!(["echo"]));
    let mut client = StdioClient::start(bench.serve(&["stdio"]));
    works(&mut client, "/a");
    let error = error_of(&client.echo("/b"));
    assert_eq!(error["code"], "lock_stale", "{error}");
    let command = format!("broker-gen lock --config {}", bench.config);
    contains(
        error["message"].as_str().expect("a message"),
        &["`/b` has changed since it was locked", &command],
    );
    // Its paths are those of the lock.
    let params = json!({"name": "meta_tree", "arguments": {"path": "/b"}});
    contains(
        &client.result("tools/call", &params).to_string(),
        &["/b/echo"],
    );
    assert_eq!(client.end(), Some(0));
    assert!(bench.chaos.journal("b").is_empty(), "it was not started");
    // Over HTTP the whole lock is refused.
    bench.refused(&["127.0.0.1:0"], 5);
}

#[test]
fn call_of_a_source_that_the_lock_lacks_is_answered_lock_stale() {
    let bench = Bench::new();
    bench.change(|config| {
        let mut added = config["tree"][1].clone();
        added["path"] = json!("/c");
        config["tree"].as_array_mut().expect("a list").push(added);
    });
    let mut client = StdioClient::start(bench.serve(&["stdio"]));
    works(&mut client, "/a");
    works(&mut client, "/b");
    let error = error_of(&client.echo("/c"));
    assert_eq!(error["code"], "lock_stale", "{error}");
    let message = error["message"].as_str().expect("a message");
    contains(message, &["`/c` is not in the lock", "broker-gen lock"]);
    let params = json!({"name": "meta_call", "arguments": {"path": "/cx/echo", "args": {}}});
    let unknown = error_of(&client.result("tools/call", &params));
    assert_eq!(unknown["code"], "path_not_found", "{unknown}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn stdio_client_gets_the_reason_of_a_raised_trust_level() {
    let bench = Bench::new();
    bench.change(|config| config["tree"][1]["source"]["trust"] = json!("untrusted"));
    let mut client = StdioClient::start(bench.serve(&["stdio"]));
    let error = error_of(&client.echo("/a"));
    assert_eq!(
        (&error["code"], &error["details"]["problems"][0]["code"]),
        (&json!("start_refused"), &json!("lock_stale")),
        "{error}"
    );
    assert_eq!(client.end(), Some(5));
}

#[test]
fn missing_variable_takes_only_its_source() {
    let bench = Bench::new();
    bench.change(|config| {
        config["tree"][1]["source"]["env"]["NOT_SET"] =
            json!("${A_VARIABLE_THAT_IS_NOT_SET:-for the lock}");
    });
    bench.lock();
    bench.change(|config| {
        config["tree"][1]["source"]["env"]["NOT_SET"] = json!("${A_VARIABLE_THAT_IS_NOT_SET}");
    });
    let mut client = StdioClient::start(bench.serve(&["stdio"]));
    works(&mut client, "/a");
    let error = error_of(&client.echo("/b"));
    assert_eq!(
        (&error["code"], &error["details"]["cause"]),
        (&json!("source_unavailable"), &json!("env_missing")),
        "{error}"
    );
    let command = format!("`broker-gen doctor --config {}`", bench.config);
    contains(
        error["message"].as_str().expect("a message"),
        &["`A_VARIABLE_THAT_IS_NOT_SET` is not set", &command],
    );
    assert_eq!(client.end(), Some(0));
    bench.change(|config| {
        config["on_unreachable"] = json!("serve");
        config["tree"][1]["source"]["env"]["NOT_SET"] = json!("${A_VARIABLE_THAT_IS_NOT_SET}");
    });
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    broker.result("/a/echo", json!({"text": "x"}));
    assert_eq!(broker.source("/b")["cause"], "env_missing");
    // A caller over HTTP reads no name of a variable.
    let error = refusal(
        &broker.call("/b/echo", json!({"text": "x"})),
        503,
        "source_unavailable",
    );
    assert_eq!(
        error["message"],
        "a variable that the config names is not set"
    );
}

/// The compiled broker over stdio, without the variable `A_TOKEN` of `/a`.
fn compiled(chaos: &Chaos, args: &[&str]) -> StdioClient {
    let run = Run::new(&binary("chaos-broker"));
    let args = ["stdio"].iter().chain(args);
    StdioClient::start(run.args(args).env("CHAOS", chaos.path()))
}

#[test]
fn compiled_broker_without_a_variable_serves_the_other_sources_over_stdio() {
    let chaos = Chaos::new();
    let mut client = compiled(&chaos, &[]);
    works(&mut client, "/b");
    for _ in 0..2 {
        let error = error_of(&client.echo("/a"));
        assert_eq!(
            (&error["code"], &error["details"]["cause"]),
            (&json!("source_unavailable"), &json!("env_missing")),
            "{error}"
        );
        contains(
            error["message"].as_str().expect("a message"),
            &["`A_TOKEN` is not set", "`mcp-broker doctor`"],
        );
    }
    works(&mut client, "/b");
    assert_eq!(client.end(), Some(0));
    assert!(chaos.journal("a").is_empty(), "it was not started");
}

#[test]
fn start_over_stdio_that_a_missing_variable_refuses_answers_every_call_with_it() {
    let strict = |config: &mut Value| {
        config["on_drift"] = json!("refuse");
        config["on_unreachable"] = json!("refuse");
    };
    let chaos = Chaos::new();
    let config = chaos.config(CONFIG, strict);
    chaos.file("given.lock.json", &read(LOCK));
    let serve = Run::new(&binary("broker-gen"))
        .args(["serve", "stdio", "--config", &config])
        .env("CHAOS", chaos.path());
    for (mut client, command) in [
        (compiled(&chaos, &[&config]), "mcp-broker doctor"),
        (StdioClient::start(serve), "broker-gen doctor --config"),
    ] {
        for source in ["/a", "/b", "/a"] {
            let error = error_of(&client.echo(source));
            assert_eq!(error["code"], "start_refused", "{error}");
            assert_eq!(error["details"]["cause"], "env_missing", "{error}");
            let command = format!("`{command} {config}`");
            contains(
                error["message"].as_str().expect("a message"),
                &["`/a`", "`A_TOKEN` is not set", &command],
            );
            contains(error["hint"].as_str().expect("a hint"), &["Set it"]);
        }
        assert_eq!(client.answer("ping", &json!({}))["result"], json!({}));
        assert_eq!(client.end(), Some(4));
    }
    assert!(chaos.journal("a").is_empty(), "it was not started");
}
