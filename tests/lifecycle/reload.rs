//! Reloads while the broker serves: allowed changes take effect without a dropped call, others are
//! refused with the command to run, and then nothing changes.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use harness::figure::{Watch, figure, shown};
use harness::{Broker, Chaos, Tally, is_alive, refusal, wait_until};
use serde_json::{Value, json};

/// A broker that runs with a config file, and the file.
struct Bench {
    chaos: Chaos,
    file: PathBuf,
    config: Value,
    broker: Broker,
}

impl Bench {
    fn start(args: &[&str]) -> Self {
        let chaos = Chaos::new();
        let text = fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/chaos-broker/config.json"
        ));
        let text = text.expect("the config is there");
        let config: Value = serde_json::from_str(&text).expect("it is JSON");
        let file = chaos.file("given.json", &text);
        let name = file.to_str().expect("the path is text");
        let args = [&["127.0.0.1:0", name, "--log-format", "json"], args].concat();
        let broker = Broker::start_ready(chaos.run("chaos-broker", &args));
        Self {
            chaos,
            file,
            config,
            broker,
        }
    }

    /// Replaces the file atomically.
    fn write(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.config);
        let draft = self.chaos.file("given.draft", &self.config.to_string());
        fs::rename(draft, &self.file).expect("a rename within one folder");
    }

    /// The lines of the log whose message has this beginning.
    fn said(&self, message: &str) -> Vec<Value> {
        let stderr = self.broker.stderr();
        let lines = stderr
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines
            .filter(|line: &Value| {
                line["message"]
                    .as_str()
                    .is_some_and(|said| said.starts_with(message))
            })
            .collect()
    }

    /// Changes the config, sends SIGHUP, and waits for a message with this beginning.
    fn hangup(&mut self, outcome: &str, change: impl FnOnce(&mut Value)) -> Value {
        let before = self.said(outcome).len();
        self.write(change);
        self.broker.signal("HUP");
        self.outcome(outcome, before)
    }

    fn outcome(&self, outcome: &str, before: usize) -> Value {
        let mut lines = Vec::new();
        wait_until(&format!("the log says `{outcome}`"), || {
            lines = self.said(outcome);
            lines.len() > before
        });
        lines.pop().expect("it was waited for")
    }

    fn reload(&mut self, change: impl FnOnce(&mut Value)) -> Value {
        self.hangup("reloaded", change)
    }

    /// Codes, messages and remedies of a reload that must be refused; the service does not change.
    fn refused(&mut self, change: impl FnOnce(&mut Value)) -> Vec<Value> {
        let before = (self.tree(), self.pids(), self.config.clone());
        let reports = self.reports().len();
        self.hangup("not reloaded", change);
        let mut all = self.reports();
        assert_eq!(all.len(), reports + 1, "one report a reload");
        assert_eq!((self.tree(), self.pids()), (before.0, before.1));
        self.broker.result("/a/echo", json!({"text": "x"}));
        self.config = before.2;
        all.pop().expect("it was counted")
    }

    fn reports(&self) -> Vec<Vec<Value>> {
        let stderr = self.broker.stderr();
        let lines = stderr
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines
            .filter_map(|line: Value| line["diagnostics"].as_array().cloned())
            .collect()
    }

    fn tree(&self) -> String {
        let whole = self
            .broker
            .post("/meta_tree", &json!({"path": "/", "depth": 5}));
        whole.text()
    }

    /// The processes of the sources `a` and `b` that are alive.
    fn pids(&self) -> [Vec<u32>; 2] {
        ["a", "b"].map(|source| {
            let started = self.chaos.pids(source).into_iter();
            started.filter(|pid| is_alive(*pid)).collect()
        })
    }

    fn variable(&self, name: &str) -> Value {
        let dump = self.broker.result("/a/env_dump", json!({}));
        let text = dump["content"][0]["text"].as_str().expect("text");
        let dump: Value = serde_json::from_str(text).expect("the dump is JSON");
        dump[name].clone()
    }
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn source(config: &mut Value, at: usize) -> &mut Value {
    &mut config["tree"][at]["source"]
}

