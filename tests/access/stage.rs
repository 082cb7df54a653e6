//! A broker by `broker-gen serve` over scripted servers, with rules of access and a file of keys.

use harness::{Bench, Broker, Run, binary, node, wait_until};
use serde_json::{Value, json};

use crate::caller::{Caller, Key};

/// The file of keys, beside the config.
const KEYS: &str = "keys.json";

/// A folder with a config, its lock and keys, and the broker that serves it.
pub(crate) struct Stage {
    pub(crate) bench: Bench,
    pub(crate) broker: Broker,
}

/// A config over the scripted servers `a` and `b`, whose tools answer the same to the same.
pub(crate) fn scripted(access: Value) -> Value {
    json!({
        "types": false,
        "tree": [node("a", json!({})), node("b", json!({"max_in_flight": 1}))],
        "access": access,
    })
}

/// The program that serves `c.json` of a folder.
pub(crate) fn serve(bench: &Bench) -> Run {
    let program = binary("broker-gen");
    let beside = program.parent().expect("it lies in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    Run::new(&program)
        .folder(&bench.path(""))
        .env("PATH", format!("{}:{path}", beside.display()))
        .args(["serve", "--config", "c.json", "127.0.0.1:0"])
}

/// A folder with this config and its lock.
pub(crate) fn locked(config: &Value) -> Bench {
    let bench = Bench::new();
    for name in ["a", "b"] {
        bench.script(name, &json!({"plain": true}));
    }
    bench.write("c.json", &config.to_string());
    bench.lock();
    bench
}

impl Stage {
    /// A broker over the scripted servers with these rules and keys.
    pub(crate) fn new(access: Value, keys: &[&Key]) -> Self {
        Self::with(scripted(access), keys, |run| run)
    }

    /// A broker with this config, whose keys are in a file, started in this way.
    pub(crate) fn with(config: Value, keys: &[&Key], start: impl FnOnce(Run) -> Run) -> Self {
        Self::with_script(config, None, keys, start)
    }

    /// The same; this is the script of the server `a` once it is locked.
    pub(crate) fn with_script(
        mut config: Value,
        script: Option<&Value>,
        keys: &[&Key],
        start: impl FnOnce(Run) -> Run,
    ) -> Self {
        config["identities"]["keys_file"] = json!(KEYS);
        let bench = locked(&config);
        let entries: Vec<_> = keys.iter().map(|key| key.entry.clone()).collect();
        bench.write(KEYS, &json!({"keys": entries}).to_string());
        if let Some(script) = script {
            bench.script("a", script);
        }
        let run = start(serve(&bench)).folder(&bench.path(""));
        let broker = Broker::start_ready(run);
        Self { bench, broker }
    }

    /// A caller with this key.
    pub(crate) fn caller(&self, key: &Key) -> Caller {
        key.at(self.broker.address())
    }

    /// Writes the file of keys and has the broker read it.
    pub(crate) fn keys(&self, entries: &[Value]) {
        self.bench
            .write(KEYS, &json!({"keys": entries}).to_string());
        self.reload();
    }

    /// Has the broker read its config again, which it accepts.
    pub(crate) fn reload(&self) {
        let reloads = || self.broker.stderr().matches("reloaded; ").count();
        let before = reloads();
        self.broker.signal("HUP");
        wait_until("the broker has reloaded", || {
            let said = self.broker.stderr();
            assert!(!said.contains("not reloaded"), "{said}");
            reloads() > before
        });
    }

    /// The entries of a server's journal with this event.
    pub(crate) fn journal(&self, server: &str, event: &str) -> Vec<Value> {
        self.bench.journal(server, event)
    }

    /// Waits until a server has written this event so many times.
    pub(crate) fn await_journal(&self, server: &str, event: &str, count: usize) {
        wait_until(&format!("`{server}` writes `{event}`"), || {
            self.journal(server, event).len() >= count
        });
    }
}

/// The parts of a reply that are compared with those of another one: its status, its headers without those that
/// may differ, and its body without the id of the request.
pub(crate) type Comparable = (u16, Vec<(String, String)>, String);

/// See [`Comparable`].
pub(crate) fn comparable(reply: &harness::Response) -> Comparable {
    // The length of a body depends on that of the id.
    const MAY_DIFFER: [&str; 6] = [
        "content-length",
        "date",
        "etag",
        "mcp-session-id",
        "x-catalog-digest",
        "x-request-id",
    ];
    let headers = reply.headers.iter();
    let headers = headers.filter(|(name, _)| !MAY_DIFFER.contains(&name.as_str()));
    let id = reply.header("x-request-id").expect("each reply has an id");
    let body = reply.text().replace(id, "ID");
    (reply.status, headers.cloned().collect(), body)
}
