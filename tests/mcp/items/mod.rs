//! Prompts, templates and resources: what is locked, what is live, who may read what, and what reaches the server.

mod apps;
mod discovery;
mod drift;
mod live;
mod locked;
mod long_answers;
mod real;
mod spellings;
mod uris;

use std::path::{Path, PathBuf};

use harness::mcp_http::McpSession;
use harness::{Bench, Broker, Output, Run, binary, official_python};
use serde_json::{Value, json};

/// A script of this folder as a command.
fn script(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/items");
    vec![official_python("v1"), folder.join(name)]
}

/// A folder with a config of servers that list what their files say.
struct Items(Bench);

impl Items {
    /// One server on `/a` with these members of its source.
    fn new(lists: &Value, members: &Value) -> Self {
        let items = Self(Bench::new());
        items.set(lists);
        items.configure(&[("a", members)]);
        items
    }

    /// Servers with these members of their sources. The lists of each are in `NAME.items`.
    fn configure(&self, sources: &[(&str, &Value)]) {
        let nodes = sources.iter().map(|(name, members)| {
            let mut source = (*members).clone();
            let mut command = script("server.py");
            command.extend(["items", "log"].map(|ending| self.0.path(&format!("{name}.{ending}"))));
            source["command"] = json!(command);
            json!({"path": format!("/{name}"), "type": "node", "source": source})
        });
        let config = json!({"tree": nodes.collect::<Vec<_>>()});
        self.0.write("c.json", &config.to_string());
    }

    /// Sets the lists of the server on `/a`.
    fn set(&self, lists: &Value) {
        // At once, so that the server never reads a part.
        self.0.write("new", &lists.to_string());
        std::fs::rename(self.0.path("new"), self.0.path("a.items"))
            .expect("the folder is writable");
    }

    fn lock(&self) -> Output {
        self.0.verb(&["lock"])
    }

    /// Locks and serves.
    fn serve(&self) -> Broker {
        self.serve_with(&[])
    }

    fn serve_with(&self, args: &[&str]) -> Broker {
        let locked = self.lock();
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
        self.serve_lock(args)
    }

    /// Serves the lock that exists.
    fn serve_lock(&self, args: &[&str]) -> Broker {
        let run = Run::new(&binary("broker-gen")).folder(&self.0.path(""));
        Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]).args(args))
    }

    /// The requests other than lists that the server received.
    fn requests(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.0.path("a.log")).unwrap_or_default();
        let lines = log.lines().map(serde_json::from_str);
        lines.map(|line| line.expect("a request")).collect()
    }
}

/// A legacy session.
fn session(broker: &Broker) -> McpSession {
    McpSession::begin(broker.address(), "/mcp")
}

/// The error of a request.
fn error(session: &McpSession, method: &str, params: &Value) -> Value {
    let answer = session.ask(&json!("e"), method, params).json();
    assert!(answer["error"].is_object(), "{answer}");
    answer["error"].clone()
}

/// The values of a member of a list.
fn each(list: &Value, member: &str) -> Vec<String> {
    let items = list.as_array().expect("a list");
    let texts = items.iter().map(|item| item[member].as_str());
    texts.map(|text| text.expect("a text").to_owned()).collect()
}

/// The paths of the entries below a node, with their types.
fn tree(broker: &Broker, node: &str) -> Vec<(String, String)> {
    let reply = broker.post("/meta_tree", &json!({"path": node})).json();
    let children = reply["children"].as_array().expect("children");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    children
        .iter()
        .map(|child| (text(&child["path"]), text(&child["type"])))
        .collect()
}
