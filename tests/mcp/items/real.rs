//! Public servers with prompts, templates and resources: what a client gets through the broker is what it gets directly.

use std::path::{Path, PathBuf};

use harness::mcp_http::McpSession;
use harness::{Bench, Broker, DirectServer, Run, binary};
use serde_json::{Value, json};

use super::{each, script};

/// The mark that the broker adds to live resources.
fn without_mark(mut value: Value) -> Value {
    if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("dev.mcp-broker/reviewed");
        if meta.is_empty() {
            value.as_object_mut().expect("an object").remove("_meta");
        }
    }
    value
}

fn sorted(list: &Value, member: &str) -> Vec<Value> {
    let mut items: Vec<Value> = list[member].as_array().expect("a list").clone();
    items = items.into_iter().map(without_mark).collect();
    items.sort_by_key(Value::to_string);
    items
}

/// A server, directly and behind a broker.
struct Pair {
    direct: DirectServer,
    broker: Broker,
    session: McpSession,
    bench: Bench,
}

impl Pair {
    fn new(command: &[PathBuf], mode: &str) -> Self {
        let bench = Bench::new();
        let source = json!({
            "command": command,
            "resources": mode,
            "resource_filter": ["*"],
            "prompt_filter": ["*"],
        });
        let tree = json!([{"path": "/s", "type": "node", "source": source}]);
        bench.write("c.json", &json!({"tree": tree}).to_string());
        let locked = bench.verb(&["lock"]);
        assert_eq!(locked.code, Some(0), "{}", locked.stderr);
        let run = Run::new(&binary("broker-gen")).folder(&bench.path(""));
        let broker = Broker::start_ready(run.args(["serve", "0", "--config", "c.json"]));
        let direct = Run::new(&command[0]).args(&command[1..]);
        Self {
            direct: DirectServer::start(direct),
            session: McpSession::begin(broker.address(), "/mcp"),
            broker,
            bench,
        }
    }

    /// The same list on both sides, in any order.
    fn list(&mut self, method: &str, member: &str) -> Vec<Value> {
        let direct = self.direct.request(method, json!({}));
        let direct = sorted(&direct["result"], member);
        let brokered = self.session.result(method, &json!({}));
        assert_eq!(sorted(&brokered, member), direct, "{method}");
        direct
    }

    /// The same result on both sides.
    fn same(&mut self, method: &str, params: &Value) -> Value {
        let direct = self.direct.request(method, params.clone());
        assert!(direct["result"].is_object(), "{direct}");
        let brokered = self.session.result(method, params);
        assert_eq!(brokered, direct["result"], "{method} {params}");
        brokered
    }
}

fn server(name: &str) -> Vec<PathBuf> {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real-broker/servers");
    assert!(
        servers.join("installed").exists(),
        "the real servers are not installed; run tests/real-broker/install"
    );
    vec![servers.join("node_modules/.bin").join(name)]
}

#[test]
fn server_of_fastmcp_is_the_same_behind_the_broker() {
    for mode in ["live", "locked"] {
        let mut pair = Pair::new(&script("fastmcp.py"), mode);
        assert_eq!(pair.list("resources/list", "resources").len(), 1);
        assert_eq!(
            pair.list("resources/templates/list", "resourceTemplates")
                .len(),
            2
        );
        assert_eq!(pair.list("prompts/list", "prompts").len(), 1);
        for uri in [
            "library://catalog",
            "library://books/Emma",
            "library://shelves/7/a%20b",
        ] {
            pair.same("resources/read", &json!({"uri": uri}));
        }
        pair.same(
            "prompts/get",
            &json!({"name": "review", "arguments": {"title": "Emma"}}),
        );
        let reference = json!({"type": "ref/prompt", "name": "review"});
        let argument = json!({"name": "title", "value": "E"});
        let completed = pair.same(
            "completion/complete",
            &json!({"ref": reference, "argument": argument}),
        );
        assert_eq!(completed["completion"]["values"], json!(["Emma"]));
        let by_path = pair
            .broker
            .result("/s/place", json!({"shelf": "7", "place": "a b"}));
        assert_eq!(by_path["contents"][0]["uri"], "library://shelves/7/a%20b");
    }
}

#[test]
fn server_everything_is_the_same_behind_the_broker() {
    let mut pair = Pair::new(&server("mcp-server-everything"), "live");
    let resources = pair.list("resources/list", "resources");
    assert!(!resources.is_empty());
    for resource in resources.iter().take(3) {
        pair.same("resources/read", &json!({"uri": resource["uri"]}));
    }
    assert!(
        !pair
            .list("resources/templates/list", "resourceTemplates")
            .is_empty()
    );
    let prompts = pair.list("prompts/list", "prompts");
    assert!(prompts.len() > 1);
    for prompt in prompts
        .iter()
        .filter(|prompt| prompt["arguments"].is_null())
    {
        pair.same("prompts/get", &json!({"name": prompt["name"]}));
    }
}

#[test]
fn server_memory_is_the_same_behind_the_broker() {
    let mut pair = Pair::new(&server("mcp-server-memory"), "live");
    assert_eq!(pair.list("resources/list", "resources").len(), 1);
    pair.same(
        "resources/read",
        &json!({"uri": "memory://knowledge-graph"}),
    );
}

#[test]
fn server_without_prompts_and_resources_has_tools_only() {
    let mut command = server("mcp-server-filesystem");
    command.push(std::env::temp_dir());
    let pair = Pair::new(&command, "live");
    let prompts = pair.session.result("prompts/list", &json!({}));
    assert_eq!(prompts["prompts"], json!([]));
    let resources = pair.session.result("resources/list", &json!({}));
    assert_eq!(resources["resources"], json!([]));
    let lock = pair.bench.lock_json();
    let names = each(&lock["sources"][0]["exposed"], "upstream_name");
    assert!(
        names.len() > 3 && !names.iter().any(|name| name.contains(':')),
        "{names:?}"
    );
}
