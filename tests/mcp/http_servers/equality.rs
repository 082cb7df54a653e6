//! Tools and results of servers over HTTP equal those that a direct client and the public client get.

use std::time::Duration;

use broker_mcp::{ClientErrorKind, HttpClient};
use broker_model::lock::{Lock, LockedSource};
use harness::{Bench, Broker, DirectHttpServer, ListeningServer};
use serde_json::{Value, json};

use super::servers;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
/// Bytes that the text of the tool `large` exceeds.
const LARGE_TEXT: usize = 600_000;

/// A server as a source.
struct Source {
    /// Its node.
    path: &'static str,
    url: String,
    /// The same server over streamable HTTP, for the direct client.
    direct: String,
    revision: &'static str,
    has_session: bool,
    calls: fn() -> Vec<(&'static str, Value)>,
}

fn python_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"text": "plain"})),
        (
            "echo",
            json!({"text": "\u{0}\u{2028}\u{1f600}\\\" é\r\ndata: no event\n\n"}),
        ),
        ("add", json!({"a": 0.1, "b": 0.2})),
        ("add", json!({"a": 1, "b": 9_007_199_254_740_991_u64})),
        ("blocks", json!({})),
        ("refuse", json!({})),
        ("large", json!({})),
        ("steps", json!({"text": "behind notifications"})),
    ]
}

fn everything_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"message": "héllo \u{2028} \"quoted\" 😀"})),
        ("get-sum", json!({"a": 0.1, "b": 0.2})),
        ("get-structured-content", json!({"location": "New York"})),
        (
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
        ),
        ("get-tiny-image", json!({})),
        ("get-resource-links", json!({"count": 3})),
        (
            "trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 2}),
        ),
    ]
}

fn rust_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"text": "\u{0}\u{2028}\u{1f600}\\\" é\n"})),
        ("add", json!({"a": 0.1, "b": 0.2})),
        ("blocks", json!({})),
        ("values", json!({})),
        ("refuse", json!({})),
        ("fail", json!({})),
    ]
}

/// The running servers, and the sources at them.
fn sources() -> (Vec<ListeningServer>, Vec<Source>) {
    let servers = vec![
        servers::python("v1", "unused"),
        servers::python("v2", "unused"),
        servers::everything("streamableHttp"),
        servers::everything("sse"),
        servers::rust(&[]),
        servers::rust(&["legacy"]),
    ];
    let of = |server: usize, path, url: &str, (revision, has_session), calls| {
        let url = servers[server].url(url);
        Source {
            path,
            direct: url.clone(),
            url,
            revision,
            has_session,
            calls,
        }
    };
    let (session, stateless, modern) = ((LEGACY, true), (LEGACY, false), (MODERN, false));
    let python: fn() -> _ = python_calls;
    let everything: fn() -> _ = everything_calls;
    let rust: fn() -> _ = rust_calls;
    let mut sources = vec![
        of(0, "/python1/sessions", "/sessions/mcp", session, python),
        of(0, "/python1/json", "/sessions-json/mcp", session, python),
        of(0, "/python1/stateless", "/stateless/mcp", stateless, python),
        of(
            0,
            "/python1/stateless-json",
            "/stateless-json/mcp",
            stateless,
            python,
        ),
        of(0, "/python1/events", "/events/sse", stateless, python),
        of(1, "/python2/sse", "/sse/mcp", modern, python),
        of(1, "/python2/json", "/json/mcp", modern, python),
        of(
            1,
            "/python2/stateless",
            "/stateless-json/mcp",
            modern,
            python,
        ),
        of(2, "/everything/http", "/mcp", session, everything),
        of(3, "/everything/sse", "/sse", stateless, everything),
        of(4, "/rust/modern", "/mcp", modern, rust),
        of(5, "/rust/sessions", "/mcp", session, rust),
        of(5, "/rust/stateless", "/stateless/mcp", stateless, rust),
    ];
    // The older transport has the same tools as the other one.
    sources[4].direct = servers[0].url("/sessions/mcp");
    sources[9].direct = servers[2].url("/mcp");
    (servers, sources)
}

