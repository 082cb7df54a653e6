//! Tasks of servers: a server that executes a call as a task, behind callers that do not know tasks.

use harness::websocket::WebSocketClient;
use harness::{Broker, contains, refusal};
use serde_json::{Value, json};

use crate::owners::identities;
use crate::stage::{Caller, KEYS, executed, kill, serve};
use crate::task_stage::{Over, TASKS, TaskStage, events};

const ERAS: [&str; 2] = ["legacy", "modern"];

/// A plan whose tasks do not end.
fn endless() -> Value {
    json!({"polls": 1_000_000, "message": "reads sources"})
}

#[test]
fn caller_that_knows_no_tasks_waits_for_the_result_of_one() {
    for era in ERAS {
        for over in [Over::Http, Over::Stdio] {
            let stage = TaskStage::plain(era, over, &json!({"polls": 2, "id": "a \"task\""}));
            let broker = serve(&stage.bench);
            let answer = Caller::of(&broker).call("research", json!({"args": {"n": 1}}));
            assert_eq!(answer.status, 200, "{era} {over:?}: {}", answer.text());
            contains(&answer.text(), &["\\\"n\\\":1"]);
            for word in ["a \\\"task", "related-task", "taskId"] {
                assert!(!answer.text().contains(word), "{}", answer.text());
            }
            assert_eq!(executed(&stage.bench, "research"), [1]);
            assert_eq!(stage.journal("task-get").len(), 3, "{era} {over:?}");
            let made = &stage.journal("task-made")[0];
            assert_eq!(made["task"]["ttl"].is_u64(), era == "legacy", "{made}");
            // Other tools get no parameter of a task.
            let quick = Caller::of(&broker).call("quick", json!({"args": {"n": 2}}));
            assert_eq!(quick.status, 200, "{}", quick.text());
        }
    }
}

