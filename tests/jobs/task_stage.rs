//! A broker in front of one scripted server that makes tasks of calls, in each era and over each transport.

use harness::{Bench, Broker, ChaosServer, wait_until};
use serde_json::{Value, json};

use crate::stage::Caller;

/// The extension in configs and capabilities.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// How the broker reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Http,
    Stdio,
}

/// A folder with a source `/a`: the server makes a task of each call of `research`; `quick` answers at once.
pub(crate) struct TaskStage {
    pub(crate) bench: Bench,
    script: Value,
    /// The server over HTTP outlives the brokers of a test.
    _server: Option<ChaosServer>,
}

impl TaskStage {
    /// Makes the folder. `plan` says how the tasks go on, `members` are added to the source, `top` to the config.
    pub(crate) fn new(era: &str, over: Over, plan: &Value, members: Value, top: Value) -> Self {
        let bench = Bench::new();
        let tool = |name: &str| {
            json!({
                "name": name,
                "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
            })
        };
        let mut research = tool("research");
        research["execution"] = json!({"taskSupport": "required"});
        let script = json!({
            "era": era,
            "tools": [research, tool("quick")],
            "built_in": false,
            "capabilities": {"tools": {"listChanged": true}, "tasks": {"requests": {"tools": {"call": {}}}}},
            "tasks": {"research": plan},
        });
        bench.script("a", &script);
        let server = (over == Over::Http)
            .then(|| ChaosServer::start_in(&bench.path(""), "a", "127.0.0.1:0"));
        let mut node = harness::node("a", json!({}));
        if let Some(server) = &server {
            node["source"] = json!({"url": server.url, "trust": "trusted"});
        }
        node["source"]["extensions"] = json!([TASKS]);
        for (name, value) in members.as_object().into_iter().flatten() {
            node["source"][name] = value.clone();
        }
        let mut config = json!({"tree": [node], "jobs": {"store": "jobs.sqlite"}});
        for (name, value) in top.as_object().into_iter().flatten() {
            config[name] = value.clone();
        }
        bench.write("c.json", &config.to_string());
        bench.lock();
        Self {
            bench,
            script,
            _server: server,
        }
    }

    /// Makes the folder without further settings.
    pub(crate) fn plain(era: &str, over: Over, plan: &Value) -> Self {
        Self::new(era, over, plan, json!({}), json!({}))
    }

    /// Changes how tasks go on, those that were made too.
    pub(crate) fn plan(&self, plan: &Value) {
        self.set(json!({"research": plan}));
    }

    /// Makes the server forget its tasks.
    pub(crate) fn forget(&self) {
        self.set(json!({}));
    }

    fn set(&self, tasks: Value) {
        let mut script = self.script.clone();
        script["tasks"] = tasks;
        let draft = self.bench.path("a.draft");
        std::fs::write(&draft, script.to_string()).expect("the folder is writable");
        std::fs::rename(draft, self.bench.path("a.json")).expect("a rename within one folder");
    }

    /// Returns the journal's entries of one kind.
    pub(crate) fn journal(&self, event: &str) -> Vec<Value> {
        self.bench.journal("a", event)
    }

    /// Waits until the journal has this many entries of one kind.
    pub(crate) fn await_events(&self, event: &str, count: usize) -> Vec<Value> {
        wait_until(&format!("`{event}` happens {count} times"), || {
            self.journal(event).len() >= count
        });
        self.journal(event)
    }
}

/// Returns the events of a job that has ended, as text.
pub(crate) fn events(broker: &Broker, id: &str) -> String {
    let stream = Caller::of(broker).get(&format!("/jobs/{id}/events"));
    assert_eq!(stream.status, 200, "{}", stream.text());
    stream.text()
}
