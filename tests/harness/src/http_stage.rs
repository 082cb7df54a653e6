//! A broker over scripted servers over HTTP: `/a` has a script, `/b` none. The broker is `broker-gen serve` with a
//! lock that each stage makes.

use serde_json::{Value, json};

use crate::faults::ECHO;
use crate::http::Response;
use crate::{Broker, Chaos, ChaosServer, Output, ResourceUsage, Run, access, binary, wait_until};

/// Two servers, and the folder with their scripts, the config and the lock.
#[derive(Debug)]
pub struct HttpSources {
    /// The scripts and journals of `a` and `b`.
    pub chaos: Chaos,
    /// The server of `/a`.
    pub a: ChaosServer,
    /// The server of `/b`.
    pub b: ChaosServer,
    variables: Vec<(String, String)>,
}

/// A running broker over these servers.
#[derive(Debug)]
pub struct HttpStage {
    /// The servers.
    pub sources: HttpSources,
    /// The broker.
    pub broker: Broker,
    /// The resources of the broker at its start.
    pub before: ResourceUsage,
}

/// A node whose source is the server at this port.
fn node(name: &str) -> Value {
    let variable = name.to_ascii_uppercase();
    let url = format!("http://127.0.0.1:${{{variable}_PORT}}/mcp");
    json!({"path": format!("/{name}"), "type": "node", "source": {"url": url, "startup_timeout": 20}})
}

impl HttpSources {
    /// Servers with this script for `a`, and a config with a change.
    pub fn with(script: &Value, change: impl FnOnce(&mut Value)) -> Self {
        let chaos = Chaos::new();
        chaos.script("a", script);
        let (a, b) = (
            ChaosServer::start(&chaos, "a"),
            ChaosServer::start(&chaos, "b"),
        );
        let mut config = json!({
            "types": false, "limits": {"line_bytes": 1 << 20}, "on_unreachable": "serve",
            "tree": [node("a"), node("b")],
        });
        change(&mut config);
        access::add(&mut config);
        chaos.file("c.json", &config.to_string());
        let port = |server: &ChaosServer| server.port().to_owned();
        let variables = vec![
            ("A_PORT".to_owned(), port(&a)),
            ("B_PORT".to_owned(), port(&b)),
        ];
        Self {
            chaos,
            a,
            b,
            variables,
        }
    }

    /// Sets a variable of the config.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `broker-gen VERB --config c.json` with further arguments.
    pub fn verb(&self, verb: &str, args: &[&str]) -> Run {
        let run = Run::new(&binary("broker-gen"))
            .folder(self.chaos.path())
            .args([verb, "--config", "c.json"])
            .args(args);
        let variables = self.variables.iter();
        variables.fold(run, |run, (name, value)| run.env(name, value))
    }

    /// Locks the servers; the output of the program.
    pub fn lock(&self) -> Output {
        let output = self.verb("lock", &[]).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output
    }

    /// Locks the servers without faults, then starts a broker with these further arguments.
    pub fn serve(self, script: &Value, args: &[&str]) -> HttpStage {
        self.lock();
        self.chaos.script("a", script);
        let args = [&["127.0.0.1:0"], args].concat();
        let broker = Broker::start_ready(self.verb("serve", &args));
        wait_until("every source is there", || {
            let sources = broker.get("/sources").json();
            let sources = sources["sources"].as_array().cloned().unwrap_or_default();
            sources.len() == 2 && sources.iter().all(|source| source["state"] == "ready")
        });
        let before = ResourceUsage::measure(broker.pid());
        HttpStage {
            sources: self,
            broker,
            before,
        }
    }
}

impl HttpStage {
    /// The broker with this script for `/a`.
    pub fn new(script: &Value) -> Self {
        Self::with(script, |_| {})
    }

    /// The broker with another config.
    pub fn with(script: &Value, change: impl FnOnce(&mut Value)) -> Self {
        HttpSources::with(script, change).serve(script, &[])
    }

    /// The scripts and journals.
    pub fn chaos(&self) -> &Chaos {
        &self.sources.chaos
    }

    /// Replaces the script of `/a`.
    pub fn script(&self, script: &Value) {
        self.chaos().script("a", script);
    }

    /// `ECHO` of a text.
    pub fn echo(&self, text: &str) -> Response {
        self.broker.call(ECHO, json!({ "text": text }))
    }

    /// The state of `/a`, with its reason.
    pub fn state(&self) -> Value {
        let sources = self.broker.get("/sources").json();
        sources["sources"][0].clone()
    }

    /// Asserts that the broker serves `/b`, has the resources that it had at its start, and has not panicked.
    pub fn is_as_before(&self) -> ResourceUsage {
        self.broker.result("/b/add", json!({"a": 1, "b": 2}));
        let now = self.before.await_again(self.broker.pid());
        let log = self.broker.stderr();
        assert!(!log.contains("panic"), "{log}");
        now
    }
}