#[test]
fn lock_and_start_declare_the_extension_alike() {
    let stage = TaskStage::plain("legacy", Over::Http, &json!({}));
    let broker = serve(&stage.bench);
    let opened = stage.journal("initialize");
    assert!(opened.len() >= 2, "the lock and the start");
    for one in &opened {
        assert_eq!(one["params"]["capabilities"], json!({"tasks": {}}), "{one}");
    }
    drop(broker);
    let stage = TaskStage::plain("modern", Over::Http, &json!({}));
    let broker = serve(&stage.bench);
    let called = Caller::of(&broker).call("research", json!({"args": {"n": 1}}));
    assert_eq!(called.status, 200, "{}", called.text());
    let listed = stage.journal("list");
    assert!(listed.len() >= 2, "the lock and the start");
    for one in listed
        .iter()
        .chain(&stage.journal("call"))
        .chain(&stage.journal("task-get"))
    {
        let declared = &one["meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*declared, json!({"extensions": {TASKS: {}}}), "{one}");
    }
}

#[test]
fn task_of_a_source_without_the_extension_is_an_invalid_result() {
    let stage = TaskStage::new(
        "modern",
        Over::Stdio,
        &json!({}),
        json!({"extensions": []}),
        json!({}),
    );
    let mut script: Value = serde_json::from_str(&stage.bench.read("a.json")).expect("JSON");
    script["tasks"] = json!({});
    let task = json!({"resultType": "task", "taskId": "t", "status": "working", "ttlMs": null});
    script["on_call"] = json!({"research": {"result": task}});
    stage.bench.script("a", &script);
    let broker = serve(&stage.bench);
    let answer = Caller::of(&broker).call("research", json!({}));
    refusal(&answer, 502, "source_protocol");
    assert!(stage.journal("task-get").is_empty());
}

#[test]
fn job_of_a_task_over_http_goes_on_after_a_crash_and_is_executed_once() {
    for era in ERAS {
        let stage = TaskStage::plain(era, Over::Http, &endless());
        let broker = serve(&stage.bench);
        let id = Caller::of(&broker).make("research", json!({"n": 7}));
        stage.await_events("task-get", 1);
        kill(broker);
        let before = stage.journal("task-get").len();

        let broker = serve(&stage.bench);
        stage.await_events("task-get", before + 1);
        let job = Caller::of(&broker).job(&id);
        assert_eq!(job["status"], "running", "{era}: {job}");
        stage.plan(&json!({"polls": 0}));
        let job = Caller::of(&broker).end(&id);
        assert_eq!(job["status"], "succeeded", "{era}: {job}");
        let result = Caller::of(&broker).get(&format!("/jobs/{id}/download"));
        contains(&result.text(), &["\\\"n\\\":7"]);
        assert_eq!(executed(&stage.bench, "research"), [7], "{era}");
        assert!(stage.journal("task-cancel").is_empty());
    }
}

#[test]
fn job_of_a_task_of_a_process_is_lost_after_a_crash() {
    let stage = TaskStage::plain("modern", Over::Stdio, &endless());
    let broker = serve(&stage.bench);
    let id = Caller::of(&broker).make("research", json!({"n": 7}));
    stage.await_events("task-get", 1);
    kill(broker);
    let broker = serve(&stage.bench);
    let job = Caller::of(&broker).end(&id);
    assert_eq!(
        (&job["status"], &job["maybe_executed"]),
        (&json!("lost"), &json!(true))
    );
    assert_eq!(executed(&stage.bench, "research"), [7]);
}

#[test]
fn broker_that_ends_in_order_leaves_a_task_over_http_to_its_server() {
    let stage = TaskStage::new(
        "modern",
        Over::Http,
        &endless(),
        json!({}),
        json!({"drain_timeout": 1}),
    );
    let broker = serve(&stage.bench);
    let id = Caller::of(&broker).make("research", json!({"n": 7}));
    stage.await_events("task-get", 1);
    let (status, log) = broker.terminate();
    assert!(status.success(), "{log}");
    assert!(stage.journal("task-cancel").is_empty(), "{log}");
    stage.plan(&json!({"polls": 0}));
    let broker = serve(&stage.bench);
    assert_eq!(Caller::of(&broker).end(&id)["status"], "succeeded");
    assert_eq!(executed(&stage.bench, "research"), [7]);
}

#[test]
fn cancel_of_a_job_cancels_the_task_at_its_server() {
    for (era, over) in [("legacy", Over::Stdio), ("modern", Over::Http)] {
        let stage = TaskStage::plain(era, over, &json!({"polls": 1_000_000, "id": "one"}));
        let broker = serve(&stage.bench);
        let caller = Caller::of(&broker);
        let id = caller.make("research", json!({"n": 1}));
        stage.await_events("task-get", 1);
        let asked = caller.send("DELETE", &format!("/jobs/{id}"), &[], "");
        assert_eq!(asked.status, 200, "{}", asked.text());
        assert_eq!(caller.end(&id)["status"], "canceled");
        assert_eq!(stage.await_events("task-cancel", 1)[0]["id"], "one");
    }
}

#[test]
fn cancel_that_a_crash_interrupts_reaches_the_server_after_the_start() {
    let stage = TaskStage::plain("modern", Over::Http, &endless());
    let broker = serve(&stage.bench);
    let id = Caller::of(&broker).make("research", json!({"n": 1}));
    stage.await_events("task-get", 1);
    kill(broker);
    let broker = serve(&stage.bench);
    let before = stage.journal("task-get").len();
    stage.await_events("task-get", before + 1);
    let asked = Caller::of(&broker).send("DELETE", &format!("/jobs/{id}"), &[], "");
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert_eq!(Caller::of(&broker).end(&id)["status"], "canceled");
    stage.await_events("task-cancel", 1);
}

#[test]
fn status_text_of_a_task_is_progress_of_its_job() {
    let stage = TaskStage::plain(
        "modern",
        Over::Stdio,
        &json!({"polls": 2, "message": "reads\u{1b}[31m"}),
    );
    let broker = serve(&stage.bench);
    let id = Caller::of(&broker).make("research", json!({"n": 1}));
    Caller::of(&broker).end(&id);
    let events = events(&broker, &id);
    assert_eq!(events.matches("event: progress").count(), 1, "{events}");
    contains(&events, &["reads\\\\u{1b}[31m"]);
}

#[test]
fn task_that_does_not_end_is_cancelled_at_the_deadline_of_its_caller() {
    let stage = TaskStage::new(
        "modern",
        Over::Stdio,
        &endless(),
        json!({"timeout": 1, "max_timeout": 2}),
        json!({}),
    );
    let broker = serve(&stage.bench);
    let caller = Caller::of(&broker);
    let answer = caller.call("research", json!({"args": {"n": 1}}));
    assert_eq!(
        refusal(&answer, 504, "call_timeout")["maybe_executed"],
        true
    );
    stage.await_events("task-cancel", 1);
    // The answers of the server extend the time of a job like progress, up to `max_timeout`.
    let id = caller.make("research", json!({"n": 2}));
    let job = caller.end(&id);
    assert_eq!(job["error"]["code"], "call_timeout", "{job}");
    stage.await_events("task-cancel", 2);
}

#[test]
fn hostile_tasks_end_their_call_and_are_cancelled() {
    let long = "x".repeat(1_001);
    for (plan, code, cancels) in [
        (json!({"id": long, "polls": 1}), "source_protocol", 0),
        (
            json!({"polls": 1, "other_id": "second-id"}),
            "source_protocol",
            1,
        ),
        (json!({"polls": 1, "end": "paused"}), "source_protocol", 1),
        (
            json!({"polls": 1, "end": "input_required"}),
            "source_protocol",
            1,
        ),
        (
            json!({"polls": 1, "end": "cancelled"}),
            "source_protocol",
            0,
        ),
        (json!({"polls": 1, "bytes": 300_000}), "output_too_large", 0),
        (
            json!({"polls": 1, "end": "failed", "error": {"code": -32603, "message": "no"}}),
            "source_error",
            0,
        ),
    ] {
        for era in ERAS {
            let stage = TaskStage::new(
                era,
                Over::Http,
                &plan,
                json!({}),
                json!({"limits": {"line_bytes": 200_000}}),
            );
            let broker = serve(&stage.bench);
            let answer = Caller::of(&broker).call("research", json!({"args": {"n": 1}}));
            assert_eq!(answer.code(), code, "{era} {plan}: {}", answer.text());
            assert_ne!(
                answer.json()["error"]["maybe_executed"],
                false,
                "{}",
                answer.text()
            );
            stage.await_events("task-cancel", cancels);
            assert!(!answer.text().contains(&long) && !answer.text().contains("second-id"));
        }
    }
}

/// Returns the caller with the first key.
fn keyed(broker: &Broker) -> Caller<'_> {
    Caller {
        broker,
        key: Some(KEYS[0].1),
    }
}

