//! Clients of MCP that know no jobs: a long call becomes one, and a tool waits for it.

use harness::mcp_http::{McpSession, modern, without_chunks};
use harness::{contains, wait_until};
use serde_json::{Value, json};

use crate::stage::{Caller, KEYS, bench, executed, serve};

/// Returns the text of a tool's result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn long_call_of_a_model_becomes_a_job_whose_result_a_tool_waits_for() {
    let bench = bench(
        &json!({"store": "jobs.sqlite", "promote_after": 1}),
        &json!({}),
    );
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["long"] = json!({"delay_ms": 2500});
    bench.script("a", &script);
    let broker = serve(&bench);
    for (route, tool, args) in [
        (
            "/mcp",
            "meta_call",
            json!({"path": "/a/long", "args": {"n": 1}}),
        ),
        ("/mcp/direct", "a-long", json!({"n": 2})),
        (
            "/mcp/search",
            "call_tool",
            json!({"name": "/a/long", "arguments": {"n": 3}}),
        ),
    ] {
        let session = McpSession::begin(broker.address(), route);
        let call = |name: &str, args: &Value| {
            session.result("tools/call", &json!({"name": name, "arguments": args}))
        };
        let became = call(tool, &args);
        let id = became["structuredContent"]["job_id"]
            .as_str()
            .unwrap_or_default();
        assert!(id.starts_with("j_"), "{became}");
        contains(text(&became), &["goes on as job", id, "`job`"]);
        assert_eq!(became["isError"], false);
        let result = call("job", &json!({"id": id}));
        contains(
            text(&result),
            &[&format!(
                "\"n\":{}",
                args["n"]
                    .as_i64()
                    .or(args["args"]["n"].as_i64())
                    .or(args["arguments"]["n"].as_i64())
                    .expect("n")
            )],
        );
        let read = call(
            "job",
            &json!({"id": id, "action": "read", "pointer": "/content/0/text", "limit": 3}),
        );
        contains(
            text(&read),
            &["Characters 0 to 3 of", "the rest: offset 3", "\n{\"n"],
        );
        let ended = call("job", &json!({"id": id, "action": "cancel"}));
        assert_eq!(ended["isError"], true);
        contains(text(&ended), &["job_finished"]);
        // A call that ends in time has its result.
        let quick = match route {
            "/mcp" => call(tool, &json!({"path": "/a/quick", "args": {"n": 5}})),
            "/mcp/direct" => call("a-quick", &json!({"n": 5})),
            _ => call(tool, &json!({"name": "/a/quick", "arguments": {"n": 5}})),
        };
        contains(text(&quick), &["\"n\":5"]);
        // The other shape of results is not promised.
        let tools = session.result("tools/list", &json!({}));
        let tools = tools["tools"].as_array().expect("a list");
        assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()));
        assert_eq!(tools.iter().filter(|tool| tool["name"] == "job").count(), 1);
    }
    assert_eq!(executed(&bench, "long"), [1, 2, 3]);
}

