//! A running broker with its initial resources, and the conditions of every row: the broker serves its
//! other sources, uses no more resources than before, and has not panicked.

use std::fs;

use crate::figure::Watch;
use crate::{Broker, Chaos, ResourceUsage, Run, access, wait_until};
use serde_json::{Value, json};

/// The tool that the rows call.
pub const ECHO: &str = "/a/echo";

/// A broker and its scripted servers.
#[derive(Debug)]
pub struct FaultFixture {
    /// The servers.
    pub chaos: Chaos,
    /// The broker.
    pub broker: Broker,
    /// The resources of the broker at its start.
    pub before: ResourceUsage,
}

/// The source of the node at this index of the tree.
pub fn source(config: &mut Value, at: usize) -> &mut Value {
    &mut config["tree"][at]["source"]
}

impl FaultFixture {
    /// The broker with this script for `/a`.
    pub fn new(script: &Value) -> Self {
        Self::with(script, |_| {})
    }

    /// The broker with another config.
    pub fn with(script: &Value, change: impl FnOnce(&mut Value)) -> Self {
        Self::begin(script, change, |run| run)
    }

    /// The broker, started in another way.
    pub fn begin(
        script: &Value,
        change: impl FnOnce(&mut Value),
        start: impl FnOnce(Run) -> Run,
    ) -> Self {
        let chaos = Chaos::new();
        chaos.script("a", script);
        let args = config_args(&chaos, change);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let broker = Broker::start_ready(start(chaos.run("chaos-broker", &args)));
        wait_until("every source is there", || {
            // The short view for callers without the secret also has the states.
            let sources = broker.get("/sources").json();
            let sources = sources["sources"].as_array();
            sources.is_some_and(|all| all.iter().all(|source| source["state"] == "ready"))
        });
        let before = ResourceUsage::measure(broker.pid());
        Self {
            chaos,
            broker,
            before,
        }
    }

    /// The counters of `/a` in `/sources`.
    pub fn counter(&self, name: &str) -> u64 {
        let sources = self.broker.get("/sources").json();
        let counter = sources["sources"][0]["counters"][name].as_u64();
        counter.unwrap_or_else(|| panic!("`{name}` is counted: {sources}"))
    }

    /// `ECHO` of a text.
    pub fn echo(&self, text: &str) -> crate::Response {
        self.broker.call(ECHO, json!({ "text": text }))
    }

    /// Waits until a call of `/a` succeeds.
    pub fn await_answer(&self) {
        wait_until("`/a` answers again", || {
            let sum = self.broker.call("/a/add", json!({"a": 1, "b": 2}));
            sum.status == 200
        });
    }

    /// Asserts the conditions of every row; returns the resources of the broker at the end.
    pub fn is_as_before(&self) -> ResourceUsage {
        let watch = Watch::start();
        self.broker.result("/b/add", json!({"a": 1, "b": 2}));
        let took = watch.passed();
        assert!(took.as_secs() < 5, "another source takes {took:?}");
        let now = self.before.await_again(self.broker.pid());
        let log = self.broker.stderr();
        assert!(!log.contains("panic"), "{log}");
        now
    }
}

/// The broker's arguments with another config.
pub fn config_args(chaos: &Chaos, change: impl FnOnce(&mut Value)) -> [String; 2] {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../chaos-broker/config.json"
    ));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("it is JSON");
    change(&mut config);
    access::add(&mut config);
    let file = chaos.file("given.json", &config.to_string());
    let name = file.to_str().expect("the path is text").to_owned();
    ["127.0.0.1:0".to_owned(), name]
}

/// A number that a variable may raise, for long runs by hand.
pub fn scaled(variable: &str, usual: usize) -> usize {
    let set = std::env::var(variable).ok();
    set.map_or(usual, |set| set.parse().expect("a number"))
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let kill = Run::new("/bin/sh".as_ref())
        .args(["-c", &format!("kill -{name} {pid}")])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
}
