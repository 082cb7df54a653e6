//! A new lock for a running `broker-gen serve`: taken completely or not at all, without the loss of a call.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use harness::{Broker, refusal, wait_until};
use serde_json::json;

use super::{Bench, StdioClient};

/// A lock in which the tool `echo` of `/b` is hidden, with the config that it belongs to.
struct Locks {
    config: String,
    lock: String,
}

/// Replaces a file by renaming another one over it.
fn rename_over(bench: &Bench, name: &str, text: &str) {
    let new = bench.chaos.file(&format!("{name}.new"), text);
    fs::rename(new, bench.chaos.path().join(name)).expect("renamed");
}

/// Two pairs of a config and its lock: all tools, and `/b` without `echo`.
fn pairs(bench: &Bench) -> [Locks; 2] {
    let pair = |bench: &Bench| {
        bench.lock();
        Locks {
            config: bench.chaos_text("given.json"),
            lock: bench.chaos_text("given.lock.json"),
        }
    };
    bench.change(|config| config["tree"][1]["source"]["tool_filter"] = json!(["!echo"]));
    let without = pair(bench);
    bench.change(|_| {});
    [pair(bench), without]
}

fn take(bench: &Bench, pair: &Locks) {
    rename_over(bench, "given.json", &pair.config);
    rename_over(bench, "given.lock.json", &pair.lock);
}

#[test]
fn serve_takes_a_new_lock_while_calls_run() {
    let bench = Bench::new();
    let [all, without] = pairs(&bench);
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    broker.result("/b/echo", json!({"text": "x"}));
    thread::scope(|scope| {
        let calls = scope.spawn(|| {
            for _ in 0..60 {
                broker.result("/a/echo", json!({"text": "x"}));
            }
        });
        take(&bench, &without);
        wait_until("the tool is gone", || {
            broker.call("/b/echo", json!({"text": "x"})).status == 404
        });
        calls.join().expect("every call has succeeded");
    });
    wait_until("the log reports it", || {
        broker.stderr().contains("took the new lock")
    });
    let gone = broker.call("/b/echo", json!({"text": "x"}));
    refusal(&gone, 404, "path_not_found");
    // Ten locks at once: the last one is served, and no call fails.
    for at in 0..10 {
        take(&bench, if at % 2 == 0 { &without } else { &all });
        broker.result("/a/echo", json!({"text": "x"}));
    }
    wait_until("the last lock is served", || {
        broker.call("/b/echo", json!({"text": "x"})).status == 200
    });
    let (status, log) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn serve_keeps_its_lock_beside_one_that_is_refused() {
    let bench = Bench::new();
    let [all, without] = pairs(&bench);
    let broker = Broker::start_ready(bench.serve(&["127.0.0.1:0"]));
    let works = |broker: &Broker| broker.result("/b/echo", json!({"text": "x"}));
    let refused = |broker: &Broker, count: usize| {
        wait_until("the lock is refused", || {
            broker.stderr().matches("not reloaded").count() >= count
        });
        works(broker);
    };
    // Half of a file.
    rename_over(&bench, "given.lock.json", &all.lock[..all.lock.len() / 2]);
    refused(&broker, 1);
    wait_until("the log has the cause", || {
        broker.stderr().contains("error[lock_corrupt]")
    });
    // The lock of another config.
    rename_over(&bench, "given.lock.json", &without.lock);
    refused(&broker, 2);
    wait_until("the log has the cause", || {
        broker.stderr().contains("error[lock_stale]")
    });
    // A link to a lock that the sources match.
    let lock = bench.chaos.path().join("given.lock.json");
    bench.chaos.file("other.lock.json", &without.lock);
    rename_over(&bench, "given.json", &without.config);
    fs::remove_file(&lock).expect("removed");
    symlink("other.lock.json", &lock).expect("a link");
    wait_until("the linked lock is served", || {
        broker.call("/b/echo", json!({"text": "x"})).status == 404
    });
}

#[test]
fn stdio_client_is_informed_of_a_new_lock() {
    let bench = Bench::new();
    let [_, without] = pairs(&bench);
    let mut client = StdioClient::start(bench.serve(&["stdio", "--mcp-mode", "direct"]));
    let called = |client: &mut StdioClient, name: &str| {
        client.answer(
            "tools/call",
            &json!({"name": name, "arguments": {"text": "x"}}),
        )
    };
    assert_eq!(called(&mut client, "b-echo")["result"]["isError"], false);
    take(&bench, &without);
    let changed = client.notification();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let listed = client.result("tools/list", &json!({})).to_string();
    assert!(listed.contains("\"a-echo\"") && !listed.contains("\"b-echo\""));
    assert_eq!(called(&mut client, "b-echo")["error"]["code"], -32602);
    assert_eq!(called(&mut client, "a-echo")["result"]["isError"], false);
    assert_eq!(client.end(), Some(0));
}