#[test]
fn reload_of_limits_forms_and_filters_keeps_every_process() {
    let mut bench = Bench::start(&[]);
    let before = bench.pids();
    let slow = json!({"ms": 2000});
    refusal(
        &bench.broker.call("/a/slow", slow.clone()),
        504,
        "call_timeout",
    );

    let said = bench.reload(|config| {
        config["limits"]["body_bytes"] = json!(2000);
        config["allowed_hosts"] = json!(["another.example"]);
        let a = source(config, 0);
        a["startup_timeout"] = json!(25);
        a["tool_overrides"]["slow"]["timeout"] = json!(30);
        a["tool_overrides"]["echo"]["max_output_chars"] = json!(600);
        a["tool_overrides"]["add"] = json!({"render_mode": "text"});
        a["tool_filter"] = json!(["!env_dump"]);
    });
    assert_eq!(said["message"], "reloaded; every source keeps its process");
    bench.broker.result("/a/slow", slow);
    let cut = bench
        .broker
        .call("/a/echo", json!({"text": "x".repeat(1500)}));
    assert!(cut.json()["truncated"].is_object(), "{}", cut.text());
    let sum = bench.broker.result("/a/add", json!({"a": 2, "b": 3}));
    assert_eq!(sum["content"], json!([{"type": "text", "text": "5"}]));
    let large = bench
        .broker
        .call("/a/echo", json!({"text": "x".repeat(2000)}));
    refusal(&large, 413, "body_too_large");
    refusal(
        &bench.broker.call("/a/env_dump", json!({})),
        404,
        "path_not_found",
    );
    assert!(!bench.tree().contains("env_dump"));
    assert_eq!(bench.pids(), before);

    // And back: the filter was tightened, not the lock.
    bench.reload(|config| {
        source(config, 0)["tool_filter"] = json!([]);
    });
    bench.broker.result("/a/env_dump", json!({}));
    assert!(bench.tree().contains("env_dump"));
    assert_eq!(bench.pids(), before);
    let counters = bench.broker.get("/sources").json()["sources"][0]["counters"].clone();
    assert_eq!(counters["restarts"], 0);
}

#[test]
fn reload_of_a_changed_source_drops_no_call() {
    let mut bench = Bench::start(&[]);
    let [a, b] = bench.pids();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let broker = &bench.broker;
        // The callers end even if an assertion fails here.
        let finished = SetOnDrop(&done);
        // One long call, and many short ones.
        let long = scope.spawn(|| broker.call("/b/slow", json!({"ms": 4000})));
        let callers = [(); 3].map(|()| {
            scope.spawn(|| {
                let mut calls = 0;
                while !done.load(Ordering::Acquire) {
                    broker.result("/a/echo", json!({"text": "x"}));
                    calls += 1;
                }
                calls
            })
        });
        wait_until("the long call has arrived", || {
            !bench.chaos.events("b", "call").is_empty()
        });
        let file = bench.file.clone();
        let mut config = bench.config.clone();
        source(&mut config, 0)["env"]["A_TOKEN"] = json!("another-token");
        fs::write(file, config.to_string()).expect("the file can be written");
        broker.signal("HUP");
        let said = bench.outcome("reloaded", 0);
        assert_eq!(said["replaced"], "/a");
        assert!(!long.is_finished(), "the long call was not awaited");
        drop(finished);
        for caller in callers {
            assert!(caller.join().expect("no call failed") > 0);
        }
        assert_eq!(long.join().expect("it ended").status, 200);
        bench.config = config;
    });
    assert_eq!(bench.variable("A_TOKEN"), "another-token");
    wait_until("the process before is gone", || {
        let [now_a, now_b] = bench.pids();
        now_a.len() == 1 && now_a != a && now_b == b
    });
    let sources = bench.broker.get("/sources").json()["sources"].clone();
    let counters = &sources[0]["counters"];
    assert_eq!(
        (&counters["restarts"], &counters["failures"]),
        (&json!(1), &json!(0))
    );
    assert!(
        counters["calls"].as_u64() > Some(3),
        "counted over both processes"
    );
    assert_eq!(sources[1]["counters"]["restarts"], 0);
}

