//! Jobs as tasks of the extension of revision 2026-07-28.

use harness::mcp_http::EventReader;
use harness::{Bench, contains, wait_until};
use serde_json::{Value, json};

use crate::front::{EXTENSION, Front, id};
use crate::owners::identities;
use crate::stage::{KEYS, bench, executed, kill, serve};
use crate::task_stage::{Over, TaskStage};

/// A folder whose calls become jobs after a second, with tools whose ends differ.
pub(crate) fn tasks_bench(more: &Value) -> Bench {
    let bench = bench(&json!({"store": "jobs.sqlite", "promote_after": 1}), more);
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let tools = script["tools"].as_array_mut().expect("a list");
    tools.extend(["fails", "breaks"].map(tool));
    let mut required = tool("required");
    required["execution"] = json!({"taskSupport": "required"});
    let mut forbidden = tool("forbidden");
    forbidden["execution"] = json!({"taskSupport": "forbidden"});
    tools.extend([required, forbidden]);
    let failure = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    script["on_call"]["fails"] = json!({"result": failure});
    script["on_call"]["breaks"] =
        json!({"rpc_error": {"code": 77, "message": "broken", "data": [1]}});
    script["on_call"]["later"] = json!({"delay_ms": 2500});
    script["on_call"]["steps"] = json!({"progress": 3, "then": {"delay_ms": 4000}});
    script["tools"]
        .as_array_mut()
        .expect("a list")
        .push(tool("later"));
    bench.script("a", &script);
    bench.lock();
    bench
}

#[test]
fn call_of_a_client_with_the_extension_becomes_a_flat_task_when_it_takes_long() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let task = front.call("later", &json!({"n": 1}));
    assert_eq!(task["resultType"], "task", "{task}");
    assert_eq!(task["status"], "working");
    for name in ["createdAt", "lastUpdatedAt"] {
        contains(task[name].as_str().expect("a time"), &["T", "Z"]);
    }
    assert!(task["ttlMs"].as_u64() >= Some(3_600_000), "{task}");
    assert!(task["pollIntervalMs"].is_u64(), "{task}");
    for name in ["task", "content", "structuredContent", "result", "ttl"] {
        assert!(task.get(name).is_none(), "{name}: {task}");
    }
    let id = id(&task);
    let working = front.get(&id);
    assert_eq!(
        (&working["resultType"], &working["status"]),
        (&json!("complete"), &json!("working"))
    );
    let ended = front.wait(&id, "completed");
    contains(&ended["result"]["content"][0]["text"].to_string(), &["n"]);
    assert_eq!(ended["result"]["resultType"], "complete");
    assert!(ended.get("error").is_none(), "{ended}");
    let quick = front.call("quick", &json!({"n": 2}));
    assert_eq!(quick["resultType"], "complete", "a call that ends in time");
    // The parameter of the other era asks for nothing here.
    let params = json!({"name": "a-quick", "arguments": {}, "task": {"ttl": 1000}});
    assert_eq!(
        front.result("tools/call", &params)["resultType"],
        "complete"
    );
    // A client without the extension has the text that names a tool.
    let text = front.without_tasks().call("later", &json!({"n": 3}));
    assert_eq!(text["resultType"], "complete");
    contains(&text["content"][0]["text"].to_string(), &["goes on as job"]);
    assert_eq!(executed(&bench, "later"), [1, 3]);
}

#[test]
fn call_that_asks_for_a_job_is_a_task_at_once() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let task = front.make("quick", &json!({"n": 1}));
    front.wait(&id(&task), "completed");
    let required = front.call("required", &json!({}));
    assert_eq!(required["resultType"], "task", "{required}");
    front.wait(&id(&required), "completed");
}

