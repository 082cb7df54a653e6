//! The notifications of tasks of revision 2025-11-25: progress for the life of the task, log messages and the status.

use harness::Bench;
use harness::mcp_http::{EventReader, McpSession};
use harness::websocket::WebSocketClient;
use serde_json::{Value, json};

use crate::stage::serve;
use crate::tasks_modern::tasks_bench;

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A folder whose tool `steps` has three notifications of progress and two log messages, and then a result.
fn steps_bench() -> Bench {
    let bench = tasks_bench(&json!({"mcp": {"mode": "direct"}}));
    let mut script: Value = serde_json::from_str(&bench.read("a.json")).expect("JSON");
    script["on_call"]["steps"] = json!({
        "progress": 3,
        "then": {
            "log": [{"level": "info", "data": "below"}, {"level": "warning", "data": "half"}],
            "then": {"delay_ms": 300},
        },
    });
    bench.script("a", &script);
    bench
}

/// The params of a call that is a task and has a progress token.
fn call(tool: &str, n: i64, token: &str) -> Value {
    json!({
        "name": format!("a-{tool}"), "arguments": {"n": n}, "task": {"ttl": 60_000},
        "_meta": {"progressToken": token},
    })
}

/// Checks the notifications of a task of `steps`, up to the change of its status.
fn check(mut next: impl FnMut() -> Value, id: &Value, token: &str) {
    let related = json!({"taskId": id});
    for progress in 1..=3 {
        let message = next();
        assert_eq!(message["method"], "notifications/progress", "{message}");
        let expected = json!({
            "progress": progress, "total": 3, "progressToken": token, "_meta": {RELATED: related},
        });
        assert_eq!(message["params"], expected);
    }
    let log = next();
    assert_eq!(log["method"], "notifications/message", "{log}");
    let (level, data) = (&log["params"]["level"], &log["params"]["data"]);
    assert_eq!((level, data), (&json!("warning"), &json!("half")), "{log}");
    assert_eq!(log["params"]["_meta"][RELATED], related);
    let status = next();
    assert_eq!(status["method"], "notifications/tasks/status", "{status}");
    let params = &status["params"];
    assert_eq!(
        (&params["taskId"], &params["status"]),
        (id, &json!("completed"))
    );
    for member in ["createdAt", "lastUpdatedAt", "ttl", "pollInterval"] {
        assert!(!params[member].is_null(), "{member}: {status}");
    }
    assert!(params.get("_meta").is_none(), "{status}");
}

#[test]
fn notifications_of_a_task_are_on_the_stream_of_its_session() {
    let bench = steps_bench();
    let broker = serve(&bench);
    let session = McpSession::begin(broker.address(), "/mcp/direct");
    let other = McpSession::begin(broker.address(), "/mcp/direct").stream();
    session.result("logging/setLevel", &json!({"level": "warning"}));
    let mut stream = session.stream();
    let made = session.result("tools/call", &call("steps", 1, "p"));
    let next = |stream: &mut EventReader| stream.next_message().expect("the stream is open");
    check(|| next(&mut stream), &made["task"]["taskId"], "p");
    // A task without a token has no progress; nor has it log messages below the level.
    session.result("logging/setLevel", &json!({"level": "error"}));
    let mut params = call("steps", 2, "-");
    params["_meta"] = json!({});
    session.result("tools/call", &params);
    let ended = next(&mut stream);
    assert_eq!(ended["method"], "notifications/tasks/status", "{ended}");
    // A stream that is opened later goes on with the tasks of the session.
    drop(stream);
    let slow = session.result("tools/call", &call("slow", 3, "q"));
    let ended = next(&mut session.stream());
    assert_eq!(ended["method"], "notifications/tasks/status", "{ended}");
    assert_eq!(ended["params"]["taskId"], slow["task"]["taskId"]);
    drop(broker);
    let mut other = other;
    assert_eq!(
        other.next_message(),
        None,
        "another session has none of them"
    );
}

#[test]
fn notifications_of_a_task_follow_its_answer_on_its_connection() {
    let bench = steps_bench();
    let broker = serve(&bench);
    let mut client = WebSocketClient::connect(broker.address(), "/ws/mcp");
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    client.result("initialize", &hello);
    client.result("logging/setLevel", &json!({"level": "warning"}));
    let made = client.messages("tools/call", &call("steps", 1, "p"));
    let [answer] = &made[..] else {
        panic!("a notification before the answer that names the task: {made:?}");
    };
    let id = answer["result"]["task"]["taskId"].clone();
    check(|| client.next_message(), &id, "p");
    let cancelled = client.result("tools/call", &call("long", 3, "r"))["task"]["taskId"].clone();
    let messages = client.messages("tasks/cancel", &json!({"taskId": cancelled}));
    let answer = messages.last().expect("an answer");
    assert_eq!(answer["result"]["status"], "cancelled");
    let status = match &messages[..] {
        [status, _] => status.clone(),
        _ => client.next_message(),
    };
    assert_eq!(status["method"], "notifications/tasks/status", "{status}");
    assert_eq!(status["params"]["status"], "cancelled");
}