#[test]
fn reload_lets_calls_finish_at_the_replaced_source() {
    let mut bench = Bench::start(&[]);
    let [_, b] = bench.pids();
    thread::scope(|scope| {
        let broker = &bench.broker;
        let long = scope.spawn(|| broker.call("/b/slow", json!({"ms": 3000})));
        wait_until("the long call has arrived", || {
            !bench.chaos.events("b", "call").is_empty()
        });
        let mut config = bench.config.clone();
        // As many concurrent calls as the previous limit allows.
        source(&mut config, 1)["max_in_flight"] = json!(2);
        fs::write(&bench.file, config.to_string()).expect("the file can be written");
        broker.signal("HUP");
        assert_eq!(bench.outcome("reloaded", 0)["replaced"], "/b");
        broker.result("/b/echo", json!({"text": "answered by the new one"}));
        assert!(!long.is_finished() && is_alive(b[0]));
        assert_eq!(long.join().expect("it ended").status, 200);
        bench.config = config;
    });
    wait_until("the process before is gone", || !is_alive(b[0]));
    let (status, stderr) = bench.broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn reload_that_needs_a_lock_or_a_build_is_refused() {
    let mut bench = Bench::start(&[]);
    let help = |found: &[Value]| found[0]["help"].as_str().unwrap_or_default().to_owned();
    let text = bench.refused(|config| config["tree"][0]["summary"] = json!("Another text"));
    assert_eq!(text[0]["code"], "lock_mismatch");
    assert!(help(&text).contains("`cargo build`"), "{text:?}");
    let alias = bench.refused(|config| {
        source(config, 0)["path_aliases"] = json!({"echo": "say"});
    });
    assert!(
        help(&alias).contains("`broker-gen lock`") && help(&alias).contains("`cargo build`"),
        "{alias:?}"
    );
    let wider = bench.refused(|config| source(config, 1)["tool_filter"] = json!([]));
    assert_eq!(wider[0]["code"], "lock_widen");
    assert!(help(&wider).contains("`broker-gen lock`"), "{wider:?}");
    let command = bench.refused(|config| {
        source(config, 0)["command"] = json!("chaos-mcp --script ${CHAOS}/other.json");
    });
    assert!(
        command[0]["message"]
            .as_str()
            .expect("text")
            .contains("`args` of the source `/a`")
    );
    let missing = bench.refused(|config| {
        source(config, 0)["env"]["A_TOKEN"] = json!("${NOT_SET_AT_ALL}");
        config["allowed_hosts"] = json!(["${NOT_SET_EITHER}"]);
    });
    let codes: Vec<_> = missing.iter().map(|found| found["code"].clone()).collect();
    assert_eq!(codes, ["env_missing", "env_missing"]);

    // Not JSON.
    let reports = bench.reports().len();
    bench.chaos.file("given.json", "{\"tree\": [");
    bench.broker.signal("HUP");
    bench.outcome("not reloaded", 5);
    let found = bench.reports().pop().expect("a report");
    assert_eq!(
        (bench.reports().len(), &found[0]["code"]),
        (reports + 1, &json!("config_syntax"))
    );
    bench.reload(|_| {});
}

#[test]
fn reload_with_a_source_that_cannot_start_changes_nothing() {
    let mut bench = Bench::start(&[]);
    // Both would change; one cannot, so neither does.
    let nowhere = bench.refused(|config| {
        source(config, 0)["cwd"] = json!("/no/such/folder");
        source(config, 1)["max_in_flight"] = json!(2);
        source(config, 1)["tool_filter"] = json!(["echo"]);
    });
    assert_eq!(
        (nowhere.len(), &nowhere[0]["code"]),
        (1, &json!("source_failed"))
    );
    let message = nowhere[0]["message"].as_str().expect("text");
    assert!(
        message.starts_with("`/a` cannot be replaced: ") && message.contains("/no/such/folder"),
        "{message}"
    );
    // A new process would offer other tools.
    bench
        .chaos
        .script("a", &json!({"tools": Chaos::tools_asking_more("echo")}));
    let drifted =
        bench.refused(|config| source(config, 0)["env"]["A_TOKEN"] = json!("another-token"));
    let message = drifted[0]["message"].as_str().expect("text");
    assert!(
        message.contains("drift_source") && message.contains("`/a/echo` would be withdrawn"),
        "{message}"
    );
    assert!(!bench.broker.stderr().contains("tool withdrawn"));
}

#[test]
fn reload_that_exposes_a_drifted_tool_withdraws_it() {
    let mut bench = Bench::start(&[]);
    bench.reload(|config| source(config, 0)["tool_filter"] = json!(["!echo"]));
    let tools = Chaos::tools_asking_more("echo");
    bench
        .chaos
        .script("a", &json!({"tools": tools, "generation": 1}));
    bench.chaos.await_events("a", "list", 2);
    bench.broker.result("/a/add", json!({"a": 2, "b": 3}));
    bench.reload(|config| source(config, 0)["tool_filter"] = json!([]));
    wait_until("the listing was checked", || {
        bench.broker.source("/a")["withdrawn"] == 1
    });
    let echo = bench.broker.call("/a/echo", json!({"text": "x"}));
    refusal(&echo, 409, "tool_withdrawn");
}

#[test]
fn reload_of_a_watched_file_is_automatic() {
    let mut bench = Bench::start(&["--reload"]);
    let before = bench.pids();
    bench.write(|config| source(config, 0)["tool_filter"] = json!(["!env_dump"]));
    bench.outcome("reloaded", 0);
    refusal(
        &bench.broker.call("/a/env_dump", json!({})),
        404,
        "path_not_found",
    );
    bench.write(|config| config["tree"][0]["summary"] = json!("Another text"));
    bench.outcome("not reloaded", 0);
    bench.write(|config| {
        config["tree"][0]["summary"] = json!("Misbehaves as its script says");
        source(config, 0)["tool_filter"] = json!([]);
    });
    bench.outcome("reloaded", 1);
    bench.broker.result("/a/env_dump", json!({}));
    assert_eq!(bench.pids(), before);
}

#[test]
fn reload_without_a_config_file_changes_nothing() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    broker.signal("HUP");
    wait_until("it says so", || {
        broker.stderr().contains("nothing to reload")
    });
    broker.result("/a/echo", json!({"text": "x"}));
    let refused = chaos
        .run("chaos-broker", &["127.0.0.1:0", "--reload"])
        .output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("`--reload` watches CONFIG"),
        "{}",
        refused.stderr
    );
}

