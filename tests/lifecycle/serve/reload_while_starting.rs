//! A reload while a call waits for its source to start: the call is answered by the config after the reload.

use std::net::TcpStream;

use harness::{Broker, post_bytes, read, refusal, send, wait_until};
use serde_json::{Value, json};

use super::Bench;

/// A config whose calls wait long for their source.
fn waits_long(config: &mut Value) {
    config["start_wait"] = json!(600);
    config["tree"][0]["source"]["timeout"] = json!(900);
    config["tree"][0]["source"]["startup_timeout"] = json!(900);
}

/// A running broker in which a call of `/a/echo` waits, since the source does not start before the file `released` is
/// there.
struct Waiting {
    bench: Bench,
    broker: Broker,
}

impl Waiting {
    /// Locks the config with this change, and starts; the call.
    fn begin(change: impl FnOnce(&mut Value)) -> (Self, TcpStream) {
        let bench = Bench::new();
        bench.change(|config| {
            waits_long(config);
            change(config);
        });
        bench.lock();
        let released = bench.chaos.path().join("released");
        let waits = format!("until [ -e '{}' ]; do sleep 0.05; done", released.display());
        bench.chaos.script("a", &json!({"start_shell": waits}));
        let before = bench.chaos.pids("a").len();
        let broker = Broker::start(bench.serve(&["127.0.0.1:0"]));
        wait_until("the source is started", || {
            bench.chaos.pids("a").len() > before
        });
        let body = json!({"path": "/a/echo", "args": {"text": "x".repeat(1500)}});
        let bytes = post_bytes(broker.address(), "/meta_call", &body.to_string());
        let call = send(broker.address(), &bytes);
        // A call that came later is answered: the first one waits.
        wait_until("the other source serves", || {
            broker.call("/b/echo", json!({"text": "x"})).status == 200
        });
        (Self { bench, broker }, call)
    }

    /// Has the broker read a changed config, which it accepts.
    fn reload(&self, change: impl FnOnce(&mut Value)) {
        self.bench.change(|config| {
            waits_long(config);
            change(config);
        });
        self.broker.signal("HUP");
        wait_until("the broker has reloaded", || {
            let said = self.broker.stderr();
            assert!(!said.contains("not reloaded"), "{said}");
            said.contains("reloaded; ")
        });
        self.broker.result("/b/echo", json!({"text": "x"}));
    }

    fn release(&self) {
        self.bench.chaos.file("released", "");
    }

    fn ends(self) {
        let (status, log) = self.broker.terminate();
        assert_eq!(status.code(), Some(0), "{log}");
    }
}

#[test]
fn call_that_waits_during_a_reload_gets_the_new_settings() {
    let (waiting, call) = Waiting::begin(|_| {});
    waiting.reload(|config| {
        let overrides = &mut config["tree"][0]["source"]["tool_overrides"];
        overrides["echo"]["max_output_chars"] = json!(600);
    });
    waiting.release();
    let answer = read(call);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.json()["truncated"].is_object(), "{}", answer.text());
    assert_eq!(waiting.bench.chaos.events("a", "call").len(), 1);
    waiting.ends();
}

#[test]
fn call_that_waits_for_a_replaced_source_is_answered_by_its_replacement() {
    let (waiting, call) = Waiting::begin(|_| {});
    // The new process starts at once, and the old one never.
    waiting.bench.chaos.script("a", &json!({}));
    waiting.reload(|config| {
        config["tree"][0]["source"]["env"]["A_TOKEN"] = json!("another-token");
    });
    let answer = read(call);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let pids = waiting.bench.chaos.pids("a");
    let calls = waiting.bench.chaos.events("a", "call");
    assert_eq!(calls.len(), 1);
    assert_eq!(
        calls[0]["pid"].as_u64(),
        pids.last().map(|pid| u64::from(*pid))
    );
    waiting.release();
    waiting.ends();
}

#[test]
fn call_that_waits_during_a_reload_is_refused_by_the_new_rules() {
    let rules = |path: &str| {
        json!({
            "groups": ["g"], "anonymous": ["g"],
            "rules": [{"allow": ["/**"], "to": ["g"]}, {"deny": [path], "to": ["g"]}],
        })
    };
    let (waiting, call) = Waiting::begin(|config| config["access"] = rules("/a/fail"));
    waiting.reload(|config| config["access"] = rules("/a/{fail,echo}"));
    // It ends although its source still does not start.
    refusal(&read(call), 404, "path_not_found");
    waiting.release();
    wait_until("the source serves", || {
        let sum = waiting.broker.call("/a/add", json!({"a": 1, "b": 2}));
        sum.status == 200
    });
    let denied = waiting.broker.call("/a/echo", json!({"text": "x"}));
    refusal(&denied, 404, "path_not_found");
    let calls = waiting.bench.chaos.events("a", "call");
    assert!(calls.iter().all(|call| call["tool"] == "add"), "{calls:?}");
    waiting.ends();
}
