//! Clients of MCP that know no jobs: a long call becomes one, and a tool waits for it.

use harness::mcp_http::{McpSession, modern, without_chunks};
use harness::{contains, wait_until};
use serde_json::{Value, json};

use crate::stage::{Caller, bench, executed, serve};

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