#[test]
fn results_of_servers_over_http_equal_direct_ones() {
    let (_servers, sources) = sources();
    let bench = Bench::new();
    servers::lock(&bench, &config_of(&sources));
    let locked = Lock::parse("c.lock.json", &bench.lock_text()).expect("the lock is whole");
    let broker = servers::serve(&bench);
    for source in &sources {
        let path = source.path;
        let mut direct = DirectHttpServer::connect(&source.direct);
        assert_eq!(direct.is_modern(), source.revision == MODERN, "{path}");
        let mut snapshots = locked.sources.iter();
        let snapshot = snapshots.find(|snapshot| snapshot.path.as_str() == path);
        let snapshot = snapshot.unwrap_or_else(|| panic!("{path} is locked"));
        assert_eq!(snapshot.protocol_version, source.revision, "{path}");
        assert_eq!(tools_of(snapshot), sorted(direct.tools()), "{path}");
        for (tool, args) in (source.calls)() {
            let through = broker.call(&format!("{path}/{tool}"), args.clone()).json();
            let answer = direct.call(tool, &args);
            assert_eq!(outcome(&through), direct_outcome(&answer), "{path}/{tool}");
        }
    }
    large_result_is_whole(&broker);
}

fn large_result_is_whole(broker: &Broker) {
    let large = broker.result("/python1/sessions/large", json!({}));
    let text = large["content"][0]["text"].as_str().expect("a text");
    assert!(text.len() > LARGE_TEXT, "{}", text.len());
}

fn config_of(sources: &[Source]) -> Value {
    let groups = ["/python1", "/python2", "/everything", "/rust"].map(|group| {
        let below = sources
            .iter()
            .filter(|source| source.path.starts_with(&format!("{group}/")));
        let children: Vec<_> = below
            .map(|source| {
                json!({"path": source.path, "type": "node", "source": {"url": source.url}})
            })
            .collect();
        json!({"path": group, "type": "node", "children": children})
    });
    json!({ "tree": groups })
}

/// The tools in a lock as the server sent them.
fn tools_of(snapshot: &LockedSource) -> Vec<Value> {
    let raw = snapshot.exposed.iter().map(|tool| tool.raw.clone());
    sorted(raw.map(Value::Object).collect())
}

fn sorted(mut tools: Vec<Value>) -> Vec<Value> {
    tools.sort_by_key(|tool| tool["name"].to_string());
    tools
}

/// The result of a reply of the broker, or the JSON-RPC error of the server.
fn outcome(reply: &Value) -> Value {
    match reply.get("result") {
        Some(result) => json!({ "result": result }),
        None => json!({"error": reply["error"]["details"]["rpc"]}),
    }
}

fn direct_outcome(answer: &Value) -> Value {
    match answer.get("result") {
        Some(result) => json!({ "result": result }),
        None => json!({"error": answer["error"]}),
    }
}

/// Maximum time of a request of the public client. Long, since test machines are shared.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn public_client_gets_the_tools_and_results_of_a_direct_client() {
    let (_servers, sources) = sources();
    for source in &sources {
        let path = source.path;
        let client = HttpClient::new(&source.url, None).expect("the URL is valid");
        let client = client.timeout(CLIENT_TIMEOUT);
        let capabilities = client.initialize().await.expect("a handshake");
        assert!(capabilities["tools"].is_object(), "{path}: {capabilities}");
        assert_eq!(client.session_id().is_some(), source.has_session, "{path}");
        let mut direct = DirectHttpServer::connect(&source.direct);
        let listed = client.list_tools().await.expect("a list");
        let listed: Vec<_> = listed.into_iter().map(Value::Object).collect();
        assert_eq!(listed, direct.tools(), "{path}");
        for (tool, args) in (source.calls)() {
            let result = match client.call_tool(tool, &args).await {
                Ok(result) => json!({ "result": result }),
                Err(error) => match error.kind() {
                    ClientErrorKind::Tool { result } => json!({ "result": result }),
                    ClientErrorKind::Rpc { error, .. } => json!({ "error": error }),
                    _ => panic!("{path}/{tool}: {error}"),
                },
            };
            let answer = direct.call(tool, &args);
            assert_eq!(result, direct_outcome(&answer), "{path}/{tool}");
        }
        client.close().await.expect("it closes");
    }
}