#[test]
fn extension_is_named_and_needed_where_jobs_are_kept() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let (with, without) = (Front::of(&broker), Front::of(&broker).without_tasks());
    let capabilities = with.result("server/discover", &json!({}))["capabilities"].clone();
    assert_eq!(capabilities["extensions"][EXTENSION], json!({}));
    assert!(capabilities.get("tasks").is_none());
    let task = with.make("quick", &json!({}));
    let about = json!({"taskId": id(&task), "inputResponses": {}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = without.modern(method, &about);
        let error = refused.json()["error"].clone();
        assert_eq!(
            (refused.status, &error["code"]),
            (400, &json!(-32021)),
            "{method}"
        );
        let needed = json!({"extensions": {EXTENSION: {}}});
        assert_eq!(error["data"]["requiredCapabilities"], needed);
        let other = with.named("/mcp/direct", (method, "j_other"), &about);
        assert_eq!(
            (other.status, &other.json()["error"]["code"]),
            (400, &json!(-32020))
        );
        assert_eq!(
            with.error(method, &json!({"taskId": 5, "inputResponses": {}})),
            -32602
        );
    }
    let refused = without.modern("tools/call", &json!({"name": "a-required"}));
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (400, &json!(-32021))
    );
    for method in ["tasks/list", "tasks/result"] {
        let reply = with.modern(method, &about);
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (404, &json!(-32601))
        );
    }
    assert_eq!(
        with.result("tasks/update", &about)["resultType"],
        "complete"
    );
    assert_eq!(
        with.error("tasks/update", &json!({"taskId": id(&task)})),
        -32602
    );
}

#[test]
fn extension_is_absent_where_a_restart_loses_jobs() {
    for jobs in [Value::Null, json!({"promote_after": 1})] {
        let bench = bench(&jobs, &json!({}));
        let broker = serve(&bench);
        let front = Front::of(&broker);
        let capabilities = front.result("server/discover", &json!({}))["capabilities"].clone();
        assert!(capabilities.get("extensions").is_none(), "{jobs}");
        assert_eq!(
            front.error("tasks/get", &json!({"taskId": "j_1"})),
            -32601,
            "{jobs}"
        );
        let called = front.call("slow", &json!({"n": 1}));
        assert_eq!(called["resultType"], "complete", "{jobs}");
    }
}

#[test]
fn error_of_a_tool_completes_a_task_and_error_of_the_protocol_fails_it() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let fails = front.wait(&id(&front.make("fails", &json!({}))), "completed");
    assert_eq!(fails["result"]["isError"], true, "{fails}");
    let breaks = front.wait(&id(&front.make("breaks", &json!({}))), "failed");
    let expected = json!({"code": 77, "message": "broken", "data": [1]});
    assert_eq!(breaks["error"], expected);
    assert!(breaks.get("result").is_none(), "{breaks}");
}

#[test]
fn task_of_a_broker_that_ended_fails_and_may_have_been_executed() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let lost = id(&Front::of(&broker).make("long", &json!({"n": 1})));
    wait_until("the server has the call", || {
        executed(&bench, "long") == [1]
    });
    kill(broker);
    let broker = serve(&bench);
    let task = Front::of(&broker).get(&lost);
    assert_eq!(
        (&task["status"], &task["error"]["code"]),
        (&json!("failed"), &json!(-32603)),
        "{task}"
    );
    assert_eq!(task["error"]["data"]["maybe_executed"], true);
    let (session, _) = Front::of(&broker).begin("/mcp", "2025-11-25");
    assert_eq!(session.wait(&lost, "failed")["taskId"], json!(lost));
    let error = session.error("tasks/result", &json!({"taskId": lost}));
    assert_eq!(
        (&error["code"], &error["data"]["maybe_executed"]),
        (&json!(-32603), &json!(true))
    );
}

#[test]
fn cancelled_task_settles_and_its_cancellation_is_acknowledged_again() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let id = id(&front.make("long", &json!({"n": 1})));
    wait_until("the server has the call", || {
        executed(&bench, "long") == [1]
    });
    for _ in 0..2 {
        let acknowledged = front.result("tasks/cancel", &json!({"taskId": id}));
        assert_eq!(acknowledged["resultType"], "complete");
        for name in ["taskId", "status", "result", "error"] {
            assert!(acknowledged.get(name).is_none(), "{acknowledged}");
        }
        front.wait(&id, "cancelled");
    }
}