#[test]
fn job_whose_server_no_longer_knows_its_task_after_a_crash_is_lost() {
    const KEY: [(&str, &str); 1] = [("Idempotency-Key", "k")];
    for era in ERAS {
        let stage = TaskStage::new(era, Over::Http, &endless(), json!({}), identities());
        let body = json!({"args": {"n": 7}, "mode": "async"});
        let broker = serve(&stage.bench);
        let made = keyed(&broker).call_with("research", body.clone(), &KEY);
        let id = made.json()["job_id"].as_str().expect("an id").to_owned();
        stage.await_events("task-get", 1);
        kill(broker);
        let before = stage.journal("task-get").len();

        let broker = serve(&stage.bench);
        stage.await_events("task-get", before + 1);
        // A simple client with the same key follows the job on its connection.
        let headers = [("X-API-Key", KEYS[0].1)];
        let client = WebSocketClient::try_connect(broker.address(), "/v1/ws/mcp", &headers);
        let mut client = client.expect("it is upgraded");
        client.result("initialize", &json!({}));
        assert_eq!(client.next_message()["method"], "notifications/initialized");
        let call = json!({
            "name": "a-research", "arguments": {"n": 7}, "mode": "async",
            "_meta": {"dev.mcp-broker/idempotency-key": "k"},
        });
        let again = client.result("tools/call", &call);
        assert_eq!(
            (&again["job_id"], &again["replayed"]),
            (&json!(id), &json!(true))
        );
        stage.forget();
        let frame = loop {
            let message = client.next_message();
            if message["params"]["status"].is_string() {
                break message["params"].clone();
            }
        };
        assert_eq!(
            (&frame["job_id"], &frame["status"], &frame["maybe_executed"]),
            (&json!(id), &json!("failed"), &json!(true)),
            "{frame}"
        );
        let job = keyed(&broker).job(&id);
        assert_eq!(
            (
                &job["status"],
                &job["maybe_executed"],
                &job["error"]["code"]
            ),
            (&json!("lost"), &json!(true), &json!("job_lost")),
            "{era}: {job}"
        );
        let replayed = keyed(&broker).call_with("research", body, &KEY);
        assert_eq!(refusal(&replayed, 502, "job_lost")["maybe_executed"], true);
        assert_eq!(executed(&stage.bench, "research"), [7], "{era}");
    }
}