#[test]
fn reloads_under_load_fail_no_call_and_keep_other_processes() {
    let _machine = harness::whole_machine();
    let mut bench = Bench::start(&[]);
    let reloads = match std::env::var("MCP_BROKER_RELOADS") {
        Ok(set) => set.parse().expect("a number"),
        Err(_) => 100,
    };
    let pids = bench.pids();
    let address = bench.broker.address().to_owned();
    let done = AtomicBool::new(false);
    let watch = Watch::start();
    let tally = thread::scope(|scope| {
        let finished = SetOnDrop(&done);
        let flood = scope
            .spawn(|| Tally::flood_until(&address, 4, "/b/echo", &|| done.load(Ordering::Acquire)));
        for round in 0..reloads {
            // A tighter filter, other bounds, and back again: none of these needs another process.
            bench.reload(|config| {
                let narrower: &[&str] = if round % 2 == 0 { &["!env_dump"] } else { &[] };
                source(config, 0)["tool_filter"] = json!(narrower);
                source(config, 1)["timeout"] = json!(30 + round % 7);
            });
        }
        drop(finished);
        flood.join().expect("the callers do not panic")
    });
    tally.is_clean();
    tally.agrees_with(&bench.chaos, "b");
    assert_eq!(tally.answered(), tally.calls(), "{:?}", tally.codes());
    assert!(tally.calls() > reloads, "there was load");
    assert_eq!(bench.pids(), pids);
    figure(
        "F-48",
        &format!(
            "{reloads} reloads and {} calls within {}, none failed, every process kept",
            tally.calls(),
            shown(watch.passed())
        ),
    );
}

#[test]
fn reload_of_the_text_drift_policy_withdraws_and_restores() {
    let mut bench = Bench::start(&[]);
    let tools = Chaos::tools_with("echo", |tool| tool["description"] = json!("Other words"));
    bench
        .chaos
        .script("a", &json!({"tools": tools, "generation": 1}));
    wait_until("the log tells of the text", || {
        !bench.said("source differs from the lock").is_empty()
    });
    bench.broker.result("/a/echo", json!({"text": "x"}));
    let pids = bench.pids();
    bench.reload(|config| config["on_text_drift"] = json!("withdraw"));
    let call = bench.broker.call("/a/echo", json!({"text": "x"}));
    let error = refusal(&call, 409, "tool_withdrawn");
    assert_eq!(error["details"]["class"], "text", "{error}");
    assert_eq!(bench.broker.source("/a")["withdrawn"], 1);
    // The source's own setting takes precedence over the top level's.
    bench.reload(|config| source(config, 0)["on_text_drift"] = json!("serve"));
    bench.broker.result("/a/echo", json!({"text": "x"}));
    assert_eq!(bench.broker.source("/a")["withdrawn"], 0);
    assert_eq!(bench.pids(), pids);
}