#[test]
fn job_of_a_client_that_left_goes_on() {
    let bench = bench(
        &json!({"store": "jobs.sqlite", "promote_after": 1}),
        &json!({}),
    );
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["long"] = json!({"delay_ms": 2000});
    bench.script("a", &script);
    let broker = serve(&bench);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let became = session.result(
        "tools/call",
        &json!({"name": "a-long", "arguments": {"n": 1}}),
    );
    let id = became["structuredContent"]["job_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    session.bare("DELETE", "application/json");
    let waited = |id: &str| {
        let params = json!({"name": "job", "arguments": {"id": id}});
        let answer = modern(
            broker.address(),
            "/mcp/direct",
            &json!(1),
            "tools/call",
            &params,
        );
        answer.json()["result"].clone()
    };
    let mut result = Value::Null;
    wait_until("the job has its result", || {
        result = waited(&id);
        text(&result).contains("\"n\":1")
    });
    assert_eq!(result["resultType"], "complete");
}

#[test]
fn jobs_in_memory_are_made_for_callers_that_ask_only() {
    let bench = bench(&json!({"promote_after": 1}), &json!({}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["long"] = json!({"delay_ms": 1500});
    bench.script("a", &script);
    let broker = serve(&bench);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let result = session.result(
        "tools/call",
        &json!({"name": "a-long", "arguments": {"n": 1}}),
    );
    contains(text(&result), &["\"n\":1"]);
    let tools = session.result("tools/list", &json!({}));
    assert!(tools["tools"][0].get("outputSchema").is_some(), "{tools}");
}

#[test]
fn simple_client_gets_a_job_and_its_ticks() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    for (method, params) in [
        (
            "tools/call",
            json!({"name": "a-slow", "arguments": {"n": 1}, "mode": "async"}),
        ),
        (
            "callTool",
            json!({"stage": "a", "command": "slow", "args": {"n": 2}, "mode": "async"}),
        ),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        let reply = broker.post("/v1/mcp", &request);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let result = reply.json()["result"].clone();
        let id = result["job_id"].as_str().expect("an id").to_owned();
        assert_eq!(result["status"], "accepted");
        assert_eq!(result["poll"], format!("/jobs/{id}"));
        assert_eq!(result["ws"], format!("/ws/jobs/{id}"));
        assert_eq!(result["download"], format!("/jobs/{id}/download"));
        assert_eq!(result["manifest"], format!("/jobs/{id}/manifest"));
        let caller = Caller::of(&broker);
        let ticks = caller.get(&format!("/v1/mcp/progress/{id}?interval_ms=100"));
        contains(
            &without_chunks(&ticks.body),
            &["\"status\":\"succeeded\"", &id],
        );
        let output = caller.get(&format!("/v1/jobs/{id}/download"));
        assert!(output.json()["content"].is_array(), "{}", output.text());
    }
    assert_eq!(executed(&bench, "slow"), [1, 2]);
}

#[test]
fn rest_of_a_result_that_was_cut_can_be_read_and_is_not_in_the_store() {
    let [one, two] = KEYS;
    let bench = bench(
        &json!({"store": "jobs.sqlite"}),
        &json!({
            "access": {
                "groups": ["g"],
                "rules": [{"allow": ["/**"], "to": ["g"]}],
            },
            "identities": {"keys": [
                {"name": one.0, "sha256": one.2, "groups": ["g"]},
                {"name": two.0, "sha256": two.2, "groups": ["g"]},
            ]},
        }),
    );
    let broker = serve(&bench);
    let call = |key: &str, tool: &str, arguments: Value| {
        let caller = Caller {
            broker: &broker,
            key: Some(key),
        };
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
            ("Accept", "application/json, text/event-stream"),
        ];
        let answer = caller.send("POST", "/mcp/direct", &headers, &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["result"].clone()
    };
    let long = format!("{}-canary-end", "x".repeat(40_000));
    let cut = call(one.1, "a-quick", json!({"n": 1, "text": long}));
    let all = cut.to_string();
    assert!(all.chars().count() <= 25_000, "{}", all.chars().count());
    let note = text(&cut);
    contains(note, &["with the tool `job`: id r_", "/content/0/text"]);
    let id = cut["_meta"]["dev.mcp-broker/truncated"]["rest"]
        .as_str()
        .expect("an id");
    let read = |key| {
        let from =
            json!({"id": id, "action": "read", "pointer": "/content/0/text", "offset": 39_900});
        call(key, "job", from)
    };
    contains(text(&read(one.1)), &["-canary-end", "Characters 39900 to"]);
    let other = read(two.1);
    assert_eq!(other["isError"], true);
    contains(text(&other), &["job_not_found"]);
    broker.terminate();
    for file in ["jobs.sqlite", "jobs.sqlite-wal"] {
        let bytes = std::fs::read(bench.path(file)).unwrap_or_default();
        let found = bytes.windows(11).any(|window| window == b"-canary-end");
        assert!(!found, "{file}");
    }
}

#[test]
fn simple_call_in_the_mode_auto_has_the_members_of_a_command_or_is_accepted() {
    let bench = bench(
        &json!({"store": "jobs.sqlite", "promote_after": 1}),
        &json!({}),
    );
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["long"] = json!({"delay_ms": 2500});
    bench.script("a", &script);
    let broker = serve(&bench);
    let result = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        broker.post("/v1/mcp", &request).json()["result"].clone()
    };
    let both = |tool: &str| {
        let call = json!({"name": format!("a-{tool}"), "arguments": {"n": 1}, "mode": "auto"});
        let command = json!({"stage": "a", "command": tool, "args": {"n": 1}, "mode": "auto"});
        [result("tools/call", call), result("callTool", command)]
    };
    for quick in both("quick") {
        assert_eq!(
            (&quick["status"], &quick["exit_code"]),
            (&json!("ok"), &json!(0))
        );
        assert!(quick["stdout"].is_string(), "{quick}");
    }
    for became in both("long") {
        assert_eq!(became["status"], "accepted", "{became}");
        let id = became["job_id"].as_str().expect("an id").to_owned();
        let caller = Caller::of(&broker);
        let route = format!("/v1/mcp/progress/{id}?interval_ms=100&max_ms=20000");
        contains(
            &without_chunks(&caller.get(&route).body),
            &["\"exit_code\":0", &format!("/v1/jobs/{id}/download")],
        );
    }
    assert_eq!(executed(&bench, "long"), [1, 1]);
}

#[test]
fn progress_of_a_call_that_became_a_job_reaches_its_caller_and_the_job() {
    let bench = bench(
        &json!({"store": "jobs.sqlite", "promote_after": 1}),
        &json!({}),
    );
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["steps"] = json!({"progress": 2, "then": {"delay_ms": 1500, "then": {"progress": [{"progress": 3}], "then": {"delay_ms": 500}}}});
    bench.script("a", &script);
    let broker = serve(&bench);
    let session = McpSession::begin(broker.address(), "/mcp");
    let params = json!({
        "name": "meta_call",
        "arguments": {"path": "/a/steps", "args": {"n": 1}},
        "_meta": {"progressToken": "p"},
    });
    let messages = session.messages("tools/call", &params);
    let (answer, notified) = messages.split_last().expect("an answer");
    assert_eq!(notified.len(), 2, "{messages:?}");
    let id = answer["result"]["structuredContent"]["job_id"].as_str();
    let id = id.expect("a job");
    let caller = Caller::of(&broker);
    caller.end(id);
    let events = caller.get(&format!("/jobs/{id}/events")).text();
    assert_eq!(events.matches("event: progress").count(), 3, "{events}");
}

#[test]
fn log_messages_of_a_call_that_became_a_job_reach_its_caller_and_the_job() {
    let bench = bench(
        &json!({"store": "jobs.sqlite", "promote_after": 1}),
        &json!({}),
    );
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["steps"] = json!({
        "log": [{"level": "info", "data": "below"}, {"level": "warning", "data": "before"}],
        "then": {"delay_ms": 1500, "then": {
            "log": [{"level": "error", "data": {"part": "behind"}}], "then": {"delay_ms": 500},
        }},
    });
    bench.script("a", &script);
    let broker = serve(&bench);
    let session = McpSession::begin(broker.address(), "/mcp");
    session.result("logging/setLevel", &json!({"level": "warning"}));
    let arguments = json!({"path": "/a/steps", "args": {"n": 1}});
    let params = json!({"name": "meta_call", "arguments": arguments});
    let messages = session.messages("tools/call", &params);
    let (answer, notified) = messages.split_last().expect("an answer");
    let [log] = notified else {
        panic!("one log message before the job: {messages:?}");
    };
    assert_eq!(
        (&log["method"], &log["params"]["data"]),
        (&json!("notifications/message"), &json!("before"))
    );
    let id = answer["result"]["structuredContent"]["job_id"].as_str();
    let id = id.expect("a job");
    let caller = Caller::of(&broker);
    caller.end(id);
    // The job has the messages from the level `info` on, whatever its caller takes.
    let events = caller
        .get(&format!("/jobs/{id}/events?stream=stdout"))
        .text();
    let lines = events.lines().zip(events.lines().skip(1));
    let data: Vec<Value> = lines
        .filter(|(event, _)| *event == "event: stdout")
        .map(|(_, data)| serde_json::from_str(&data["data: ".len()..]).expect("JSON"))
        .collect();
    let expected = [
        json!({"level": "info", "data": "below"}),
        json!({"level": "warning", "data": "before"}),
        json!({"level": "error", "data": {"part": "behind"}}),
    ];
    assert_eq!(data, expected, "{events}");
}

#[test]
fn link_to_a_job_is_a_resource_of_its_caller() {
    let bench = bench(
        &json!({"store": "jobs.sqlite", "promote_after": 1}),
        &json!({}),
    );
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["long"] = json!({"delay_ms": 2500});
    bench.script("a", &script);
    let broker = serve(&bench);
    let ask = |method: &str, params: Value| {
        modern(broker.address(), "/mcp/direct", &json!(1), method, &params).json()
    };
    let became = ask(
        "tools/call",
        json!({"name": "a-long", "arguments": {"n": 7}}),
    )["result"]
        .clone();
    let link = &became["content"][1];
    assert_eq!(link["type"], "resource_link", "{became}");
    let uri = link["uri"].as_str().expect("a URI");
    contains(text(&became), &[uri]);
    let id = became["structuredContent"]["job_id"]
        .as_str()
        .expect("an id");
    let state = |read: &Value| -> Value {
        let text = read["result"]["contents"][0]["text"].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("{read}"))).expect("JSON")
    };
    let running = ask("resources/read", json!({"uri": uri}));
    assert_eq!(state(&running)["status"], "running", "{running}");
    assert_eq!(running["result"]["contents"][1], Value::Null);
    Caller::of(&broker).end(id);
    let ended = ask("resources/read", json!({"uri": uri}));
    assert_eq!(state(&ended)["status"], "succeeded");
    contains(
        ended["result"]["contents"][1]["text"]
            .as_str()
            .expect("the result"),
        &["\\\"n\\\":7"],
    );
    let unknown = ask(
        "resources/read",
        json!({"uri": "mcp-broker://jobs/j_aaaaaaaaaaaaaaaaaaaaaaaaaa"}),
    );
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // Legacy clients have the URI in the text.
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let read = session.result("resources/read", &json!({"uri": uri}));
    assert_eq!(read["contents"].as_array().map(Vec::len), Some(2), "{read}");
}
