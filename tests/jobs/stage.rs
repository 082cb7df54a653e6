//! A broker with jobs in front of one scripted server.

use std::path::Path;
use std::time::Duration;

use harness::{Bench, Broker, Run, binary, wait_within};
use harness::{Response, request};
use serde_json::{Value, json};

/// The maximum time of a job of these tests.
pub(crate) const JOB_TIMEOUT: Duration = Duration::from_secs(60);

/// Keys of two callers and their digests, for tests only.
pub(crate) const KEYS: [(&str, &str, &str); 2] = [
    (
        "one",
        "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p",
        "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7",
    ),
    (
        "two",
        "mbk_vlq2eaarm7xvarhoew7ouadhsunjcdlr",
        "5f231824d36b7db81e7a2c33ea7661754a59621b874794a7ee4a4c2db2710a5b",
    ),
];

/// A folder with a source `/a`: `quick` answers at once, `slow` after half a second, `long` after a minute, `steps` after
/// three notifications of progress.
pub(crate) fn bench(jobs: &Value, more: &Value) -> Bench {
    let bench = Bench::new();
    let mut config = json!({"tree": [harness::node("a", json!({}))]});
    if !jobs.is_null() {
        config["jobs"] = jobs.clone();
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        config[name] = value.clone();
    }
    bench.write("c.json", &config.to_string());
    let tool = |name: &str| {
        json!({
            "name": name,
            "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": name == "quick"},
        })
    };
    let tools: Vec<_> = ["quick", "slow", "long", "steps"]
        .into_iter()
        .map(tool)
        .collect();
    bench.script(
        "a",
        &json!({
            "tools": tools,
            "built_in": false,
            "on_call": {
                "slow": {"delay_ms": 500},
                "long": {"delay_ms": 60_000},
                "steps": {"progress": 3, "then": {"delay_ms": 300}},
            },
        }),
    );
    bench.lock();
    bench
}

/// Starts a broker in a folder.
pub(crate) fn serve(bench: &Bench) -> Broker {
    Broker::start_ready(run(bench))
}

/// Kills a broker and its guard in one moment, and waits for the end of both.
pub(crate) fn kill(broker: Broker) {
    let script = format!("kill -KILL {} {}", broker.pid(), broker.guard());
    let killed = Run::new(Path::new("/bin/sh"))
        .args(["-c", &script])
        .output();
    assert_eq!(killed.code, Some(0), "{}", killed.stderr);
    broker.finish();
}

/// Returns the run of a broker in a folder.
pub(crate) fn run(bench: &Bench) -> Run {
    let beside = binary("broker-gen");
    let beside = beside.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    Run::new(&binary("broker-gen"))
        .args(["serve", "--config", "c.json", "127.0.0.1:0"])
        .folder(&bench.path(""))
        .env("PATH", format!("{beside}:{path}"))
}

/// A caller of a broker, with a key or without one.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) broker: &'a Broker,
    pub(crate) key: Option<&'a str>,
}

impl<'a> Caller<'a> {
    pub(crate) fn of(broker: &'a Broker) -> Self {
        Self { broker, key: None }
    }

    pub(crate) fn send(
        self,
        method: &str,
        route: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let mut all = headers.to_vec();
        if !body.is_empty() {
            all.push(("Content-Type", "application/json"));
        }
        all.extend(self.key.map(|key| ("X-API-Key", key)));
        request(self.broker.address(), method, route, &all, body.as_bytes())
    }

    pub(crate) fn get(self, route: &str) -> Response {
        self.send("GET", route, &[], "")
    }

    /// Calls a tool with these members beside its path.
    pub(crate) fn call(self, tool: &str, members: Value) -> Response {
        self.call_with(tool, members, &[])
    }

    pub(crate) fn call_with(
        self,
        tool: &str,
        mut members: Value,
        headers: &[(&str, &str)],
    ) -> Response {
        members["path"] = json!(format!("/a/{tool}"));
        self.send("POST", "/meta_call", headers, &members.to_string())
    }

    /// Makes a job, and returns its id.
    pub(crate) fn make(self, tool: &str, args: Value) -> String {
        let made = self.call(tool, json!({"args": args, "mode": "async"}));
        assert_eq!(made.status, 202, "{}", made.text());
        made.json()["job_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn job(self, id: &str) -> Value {
        let shown = self.get(&format!("/jobs/{id}"));
        assert_eq!(shown.status, 200, "{}", shown.text());
        shown.json()
    }

    /// Waits until a job has one of these states, and returns it.
    pub(crate) fn wait(self, id: &str, states: &[&str]) -> Value {
        let mut job = Value::Null;
        wait_within(JOB_TIMEOUT, &format!("{id} is {states:?}"), || {
            job = self.job(id);
            states.iter().any(|state| job["status"] == *state)
        });
        job
    }

    /// Waits until a job has ended.
    pub(crate) fn end(self, id: &str) -> Value {
        self.wait(id, &["succeeded", "failed", "canceled", "lost"])
    }
}

/// The numbers with which a tool of the server was called.
pub(crate) fn executed(bench: &Bench, tool: &str) -> Vec<i64> {
    let calls = bench.journal("a", "call");
    let of_tool = calls.iter().filter(|call| call["tool"] == tool);
    of_tool
        .filter_map(|call| call["arguments"]["n"].as_i64())
        .collect()
}
