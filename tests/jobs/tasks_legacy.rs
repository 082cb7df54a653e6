//! Jobs as tasks of revision 2025-11-25.

use harness::{contains, wait_until};
use serde_json::{Value, json};

use crate::front::{Front, id};
use crate::stage::{bench, executed, serve};
use crate::tasks_modern::tasks_bench;

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[test]
fn call_with_a_task_is_a_job_whose_result_a_request_waits_for() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let session = Front::of(&broker).session();
    let task = session.make("slow", &json!({"n": 1}), &json!({"ttl": 120_000}));
    assert_eq!(task["status"], "working");
    let ttl = task["ttl"].as_u64().expect("a number");
    assert!((120_000..125_000).contains(&ttl), "{task}");
    assert!(
        task["createdAt"].is_string() && task["lastUpdatedAt"].is_string(),
        "{task}"
    );
    assert!(task["pollInterval"].is_u64(), "{task}");
    let about = json!({"taskId": id(&task)});
    let result = session.result("tasks/result", &about);
    contains(&result["content"][0]["text"].to_string(), &["n"]);
    assert_eq!(result["_meta"][RELATED], about);
    assert!(result.get("resultType").is_none(), "{result}");
    let ended = session.result("tasks/get", &about);
    assert_eq!(
        (&ended["status"], &ended["taskId"]),
        (&json!("completed"), &about["taskId"])
    );
    assert_eq!(session.error("tasks/cancel", &about)["code"], -32602);
    // The other modes of the broker make tasks too.
    for (route, name, arguments) in [
        (
            "/mcp",
            "meta_call",
            json!({"path": "/a/quick", "args": {"n": 2}, "mode": "sync"}),
        ),
        (
            "/mcp/search",
            "call_tool",
            json!({"name": "/a/quick", "arguments": {"n": 3}}),
        ),
    ] {
        let (session, _) = Front::of(&broker).begin(route, "2025-11-25");
        let params = json!({"name": name, "arguments": arguments, "task": {}});
        let task = session.result("tools/call", &params)["task"].clone();
        session.wait(&id(&task), "completed");
    }
    assert_eq!(executed(&bench, "quick"), [2, 3]);
}

#[test]
fn error_of_a_tool_fails_a_task_and_its_result_stays() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let session = Front::of(&broker).session();
    let fails = session.make("fails", &json!({}), &json!({}));
    session.wait(&id(&fails), "failed");
    let result = session.result("tasks/result", &json!({"taskId": id(&fails)}));
    assert_eq!(result["isError"], true);
    let breaks = session.make("breaks", &json!({}), &json!({}));
    let failed = session.wait(&id(&breaks), "failed");
    assert!(failed["statusMessage"].is_string(), "{failed}");
    let error = session.error("tasks/result", &json!({"taskId": id(&breaks)}));
    assert_eq!(error, json!({"code": 77, "message": "broken", "data": [1]}));
}

#[test]
fn cancelled_task_has_ended_when_its_cancellation_is_answered() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let session = Front::of(&broker).session();
    let task = session.make("long", &json!({"n": 1}), &json!({}));
    wait_until("the server has the call", || {
        executed(&bench, "long") == [1]
    });
    let about = json!({"taskId": id(&task)});
    let cancelled = session.result("tasks/cancel", &about);
    assert_eq!(
        (&cancelled["status"], &cancelled["taskId"]),
        (&json!("cancelled"), &about["taskId"])
    );
    assert_eq!(session.error("tasks/cancel", &about)["code"], -32602);
    assert_eq!(session.error("tasks/result", &about)["code"], -32603);
}

#[test]
fn tasks_are_declared_to_clients_of_their_revision_where_jobs_are_kept() {
    let declared = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    for (revision, expected) in [("2025-11-25", &declared), ("2025-06-18", &Value::Null)] {
        for route in ["/mcp", "/mcp/direct", "/mcp/search"] {
            let (_, opened) = Front::of(&broker).begin(route, revision);
            assert_eq!(
                &opened["capabilities"]["tasks"], expected,
                "{route} {revision}"
            );
        }
    }
    for jobs in [Value::Null, json!({})] {
        let bench = bench_without_store(&jobs);
        let broker = serve(&bench);
        let (session, opened) = Front::of(&broker).begin("/mcp/direct", "2025-11-25");
        assert_eq!(opened["capabilities"]["tasks"], Value::Null, "{jobs}");
        assert_eq!(
            session.error("tasks/list", &json!({}))["code"],
            -32601,
            "{jobs}"
        );
        let params = json!({"name": "a-quick", "arguments": {"n": 1}, "task": {}});
        let result = session.result("tools/call", &params);
        assert!(result["content"].is_array(), "{result}");
        let tools = session.result("tools/list", &json!({}));
        let mut tools = tools["tools"].as_array().expect("a list").iter();
        assert!(tools.all(|tool| tool.get("execution").is_none()), "{jobs}");
    }
}

fn bench_without_store(jobs: &Value) -> harness::Bench {
    let bench = bench(jobs, &json!({}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["tools"][0]["execution"] = json!({"taskSupport": "required"});
    bench.script("a", &script);
    bench.lock();
    bench
}

#[test]
fn lists_say_which_calls_can_be_tasks_in_the_legacy_era() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let support = |tools: &Value, name: &str| -> Value {
        let tools = tools["tools"].as_array().expect("a list");
        let found = tools.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("{name}"))["execution"]["taskSupport"].clone()
    };
    for (route, name, expected) in [
        ("/mcp/direct", "a-quick", json!("optional")),
        ("/mcp/direct", "a-forbidden", json!("optional")),
        ("/mcp/direct", "a-required", json!("required")),
        ("/mcp/direct", "job", Value::Null),
        ("/mcp", "meta_call", json!("optional")),
        ("/mcp", "meta_tree", Value::Null),
        ("/mcp/search", "call_tool", json!("optional")),
        ("/mcp/search", "retrieve_tools", Value::Null),
    ] {
        let (session, _) = front.begin(route, "2025-11-25");
        let tools = session.result("tools/list", &json!({}));
        assert_eq!(support(&tools, name), expected, "{route} {name}");
    }
    let session = front.session();
    let required = json!({"name": "a-required", "arguments": {}});
    assert_eq!(session.error("tools/call", &required)["code"], -32601);
    session.wait(
        &id(&session.make("required", &json!({}), &json!({}))),
        "completed",
    );
    let other = json!({"name": "job", "arguments": {}, "task": {}});
    assert_eq!(session.error("tools/call", &other)["code"], -32601);
    let refused = json!({"name": "a-quick", "arguments": {"n": "x"}, "task": {}});
    assert_eq!(session.error("tools/call", &refused)["code"], -32602);
    // The other era has no such member. A client with tasks gets no result in another form.
    for (client, has_output) in [(front, true), (front.without_tasks(), false)] {
        let tools = client.result("tools/list", &json!({}));
        assert_eq!(support(&tools, "a-quick"), Value::Null);
        let mut tools = tools["tools"].as_array().expect("a list").iter();
        let quick = tools
            .find(|tool| tool["name"] == "a-quick")
            .expect("it is listed");
        assert_eq!(quick.get("outputSchema").is_some(), has_output);
    }
}
