//! The mode `search` with the official clients: search, call, registered tool, eviction and list change, over standard
//! input and output and over HTTP.

use std::ffi::OsStr;
use std::path::Path;

use harness::{Broker, Run, binary, json_text};
use serde_json::{Value, json};

use super::{CLIENTS, client};

/// Searches twice with so many hits that tools of the first search leave the list, and calls a tool by its flat name.
fn steps() -> Value {
    let search = |query: &str| json!({"name": "retrieve_tools", "arguments": {"query": query}});
    let call = json!({"name": "call_tool", "arguments": {"name": "/everything/echo", "arguments": {"message": "hi"}}});
    let flat = json!({"name": "everything-echo", "arguments": {"message": "hi"}});
    json!([
        search("list repository issues"),
        {"list": true},
        search("query database table"),
        {"list": true},
        flat,
        call,
    ])
}

/// The broker of the recorded tools, which answers calls with the name of the tool.
fn args(routing: &str) -> [&str; 6] {
    [
        "--mcp-mode",
        "search",
        "--top-k",
        "50",
        "--routing",
        routing,
    ]
}

fn seen(script: (&str, &str, &str), target: &[&OsStr]) -> Value {
    let (program, name, mode) = script;
    let steps = steps().to_string();
    let mut rest = vec![OsStr::new("--steps"), OsStr::new(&steps)];
    rest.extend(target);
    client(program, name, mode, &rest)
}

fn check(seen: &Value, is_dynamic: bool, who: &str) {
    let names = |at: usize| {
        let list = seen["calls"][at].as_array();
        let list = list.unwrap_or_else(|| panic!("{who}: {seen}"));
        list.iter()
            .map(|name| name.as_str().expect("a name"))
            .collect::<Vec<_>>()
    };
    let answer = |at: usize| json_text(&seen["calls"][at]);
    let count = |value: &Value| value.as_array().map_or(0, Vec::len);
    assert_eq!(count(&answer(0)["tools"]), 50, "{who}");
    if is_dynamic {
        assert_eq!(names(1).len(), 51, "{who}");
        assert_eq!(names(3).len(), 65, "{who}");
        assert!(count(&answer(2)["evicted"]) > 0, "{who}");
        assert!(
            seen["changes"].as_u64() >= Some(2),
            "{who}: {}",
            seen["changes"]
        );
    } else {
        assert_eq!(names(1), ["retrieve_tools", "call_tool"], "{who}");
        assert_eq!(names(3), names(1), "{who}");
        assert_eq!(answer(2)["evicted"], json!([]), "{who}");
        assert_eq!(seen["changes"], 0, "{who}");
    }
    for call in [4, 5] {
        let result = &seen["calls"][call];
        assert!(
            result["content"].is_array() && result["isError"] != true,
            "{who}: {result}"
        );
    }
}

#[test]
fn every_client_searches_and_calls_over_stdio_with_both_routings() {
    let broker = binary("corpus-broker");
    let config = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/corpus-broker/config.json"
    );
    for (program, script, mode, _) in CLIENTS {
        for routing in ["CALL_TOOL", "DYNAMIC"] {
            let args = args(routing);
            let mut target = vec![broker.as_os_str(), OsStr::new("stdio"), OsStr::new(config)];
            target.extend(args.map(OsStr::new));
            let who = format!("{script} {mode} {routing}");
            let seen = seen((program, script, mode), &target);
            check(&seen, routing == "DYNAMIC" && mode == "legacy", &who);
        }
    }
}

#[test]
fn every_client_searches_and_calls_over_http_with_both_routings() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus-broker"));
    for routing in ["CALL_TOOL", "DYNAMIC"] {
        let run = Run::new(&binary("corpus-broker")).folder(folder);
        let given = ["127.0.0.1:0", "config.json"];
        let broker = Broker::start_ready(run.args(given.iter().chain(&args(routing))));
        let url = format!("http://{}/mcp", broker.address());
        for (program, script, mode, _) in CLIENTS {
            let who = format!("{script} {mode} {routing}");
            let seen = seen((program, script, mode), &[OsStr::new(&url)]);
            check(&seen, routing == "DYNAMIC" && mode == "legacy", &who);
        }
    }
}
