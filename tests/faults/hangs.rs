//! Servers that hang: they run and send no byte. The broker starts them again, and never a slow server because of the calls
//! of one caller.

use std::fs;
use std::path::Path;

use harness::faults::{FaultFixture, signal, source};
use harness::figure::{Watch, figure, shown};
use harness::{
    Broker, HttpStage, Response, Run, binary, http_script, on_echo, refusal, request, wait_until,
};
use serde_json::{Value, json};

/// Two callers with different keys.
struct Callers {
    keys: Vec<(String, Value)>,
}

impl Callers {
    fn new() -> Self {
        let keys = ["one", "other"].map(|name| {
            let made = Run::new(&binary("mcp-broker")).args(["key", "new", name, "--json"]);
            let made: Value = serde_json::from_str(&made.output().stdout).expect("one object");
            let mut entry = made["entry"].clone();
            if harness::access::is_on() {
                entry["groups"] = json!(["tests"]);
            }
            (made["key"].as_str().expect("a key").to_owned(), entry)
        });
        Self { keys: keys.into() }
    }

    /// Adds the keys to a config.
    fn add(&self, config: &mut Value) {
        harness::access::add(config);
        let known = config["identities"]["keys"].as_array().cloned();
        let entries = self.keys.iter().map(|(_, entry)| entry.clone());
        let keys: Vec<_> = known.into_iter().flatten().chain(entries).collect();
        config["identities"]["keys"] = json!(keys);
    }

    /// A broker with these callers, whose calls of `echo` take at most a second.
    fn stage(&self, change: impl FnOnce(&mut Value)) -> FaultFixture {
        FaultFixture::with(&json!({}), |config| {
            self.add(config);
            config["audit"] = json!({"file": "audit.jsonl"});
            for tool in ["echo", "slow"] {
                source(config, 0)["tool_overrides"][tool]["timeout"] = json!(1);
            }
            change(config);
        })
    }

    /// Calls a tool as one of them.
    fn call(&self, stage: &FaultFixture, caller: usize, tool: &str) -> Response {
        self.call_at(stage.broker.address(), caller, tool)
    }

    fn call_at(&self, address: &str, caller: usize, tool: &str) -> Response {
        let body = json!({"path": tool, "args": arguments(tool)}).to_string();
        self.request(address, caller, "POST", "/meta_call", &body)
    }

    fn request(
        &self,
        address: &str,
        caller: usize,
        method: &str,
        route: &str,
        body: &str,
    ) -> Response {
        let credential = format!("Bearer {}", self.keys[caller].0);
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", credential.as_str()),
        ];
        request(address, method, route, &headers, body.as_bytes())
    }

    /// The counters of `/a` for restarts, and for those since it hung.
    fn restarts(&self, address: &str) -> (u64, u64) {
        let sources = self.request(address, 0, "GET", "/sources", "").json();
        let counters = &sources["sources"][0]["counters"];
        let count = |name: &str| counters[name].as_u64().expect("it is counted");
        (count("restarts"), count("hangs"))
    }

    /// Asserts that the other source is served and that the broker has not panicked.
    fn others_are_served(&self, broker: &Broker) {
        assert_eq!(self.call_at(broker.address(), 1, "/b/echo").status, 200);
        let log = broker.stderr();
        assert!(!log.contains("panic"), "{log}");
    }

    /// Waits until `/a` answers.
    fn await_answer(&self, address: &str) {
        wait_until("`/a` answers again", || {
            self.call_at(address, 0, "/a/echo").status == 200
        });
    }

    /// Calls `echo` as these callers, one after the other; each call times out.
    fn time_out(&self, stage: &FaultFixture, callers: &[usize]) {
        for caller in callers {
            let answer = self.call(stage, *caller, "/a/echo");
            refusal(&answer, 504, "call_timeout");
        }
    }
}

fn arguments(tool: &str) -> Value {
    match tool {
        "/a/slow" => json!({"ms": 60_000}),
        _ => json!({"text": "x"}),
    }
}

/// The process of `/a` that runs now.
fn pid(stage: &FaultFixture) -> u32 {
    *stage.chaos.pids("a").last().expect("it was started")
}

/// The lines of a kind in the audit log.
fn audit_lines(stage: &FaultFixture, kind: &str) -> Vec<Value> {
    let file = Path::new(stage.chaos.path()).join("audit.jsonl");
    let text = fs::read_to_string(file).expect("the log");
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.filter(|line: &Value| line["kind"] == kind).collect()
}

