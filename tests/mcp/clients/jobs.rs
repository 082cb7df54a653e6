//! Jobs in the loop of a model's host: a slow tool ends with its result in each mode, and no official client throws because
//! a call became a job.

use std::ffi::OsStr;
use std::thread;

use harness::{Bench, Broker, Run, binary};
use serde_json::{Value, json};

use super::{CLIENTS, client};

/// The tools of [`many_tools`]; every second one is slow enough to become a job.
const TOOLS: usize = 20;

/// Returns the seconds that the slow tool takes.
fn slow_seconds() -> u64 {
    let seconds = std::env::var("MCP_BROKER_SLOW_TOOL_SECONDS");
    seconds.map_or(5, |seconds| seconds.parse().expect("a number"))
}

/// Starts a broker with these tools, whose calls become jobs after a second.
fn broker(mode: &str, tools: &Value, on_call: &Value, timeout: u64) -> (Bench, Broker) {
    let bench = Bench::new();
    let script = json!({"tools": tools, "built_in": false, "on_call": on_call});
    bench.write("s.json", &script.to_string());
    let source = json!({
        "command": [binary("chaos-mcp"), "--script", bench.path("s.json")],
        "timeout": timeout,
    });
    let config = json!({
        "tree": [{"path": "/s", "type": "node", "source": source}],
        "mcp": {"mode": mode},
        "jobs": {"store": "jobs.sqlite", "promote_after": 1},
    });
    bench.write("c.json", &config.to_string());
    let broker_gen = || Run::new(&binary("broker-gen")).folder(&bench.path(""));
    let locked = broker_gen().args(["lock", "--config", "c.json"]).output();
    assert_eq!(locked.code, Some(0), "{}{}", locked.stdout, locked.stderr);
    let broker = Broker::start_ready(broker_gen().args(["serve", "0", "--config", "c.json"]));
    (bench, broker)
}

/// Runs the steps in each client, each with a broker, and passes what it saw on.
fn in_each_client(
    steps: &[Value],
    start: impl Fn() -> (Bench, Broker) + Sync,
    check: impl Fn(&str, &Value) + Sync,
) {
    thread::scope(|scope| {
        for (program, script, mode, _) in CLIENTS {
            let (start, check) = (&start, &check);
            scope.spawn(move || {
                let (_bench, broker) = start();
                let url = format!("http://{}/mcp", broker.address());
                let steps = json!(steps).to_string();
                let rest = ["--steps", &steps, &url].map(OsStr::new);
                let seen = client(program, script, mode, &rest);
                check(&format!("{script} {mode}"), &seen);
            });
        }
    });
}

/// Returns the calls of what a client saw, none of which threw.
fn calls<'a>(name: &str, seen: &'a Value) -> &'a [Value] {
    let calls = seen["calls"].as_array().expect("a list");
    for call in calls {
        assert!(call.get("thrown").is_none(), "{name}: {call}");
        assert_ne!(call["isError"], true, "{name}: {call}");
    }
    calls
}

#[test]
fn slow_tool_ends_with_its_result_in_each_mode_in_the_loop_of_a_host() {
    let seconds = slow_seconds();
    let wait = 3 * seconds + 60;
    let tools = json!([{"name": "slow", "inputSchema": {"type": "object"}}]);
    let block = json!({"type": "text", "text": "done"});
    let on_call = json!({
        "slow": {"delay_ms": 1000 * seconds, "then": {"result": {"content": [block]}}},
    });
    let step = |mode: Option<&str>| {
        let mut arguments = json!({"path": "/s/slow", "args": {}});
        if let Some(mode) = mode {
            arguments["mode"] = json!(mode);
        }
        json!({"name": "meta_call", "arguments": arguments, "wait": wait})
    };
    let steps = [step(Some("sync")), step(Some("async")), step(None)];
    in_each_client(
        &steps,
        || broker("meta", &tools, &on_call, wait),
        |name, seen| {
            let calls = calls(name, seen);
            let is_job = calls.iter().map(|call| call["job_id"].is_string());
            assert_eq!(is_job.collect::<Vec<_>>(), [false, true, true], "{name}");
            for call in calls {
                assert_eq!(call["content"][0]["text"], "done", "{name}: {call}");
            }
        },
    );
}

#[test]
fn clients_list_and_call_tools_with_output_schemas_of_which_half_become_jobs() {
    let name = |at: usize| format!("t{at}");
    let tools = (0..TOOLS).map(|at| {
        json!({
            "name": name(at),
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        })
    });
    let tools = json!(tools.collect::<Vec<_>>());
    let mut on_call = json!({});
    for at in 0..TOOLS {
        let content = json!({"n": at});
        let block = json!({"type": "text", "text": content.to_string()});
        let result = json!({"result": {"content": [block], "structuredContent": content}});
        on_call[name(at)] = match at % 2 {
            0 => result,
            _ => json!({"delay_ms": 1_500, "then": result}),
        };
    }
    let steps: Vec<_> = (0..TOOLS)
        .map(|at| json!({"name": format!("s-{}", name(at)), "arguments": {}, "wait": 60}))
        .collect();
    in_each_client(
        &steps,
        || broker("direct", &tools, &on_call, 60),
        |name, seen| {
            let listed = seen["tools"].as_array().expect("a list");
            assert_eq!(listed.len(), TOOLS + 1, "{name}: the tools, and `job`");
            for (at, call) in calls(name, seen).iter().enumerate() {
                assert_eq!(call["job_id"].is_string(), at % 2 == 1, "{name}: {call}");
                assert_eq!(call["structuredContent"]["n"], at, "{name}: {call}");
            }
        },
    );
}
