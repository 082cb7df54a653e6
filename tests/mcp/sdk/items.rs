//! Servers of the SDK over standard input and output and over HTTP, in both eras: the broker locks their tools, resources and
//! prompts, and the SDK's client gets them through the broker.

use harness::{Bench, ListeningServer, Run, binary};
use oracle_mcp::{CallError, Client, Era};
use serde_json::{Value, json};

use super::client::{call, connected, object};
use crate::http_servers::servers;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Every server: its name, which its URIs, names and texts have; its words; its path over HTTP; the revision that is locked.
const SERVERS: [(&str, &[&str], Option<&str>, &str); 5] = [
    ("stdio-modern", &[], None, MODERN),
    ("stdio-legacy", &["legacy"], None, LEGACY),
    ("http-modern", &["http"], Some("/mcp"), MODERN),
    ("http-sessions", &["http", "legacy"], Some("/mcp"), LEGACY),
    (
        "http-stateless",
        &["http", "legacy"],
        Some("/stateless/mcp"),
        LEGACY,
    ),
];

/// The source of each server, and the servers that listen.
fn sources() -> (Vec<ListeningServer>, Vec<Value>) {
    let program = binary("oracle-server");
    let (mut listening, mut nodes) = (Vec::new(), Vec::new());
    for (name, words, path, _) in SERVERS {
        let items = format!("items={name}");
        let mut source = json!({
            "resources": "locked",
            "resource_filter": ["oracle://*"],
            "prompt_filter": ["*"],
        });
        match path {
            Some(path) => {
                let run = Run::new(&program).args(words).args([&items]);
                let server = ListeningServer::start(run);
                source["url"] = server.url(path).into();
                listening.push(server);
            }
            None => {
                let mut command = vec![program.to_str().expect("UTF-8")];
                command.extend(words);
                command.push(&items);
                source["command"] = json!(command);
            }
        }
        nodes.push(json!({"path": format!("/{name}"), "type": "node", "source": source}));
    }
    (listening, nodes)
}

async fn meta_call(client: &Client, name: &str, tool: &str, args: Value) -> Value {
    let args = json!({"path": format!("/{name}/{tool}"), "args": args});
    call(client, "meta_call", args).await.expect("a result")
}

/// Calls every kind of entry of one server.
async fn uses(client: &Client, name: &str) {
    let sum = meta_call(client, name, "add", json!({"a": 2, "b": 40})).await;
    assert_eq!(sum["structuredContent"], json!({"sum": 42.0}), "{name}");
    let refused = meta_call(client, name, "refuse", json!({})).await;
    assert_eq!(refused["isError"], true, "{name}");
    assert_eq!(refused["content"][0]["text"], "this tool always refuses");
    let failed = harness::json_text(&meta_call(client, name, "fail", json!({})).await);
    let rpc = &failed["details"]["rpc"];
    assert_eq!(
        (&failed["code"], &rpc["code"], &rpc["message"]),
        (
            &json!("source_error"),
            &json!(-32602),
            &json!("planned failure")
        ),
        "{name}"
    );

    let uri = format!("oracle://{name}/greeting");
    let read = client.read(&uri).await.expect("a result");
    assert_eq!(read["contents"][0]["text"], format!("read from {uri}"));
    let prompt = format!("greet-{name}");
    let args = object(json!({"who": "Ada"}));
    let prompt = client.prompt(&prompt, args).await.expect("a result");
    let text = &prompt["messages"][0]["content"]["text"];
    assert_eq!(text, &json!(format!("{name} greets Ada")));
}

#[tokio::test]
async fn sdk_servers_with_items_are_locked_and_used_by_the_sdk_client() {
    let (_listening, nodes) = sources();
    let bench = Bench::new();
    servers::lock(&bench, &json!({"tree": nodes}));
    let lock = bench.lock_json();
    let locked = lock["sources"].as_array().expect("a list");
    for (name, .., revision) in SERVERS {
        let source = locked
            .iter()
            .find(|source| source["path"] == format!("/{name}"));
        let source = source.unwrap_or_else(|| panic!("{name} is locked"));
        assert_eq!(source["protocol_version"], revision, "{name}");
    }

    let broker = servers::serve(&bench);
    for era in [Era::Legacy, Era::Modern] {
        let client = connected(&broker, "/mcp", era).await;
        let listed = |items: Vec<Value>| items.len();
        let resources = client.resources().await.map(listed).expect("a list");
        let prompts = client.prompts().await.map(listed).expect("a list");
        assert_eq!((resources, prompts), (SERVERS.len(), SERVERS.len()));
        for (name, ..) in SERVERS {
            uses(&client, name).await;
        }
        let unknown = match client.read("oracle://other/greeting").await {
            Err(CallError::Rpc(error)) => error["code"].clone(),
            other => panic!("{other:?}"),
        };
        let code = if era == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(unknown, code, "{era:?}");
        client.close().await.expect("it ends");
    }
}
