//! The log line of each call: request, path, source, digest, outcome, time.

use harness::{Broker, Chaos, Response, wait_until};
use serde_json::{Value, json};

use super::replies::events;

fn start(format: &str) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    let tools = Chaos::tools_asking_more("echo");
    chaos.script("optional", &json!({ "tools": tools }));
    let args = [
        "127.0.0.1:0",
        "--log-format",
        format,
        "--log-level",
        "debug",
    ];
    let broker = Broker::start_ready(chaos.run("chaos-broker", &args));
    wait_until("the tool is withdrawn", || {
        broker.source("/optional")["withdrawn"] == 1
    });
    (chaos, broker)
}

/// Calls, with the source and outcome of each.
fn calls() -> [(&'static str, Value, &'static str, &'static str); 6] {
    [
        ("/a/echo", json!({"text": "secret words"}), "/a", "ok"),
        ("/a/echo", json!({"text": 1}), "/a", "args_invalid"),
        ("/a/rpc_fail", json!({}), "/a", "source_error"),
        ("/a/slow", json!({"ms": 30000}), "/a", "call_timeout"),
        (
            "/optional/echo",
            json!({"text": "x"}),
            "/optional",
            "tool_withdrawn",
        ),
        ("/b/nothing", json!({}), "", "path_not_found"),
    ]
}

fn digest(broker: &Broker, path: &str) -> String {
    let described = broker.post("/meta_desc", &json!({"path": path})).json();
    described["digest"].as_str().unwrap_or_default().to_owned()
}

fn id(reply: &Response) -> String {
    let id = reply.header("x-request-id");
    id.expect("every reply has one").to_owned()
}

#[test]
fn call_log_line_in_json_has_the_tool_digest() {
    let (_chaos, broker) = start("json");
    for (path, args, source, outcome) in calls() {
        let id = id(&broker.call(path, args));
        let line = || {
            let calls = events(&broker, "call").into_iter();
            calls
                .filter(|call| call["request_id"] == *id)
                .collect::<Vec<_>>()
        };
        wait_until("the call is logged", || !line().is_empty());
        let lines = line();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = &lines[0];
        let digest = digest(&broker, path);
        assert_eq!(source.is_empty(), digest.is_empty());
        assert_eq!(
            [
                &line["path"],
                &line["source"],
                &line["outcome"],
                &line["digest"]
            ],
            [path, source, outcome, &digest],
            "{line}"
        );
        assert!(line["ms"].as_f64().is_some_and(|ms| ms >= 0.0), "{line}");
        assert!(line["timestamp"].is_string(), "{line}");
    }
    assert!(!broker.stderr().contains("secret words"));
}

#[test]
fn call_log_line_for_people_has_the_tool_digest() {
    let (_chaos, broker) = start("human");
    for (path, args, source, outcome) in calls() {
        let id = id(&broker.call(path, args));
        let digest = digest(&broker, path);
        let line = || {
            let log = broker.stderr();
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let mut lines = whole.lines().filter(|line| line.contains(&id));
            lines
                .find(|line| line.contains("DEBUG call "))
                .map(str::to_owned)
        };
        wait_until("the call is logged", || line().is_some());
        let line = line().expect("it was just there");
        for part in [
            format!(" path=\"{path}\""),
            format!(" source=\"{source}\""),
            format!(" digest=\"{digest}\""),
            format!(" outcome=\"{outcome}\""),
            " ms=".to_owned(),
            format!(" request_id=\"{id}\""),
        ] {
            assert!(line.contains(&part), "{part}: {line}");
        }
    }
}
