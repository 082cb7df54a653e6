//! `broker-gen serve` over the recorded tools: each reply has the bytes of the compiled broker. Its trees of the other
//! fixtures.

use std::path::Path;

use harness::{Broker, Response, Run, assert_expected, binary, fixture_config, request};
use serde_json::{Value, json};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"))
}

fn compiled(args: &[&str]) -> Run {
    let run = Run::new(&binary("corpus-broker")).folder(folder());
    run.args(args)
}

fn served(args: &[&str]) -> Run {
    let run = Run::new(&binary("broker-gen")).folder(folder());
    run.args(["serve", "--config", "config.json"]).args(args)
}

/// A request and its reply: status, the headers of the catalog, the body.
type Exchange = (String, u16, [Option<String>; 3], Vec<u8>);

fn exchange(asked: String, response: Response) -> Exchange {
    let names = ["x-catalog-digest", "etag", "content-type"];
    let headers = names.map(|name| response.header(name).map(str::to_owned));
    (asked, response.status, headers, response.body)
}

/// The replies to every request that the tree of the broker makes possible.
fn replies(broker: &Broker) -> Vec<Exchange> {
    let mut all = Vec::new();
    let mut ask = |route: &str, body: Value| {
        let response = broker.post(route, &body);
        let json = response.json();
        all.push(exchange(format!("{route} {body}"), response));
        json
    };
    let whole = ask("/meta_tree", json!({"depth": 16}));
    let (mut open, mut nodes, mut tools) = (vec![whole], Vec::new(), Vec::new());
    while let Some(entry) = open.pop() {
        let path = entry["path"].as_str().expect("a path").to_owned();
        match entry["children"].as_array() {
            Some(children) => {
                nodes.push(path);
                open.extend(children.iter().cloned());
            }
            None => tools.push(path),
        }
    }
    assert_eq!((nodes.len(), tools.len()), (56, 1455));
    for path in &nodes {
        for depth in 1..=3 {
            ask("/meta_tree", json!({"path": path, "depth": depth}));
        }
    }
    for path in nodes.iter().chain(&tools) {
        ask("/meta_desc", json!({"path": path}));
    }
    for paths in tools.chunks(50) {
        ask("/meta_desc", json!({"paths": paths}));
    }
    for (route, body) in [
        ("/meta_tree", json!({"path": "/git/git_status"})),
        ("/meta_desc", json!({"path": "/git/git_statu"})),
        ("/meta_call", json!({"path": "/git"})),
        (
            "/meta_call",
            json!({"path": "/git/git_status", "args": {"repo_path": 1}}),
        ),
        (
            "/meta_call",
            json!({"path": "/git/git_status", "args": {"repo_path": "x"}}),
        ),
    ] {
        ask(route, body);
    }
    let health = request(broker.address(), "GET", "/healthz", &[], b"");
    all.push(exchange("/healthz".to_owned(), health));
    all.into_iter().map(without_request_id).collect()
}

/// The id of a request is the only part of a reply that differs between two requests.
fn without_request_id((asked, status, headers, body): Exchange) -> Exchange {
    let mut json: Value = serde_json::from_slice(&body).expect("a reply is JSON");
    let id = json.pointer_mut("/error/request_id").map(Value::take);
    let body = match id.as_ref().and_then(Value::as_str) {
        Some(id) => {
            let text = String::from_utf8(body).expect("a reply is UTF-8");
            text.replace(id, "…").into_bytes()
        }
        None => body,
    };
    (asked, status, headers, body)
}

#[test]
fn serve_answers_with_the_bytes_of_the_compiled_broker() {
    let answers = |run: Run| {
        let broker = Broker::start_ready(run);
        let answers = replies(&broker);
        let (status, log) = broker.terminate();
        assert!(status.success(), "{status}: {log}");
        (answers, log)
    };
    let (expected, log) = answers(compiled(&["127.0.0.1:0", "config.json"]));
    assert!(log.contains("ready: 1455 tools of 55 sources"), "{log}");
    let (found, log) = answers(served(&["127.0.0.1:0"]));
    assert!(log.contains("ready: 1455 tools of 55 sources"), "{log}");
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(&found) {
        assert!(
            expected == found,
            "compiled: {expected:?}\nserved: {found:?}"
        );
        assert!(
            expected.0 == "/healthz" || expected.2[0].is_some(),
            "{} has the digest of the catalog",
            expected.0
        );
    }
}

#[test]
fn serve_prints_the_tree_of_the_compiled_broker() {
    for form in ["--dump-tree", "--dump-tree=json"] {
        let expected = compiled(&[form]).output();
        let found = served(&[form]).output();
        assert_eq!(
            (expected.code, found.code),
            (Some(0), Some(0)),
            "{}",
            found.stderr
        );
        assert!(expected.stdout == found.stdout, "{form}");
        assert_eq!((found.stderr.as_str(), expected.stderr.as_str()), ("", ""));
    }
}

#[test]
fn serve_prints_the_expected_trees_of_the_fixtures() {
    for fixture in [
        "budget-broker",
        "costly-broker",
        "oracle-broker",
        "real-broker",
    ] {
        let config = fixture_config(fixture);
        let run = Run::new(&binary("broker-gen")).args(["serve", "--dump-tree", "--config"]);
        let output = run.args([&config]).output();
        assert_eq!(output.code, Some(0), "{fixture}: {}", output.stderr);
        assert_expected(&config.with_file_name("tree.txt"), &output.stdout);
    }
}
