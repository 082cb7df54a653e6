//! Progress and log messages of a server over HTTP, on their way to a caller of a broker over MCP.

use harness::mcp_http::{EventReader, McpSession, send_modern};
use harness::{HttpStage, http_script};
use serde_json::{Value, json};

/// A server whose call of `echo` reports progress and logs.
fn reporting(era: &str) -> Value {
    let log = json!([{"level": "warning", "data": "said", "logger": "l"}]);
    let progress =
        json!([{"progress": 1, "total": 2}, {"progress": 2, "total": 2, "message": "all"}]);
    let mut script = http_script(era, &json!({"reply": "sse"}));
    script["capabilities"] = json!({"tools": {"listChanged": true}, "logging": {}});
    script["on_call"] = json!({"echo": {"log": log, "then": {"progress": progress}}});
    script
}

/// The messages before the answer, and the answer.
fn messages(mut reader: EventReader) -> (Vec<Value>, Value) {
    let mut all: Vec<_> = std::iter::from_fn(|| reader.next_message()).collect();
    let answer = all.pop().expect("an answer");
    assert!(answer["result"].is_object(), "{answer}");
    (all, answer)
}

fn has_all(messages: &[Value], token: &Value) {
    let of = |method: &str| -> Vec<&Value> {
        let of_method = messages
            .iter()
            .filter(|message| message["method"] == method);
        of_method.map(|message| &message["params"]).collect()
    };
    let progress = of("notifications/progress");
    assert_eq!(progress.len(), 2, "{messages:?}");
    assert_eq!(progress[1]["message"], "all");
    assert!(
        progress
            .iter()
            .all(|params| params["progressToken"] == *token)
    );
    let log = of("notifications/message");
    assert_eq!(log.len(), 1, "{messages:?}");
    assert_eq!(
        (&log[0]["level"], &log[0]["data"]),
        (&json!("warning"), &json!("said"))
    );
}

#[test]
fn events_of_a_server_over_http_reach_the_caller_of_the_broker() {
    for era in ["legacy", "modern"] {
        let stage = HttpStage::new(&reporting(era));
        let address = stage.broker.address();
        let token = json!("t-1");
        let call = json!({"path": "/a/echo", "args": {"text": "x"}});
        let params =
            json!({"name": "meta_call", "arguments": call, "_meta": {"progressToken": token}});
        let session = McpSession::begin(address, "/mcp");
        session.result("logging/setLevel", &json!({"level": "info"}));
        let sent = session.send(&json!(1), "tools/call", &params);
        let (before, _) = messages(EventReader::open(sent));
        has_all(&before, &token);

        let mut params = params.clone();
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
        let sent = send_modern(address, "/mcp", &json!(2), "tools/call", &params);
        let (before, _) = messages(EventReader::open(sent));
        has_all(&before, &token);
        // The server got a token of the broker, not that of the caller.
        assert!(!stage.chaos().raw_journal("a").contains("t-1"));
    }
}