#[test]
fn progress_of_a_server_is_the_message_of_its_task() {
    let bench = tasks_bench(&json!({}));
    let broker = serve(&bench);
    let front = Front::of(&broker);
    let asked = front.make("steps", &json!({"n": 1}));
    // A client that takes progress has it until it has the task; the task has it too.
    let params = json!({
        "name": "a-steps", "arguments": {"n": 2}, "_meta": {"progressToken": "p"},
    });
    let promoted = front.result("tools/call", &params);
    assert_eq!(promoted["resultType"], "task", "{promoted}");
    for task in [asked, promoted] {
        let id = id(&task);
        wait_until("the task has the progress", || {
            let task = front.get(&id);
            task["statusMessage"]
                .as_str()
                .is_some_and(|text| text.starts_with("progress "))
        });
    }
}

#[test]
fn subscription_reports_the_tasks_of_its_caller_only() {
    let bench = tasks_bench(&identities());
    let broker = serve(&bench);
    let one = Front::of(&broker).with_key(KEYS[0].1);
    let two = Front::of(&broker).with_key(KEYS[1].1);
    let own = id(&one.make("later", &json!({"n": 1})));
    let foreign = id(&two.make("quick", &json!({"n": 2})));
    let asked = json!({"taskIds": [own, foreign, "j_none"], "toolsListChanged": true});
    let mut events = EventReader::open(one.listen(&asked));
    let first = events.next_message().expect("an acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let honoured = json!({"taskIds": [own], "toolsListChanged": true});
    assert_eq!(first["params"]["notifications"], honoured);
    let mut last = Value::Null;
    while last["params"]["status"] != "completed" {
        last = events.next_message().expect("a notification");
        assert_eq!(last["method"], "notifications/tasks", "{last}");
        assert_eq!(last["params"]["taskId"], json!(own));
        assert_eq!(
            last["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            7
        );
        assert!(last["params"]["ttlMs"].is_u64(), "{last}");
    }
    assert!(last["params"]["result"]["content"].is_array(), "{last}");
    // A client without the extension asks about no tasks.
    let mut plain = EventReader::open(one.without_tasks().listen(&asked));
    let first = plain.next_message().expect("an acknowledgement");
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
}

#[test]
fn call_of_a_tool_that_requires_a_task_is_refused_without_one_in_each_era() {
    for era in ["legacy", "modern"] {
        let stage = TaskStage::plain(era, Over::Http, &json!({"polls": 1}));
        let broker = serve(&stage.bench);
        let front = Front::of(&broker);
        let call = json!({"name": "a-research", "arguments": {"n": 1}});
        let session = front.session();
        assert_eq!(session.error("tools/call", &call)["code"], -32601, "{era}");
        let refused = front.without_tasks().modern("tools/call", &call).json();
        let error = &refused["error"];
        assert_eq!(error["code"], -32021, "{era}: {refused}");
        let capabilities = json!({"extensions": {EXTENSION: {}}});
        assert_eq!(error["data"]["requiredCapabilities"], capabilities);
        assert!(stage.journal("call").is_empty(), "{era}: the call was sent");
        let task = front.call("research", &json!({"n": 2}));
        assert_eq!(task["resultType"], "task", "{era}: {task}");
        front.wait(&id(&task), "completed");
        let task = session.make("research", &json!({"n": 3}), &json!({}));
        session.wait(&id(&task), "completed");
        // A caller that waits needs no task.
        let meta =
            json!({"name": "meta_call", "arguments": {"path": "/a/research", "args": {"n": 4}}});
        let (plain, _) = front.begin("/mcp", "2025-11-25");
        let result = plain.result("tools/call", &meta);
        contains(&result["content"][0]["text"].to_string(), &["n"]);
        assert_eq!(executed(&stage.bench, "research"), [2, 3, 4], "{era}");
    }
}