#[test]
fn server_that_hangs_is_started_again_with_the_cause_hung() {
    let callers = Callers::new();
    let stage = callers.stage(|_| {});
    let hanging = pid(&stage);
    signal(hanging, "STOP");
    let watch = Watch::start();
    callers.time_out(&stage, &[0, 1, 0]);
    stage.chaos.await_events("a", "start", 2);
    callers.await_answer(stage.broker.address());
    figure(
        "F-57",
        &format!(
            "started again {} after the first of three calls with a timeout of 1 s",
            shown(watch.passed())
        ),
    );
    assert!(
        !Path::new(&format!("/proc/{hanging}")).exists(),
        "it was ended"
    );
    assert_eq!(callers.restarts(stage.broker.address()), (1, 1));
    let log = stage.broker.stderr();
    assert!(
        log.contains("cause=\"hung\"") && log.contains("source is up again"),
        "{log}"
    );
    let down = audit_lines(&stage, "source_down");
    assert_eq!(
        (&down[0]["code"], &down[0]["target"]["path"]),
        (&json!("hung"), &json!("/a"))
    );
    wait_until("the log has both changes", || {
        audit_lines(&stage, "source_up").len() == 1
    });
    let metrics = callers
        .request(stage.broker.address(), 0, "GET", "/metrics", "")
        .text();
    assert!(
        metrics.contains(r#"mcp_broker_source_hangs_total{source="/a"} 1"#),
        "{metrics}"
    );
    callers.others_are_served(&stage.broker);
}

#[test]
fn timeouts_of_one_caller_alone_start_no_server_again() {
    let callers = Callers::new();
    let stage = callers.stage(|_| {});
    let slow = pid(&stage);
    signal(slow, "STOP");
    // More time than three timeouts and the answer to the broker have.
    callers.time_out(&stage, &[0; 10]);
    assert_eq!(pid(&stage), slow, "it was not started again");
    signal(slow, "CONT");
    callers.await_answer(stage.broker.address());
    assert_eq!(pid(&stage), slow);
    assert_eq!(callers.restarts(stage.broker.address()), (0, 0));
    callers.others_are_served(&stage.broker);
}

#[test]
fn slow_server_that_answers_the_broker_is_kept() {
    let callers = Callers::new();
    let stage = callers.stage(|_| {});
    stage.chaos.script(
        "a",
        &json!({"on_call": {"slow": "hang"}, "ignore_cancel": true}),
    );
    let slow = pid(&stage);
    for caller in [0, 1, 0] {
        refusal(
            &callers.call(&stage, caller, "/a/slow"),
            504,
            "call_timeout",
        );
    }
    // The server was started with another one.
    stage.chaos.await_events("a", "discover", 2);
    callers.await_answer(stage.broker.address());
    assert_eq!(pid(&stage), slow);
    assert_eq!(callers.restarts(stage.broker.address()), (0, 0));
    callers.others_are_served(&stage.broker);
}

#[test]
fn server_is_kept_while_a_call_is_within_its_time() {
    let callers = Callers::new();
    let stage = callers.stage(|config| {
        source(config, 0)["tool_overrides"]["slow"]["timeout"] = json!(14);
    });
    let busy = pid(&stage);
    signal(busy, "STOP");
    std::thread::scope(|scope| {
        let long = scope.spawn(|| callers.call(&stage, 0, "/a/slow"));
        callers.time_out(&stage, &[0, 1, 0]);
        refusal(&long.join().expect("it ends"), 504, "call_timeout");
        assert_eq!(
            pid(&stage),
            busy,
            "three timeouts and 5 s have passed long ago"
        );
    });
    stage.chaos.await_events("a", "start", 2);
    callers.await_answer(stage.broker.address());
    assert_eq!(callers.restarts(stage.broker.address()), (1, 1));
    callers.others_are_served(&stage.broker);
}

#[test]
fn server_over_http_that_hangs_gets_a_new_session_with_the_cause_hung() {
    for era in ["legacy", "modern"] {
        let callers = Callers::new();
        let stage = HttpStage::with(&http_script(era, &json!({})), |config| {
            callers.add(config);
            config["tree"][0]["source"]["tool_overrides"] = json!({"echo": {"timeout": 1}});
        });
        let once = |method: &str| json!({"on": {"method": method}, "nth": 1, "do": "hang"});
        let rules = [
            on_echo(&json!("hang")),
            once("ping"),
            once("server/discover"),
        ];
        stage.script(&http_script(era, &json!({"rules": rules})));
        for caller in [0, 1, 1] {
            let answer = callers.call_at(stage.broker.address(), caller, "/a/echo");
            refusal(&answer, 504, "call_timeout");
        }
        wait_until("the session was replaced", || {
            callers.restarts(stage.broker.address()) == (1, 1)
        });
        let log = stage.broker.stderr();
        assert!(log.contains("cause=\"hung\""), "{era}: {log}");
        stage.script(&http_script(era, &json!({})));
        callers.await_answer(stage.broker.address());
        callers.others_are_served(&stage.broker);
    }
}
