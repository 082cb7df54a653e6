//! A running broker and its MCP client: what a model reads at the start of a session, and the text of a reply.

use std::path::{Path, PathBuf};

use harness::mcp_http::{ACCEPT, McpSession, initialize};
use harness::{Broker, Run, binary, request};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The revision that the client asks for.
const REVISION: &str = "2025-11-25";
const ROUTE: &str = "/mcp/meta";

/// A broker in the mode `meta`, with one session.
pub(crate) struct Stage {
    broker: Broker,
    session: McpSession,
    _folder: Option<TempDir>,
}

/// A reply of a meta-tool.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The text that a client shows to a model.
    pub(crate) text: String,
    /// The JSON that some clients show in place of the text.
    pub(crate) structured: Option<String>,
    pub(crate) is_error: bool,
}

/// The folder of the broker over the recorded tools of all servers.
pub(crate) fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus-broker")
}

/// The recorded answers of a server.
pub(crate) fn recording(server: &str) -> Value {
    let file = corpus_folder().join(format!("servers/{server}.json"));
    let text = std::fs::read_to_string(&file).expect("the server is recorded");
    serde_json::from_str(&text).expect("a recording is JSON")
}

impl Stage {
    /// All servers of the corpus.
    pub(crate) fn corpus() -> Self {
        let run = Run::new(&binary("corpus-broker")).folder(&corpus_folder());
        let broker = Broker::start_ready(run.args(["127.0.0.1:0", "config.json"]));
        Self::new(broker, None)
    }

    /// Some servers of the corpus, each mounted directly below the root.
    pub(crate) fn of(servers: &[&str]) -> Self {
        Self::serve(&json!({ "tree": Self::nodes(servers) }))
    }

    /// The same with jobs that survive a restart.
    pub(crate) fn with_jobs(servers: &[&str]) -> Self {
        let jobs = json!({ "store": "jobs.sqlite" });
        Self::serve(&json!({ "tree": Self::nodes(servers), "jobs": jobs }))
    }

    fn nodes(servers: &[&str]) -> Vec<Value> {
        servers.iter().map(|server| Self::node(server)).collect()
    }

    /// The node of a server of the corpus, without a summary.
    pub(crate) fn node(server: &str) -> Value {
        let file = corpus_folder().join(format!("servers/{server}.json"));
        let command = [&binary("chaos-mcp"), Path::new("--replay"), &file].map(Path::to_path_buf);
        json!({ "path": format!("/{server}"), "source": { "command": command } })
    }

    /// The broker of a config.
    pub(crate) fn serve(config: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = config.to_string();
        let config = folder.path().join("config.json");
        std::fs::write(&config, text).expect("the config is written");
        let config = config.to_string_lossy();
        let locked = Run::new(&binary("broker-gen"))
            .args(["lock", "--config", &config])
            .output();
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
        let run = Run::new(&binary("broker-gen"));
        let run = run.args(["serve", "--config", &config, "127.0.0.1:0"]);
        Self::new(Broker::start_ready(run), Some(folder))
    }

    /// A broker that was started elsewhere.
    pub(crate) fn new(broker: Broker, folder: Option<TempDir>) -> Self {
        let session = McpSession::begin(broker.address(), ROUTE);
        Self {
            broker,
            session,
            _folder: folder,
        }
    }

    /// The instructions of `initialize`.
    pub(crate) fn instructions(&self) -> String {
        let headers = [("Content-Type", "application/json"), ("Accept", ACCEPT)];
        let body = initialize(REVISION);
        let address = self.broker.address();
        let answer = request(address, "POST", ROUTE, &headers, body.as_bytes()).json();
        let text = answer["result"]["instructions"].as_str();
        text.expect("the broker has instructions").to_owned()
    }

    /// The list of tools.
    pub(crate) fn tools(&self) -> Value {
        self.session.result("tools/list", &json!({}))["tools"].take()
    }

    /// Calls a meta-tool.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Reply {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.session.result("tools/call", &params);
        let text = result["content"][0]["text"].as_str();
        Reply {
            text: text.expect("a reply is text").to_owned(),
            structured: result.get("structuredContent").map(Value::to_string),
            is_error: result["isError"] == true,
        }
    }

    /// Whether a tool calls itself deprecated in its summary or its first sentence.
    pub(crate) fn is_deprecated(&self, path: &str) -> bool {
        let entry = self
            .broker
            .post("/meta_desc", &json!({ "path": path }))
            .json();
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_lowercase();
        let description = text("description");
        let first = description.split(['.', '\n']).next().unwrap_or_default();
        [text("summary").as_str(), first]
            .iter()
            .any(|text| text.contains("deprecated"))
    }

    /// The paths of all tools.
    pub(crate) fn paths(&self) -> Vec<String> {
        let whole = self
            .broker
            .post("/meta_tree", &json!({ "depth": 16 }))
            .json();
        let (mut open, mut tools) = (vec![whole], Vec::new());
        while let Some(entry) = open.pop() {
            match entry["children"].as_array() {
                Some(children) => open.extend(children.iter().rev().cloned()),
                None => tools.push(entry["path"].as_str().expect("a path").to_owned()),
            }
        }
        tools
    }
}
