//! Jobs of simple clients over WebSocket: the answer comes at once, and progress follows on the same connection.

use harness::Broker;
use harness::websocket::WebSocketClient;
use serde_json::{Value, json};

use crate::stage::{Caller, bench, executed, kill, serve};

/// Returns a connection of a simple client.
fn open(broker: &Broker) -> WebSocketClient {
    let mut client = WebSocketClient::connect(broker.address(), "/v1/ws/mcp");
    client.result("initialize", &json!({}));
    assert_eq!(client.next_message()["method"], "notifications/initialized");
    client
}

/// Calls a tool, and returns the id of its job.
fn begin(client: &mut WebSocketClient, tool: &str, n: i64) -> String {
    let params = json!({"name": format!("a-{tool}"), "arguments": {"n": n}, "mode": "async"});
    let result = client.result("tools/call", &params);
    assert_eq!(result["status"], "accepted");
    let id = result["job_id"].as_str().expect("an id").to_owned();
    assert_eq!(result["ws"], format!("/ws/jobs/{id}"));
    id
}

/// Returns the params of the next notification of a job's progress.
fn next(client: &mut WebSocketClient) -> Value {
    let message = client.next_message();
    assert_eq!(
        (&message["jsonrpc"], &message["method"]),
        (&json!("2.0"), &json!("notifications/progress"))
    );
    assert!(message.get("id").is_none(), "{message}");
    message["params"].clone()
}

/// Returns the params of the notifications up to the one with a state.
fn to_end(client: &mut WebSocketClient) -> Vec<Value> {
    let mut all = Vec::new();
    while all
        .last()
        .is_none_or(|params: &Value| params.get("status").is_none())
    {
        all.push(next(client));
    }
    all
}

#[test]
fn progress_of_a_job_follows_its_answer_on_the_connection() {
    let call = json!({"name": "a-steps", "arguments": {"n": 1}, "mode": "async"});
    let command = json!({"stage": "a", "command": "steps", "args": {"n": 1}, "mode": "async"});
    for (method, params) in [("tools/call", call), ("callTool", command)] {
        let bench = bench(&json!({}), &json!({}));
        let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
        script["on_call"]["steps"] = json!({
            "progress": 2,
            "then": {"log": [{"level": "info", "data": "half"}], "then": {"delay_ms": 300}},
        });
        bench.script("a", &script);
        let broker = serve(&bench);
        let mut client = open(&broker);
        let result = client.result(method, &params);
        let id = result["job_id"].as_str().expect("an id").to_owned();
        let expected = [
            json!({"job_id": id, "progress": 0.0}),
            json!({"job_id": id, "progress": 1, "total": 2}),
            json!({"job_id": id, "progress": 2, "total": 2}),
            json!({"job_id": id, "stdout": "half"}),
            json!({"job_id": id, "status": "succeeded", "exit_code": 0, "output_file": format!("/v1/jobs/{id}/download")}),
        ];
        assert_eq!(to_end(&mut client), expected, "{method}");
        let output = Caller::of(&broker).get(&format!("/v1/jobs/{id}/download"));
        assert!(output.json()["content"].is_array(), "{}", output.text());
        // The connection goes on.
        assert_eq!(client.result("ping", &json!({})), json!({}));
        assert_eq!(executed(&bench, "steps"), [1]);
    }
}

#[test]
fn ends_of_jobs_without_a_result_are_failures_of_simple_clients() {
    let bench = bench(&json!({"store": "jobs.sqlite"}), &json!({}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["quick"] = json!({"rpc_error": {"code": -32001, "message": "no"}});
    bench.script("a", &script);
    let broker = serve(&bench);
    let mut client = open(&broker);
    let id = begin(&mut client, "quick", 1);
    let end = to_end(&mut client).pop().expect("an end");
    assert_eq!(
        (
            &end["job_id"],
            &end["status"],
            &end["exit_code"],
            &end["output_file"]
        ),
        (&json!(id), &json!("failed"), &json!(1), &Value::Null),
    );
    let cancelled = begin(&mut client, "long", 1);
    harness::wait_until("the server has the call", || {
        !executed(&bench, "long").is_empty()
    });
    Caller::of(&broker).send("DELETE", &format!("/jobs/{cancelled}"), &[], "");
    let end = to_end(&mut client).pop().expect("an end");
    assert_eq!(
        (&end["status"], &end["maybe_executed"]),
        (&json!("canceled"), &json!(true))
    );
    // A job that is lost.
    let lost = begin(&mut client, "long", 2);
    harness::wait_until("the server has the call", || {
        executed(&bench, "long").len() == 2
    });
    kill(broker);
    let broker = serve(&bench);
    let ticks = Caller::of(&broker).get(&format!("/v1/mcp/progress/{lost}"));
    harness::contains(
        &ticks.text(),
        &["\"status\":\"failed\"", "\"maybe_executed\":true"],
    );
}

#[test]
fn jobs_over_the_bound_of_a_connection_are_followed_once_others_have_ended() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let mut client = open(&broker);
    // More than are followed at a time, and more than run at a time.
    let mut waiting: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    for n in 0..50 {
        let params = json!({"name": "a-quick", "arguments": {"n": n}, "mode": "async"});
        let mut all = client.messages("tools/call", &params);
        let answer = all.pop().expect("an answer");
        waiting.push(
            answer["result"]["job_id"]
                .as_str()
                .expect("an id")
                .to_owned(),
        );
        seen.extend(all.into_iter().map(|message| message["params"].clone()));
    }
    let ended = |seen: &[Value]| {
        let ends = seen.iter().filter(|params| params["status"] == "succeeded");
        ends.count()
    };
    while ended(&seen) < waiting.len() {
        seen.push(next(&mut client));
    }
    for id in &waiting {
        let of_job: Vec<_> = seen
            .iter()
            .filter(|params| params["job_id"] == **id)
            .collect();
        assert_eq!(of_job.len(), 2, "{of_job:?}");
        assert_eq!(of_job[0]["progress"], 0.0);
    }
}

#[test]
fn client_of_the_specification_gets_no_progress_that_it_did_not_ask_for() {
    let bench = bench(&json!({}), &json!({}));
    let broker = serve(&bench);
    let protocol = [("Sec-WebSocket-Protocol", "mcp")];
    let client = WebSocketClient::try_connect(broker.address(), "/v1/ws/mcp", &protocol);
    let mut client = client.expect("it is upgraded");
    client.result(
        "initialize",
        &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let params = json!({"name": "a-quick", "arguments": {"n": 1}, "mode": "async"});
    let result = client.result("tools/call", &params);
    let id = result["structuredContent"]["job_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    Caller::of(&broker).end(&id);
    // Its next message is the answer.
    assert_eq!(client.messages("ping", &json!({})).len(), 1);
}
