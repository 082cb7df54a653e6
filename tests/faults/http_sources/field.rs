//! Servers over HTTP of bug reports, from the lock to a call: gateways that refuse `server/discover`, and servers that
//! do not know a session after a restart.

use harness::{Chaos, HttpStage, refusal, wait_until};
use serde_json::{Value, json};

use super::rules;

fn openings(stage: &HttpStage, method: &str) -> usize {
    let requests = stage.chaos().requests("a", &json!({"rpc_method": method}));
    requests.len()
}

#[test]
fn gateway_that_refuses_the_probe_is_locked_and_served() {
    for status in [401, 403, 503] {
        let body = r#"{"error":"unauthorized"}"#;
        let probe = json!({"status": status, "body": body});
        let probe = json!({"on": {"method": "server/discover"}, "do": probe});
        let stage = HttpStage::new(&rules("legacy", &[probe]));
        assert_eq!(stage.echo("x").status, 200, "{status}");
        // Only the first launch of `lock` does not know the era.
        assert_eq!(openings(&stage, "server/discover"), 1, "{status}");
        stage.is_as_before();
    }
}

/// A fault of the second call of `echo`, and whether the call may have been executed.
fn lost() -> Vec<(Value, bool)> {
    let text = r#"{"error":"Session not found"}"#;
    let rpc = |code: i64, id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"Unauthorized: No valid session ID provided"}},"id":{id}}}"#
        )
    };
    let of = |content: &str, status: u16, body: &str| {
        let mut fault = json!({"headers": {"Content-Type": content}, "body": body});
        if status != 200 {
            fault["status"] = status.into();
        }
        fault
    };
    let json = |status, body: &str| of("application/json", status, body);
    let event = format!("event: message\ndata: {text}\n\n");
    vec![
        (json(401, &rpc(-32000, "null")), false),
        (of("text/plain", 410, "gone"), false),
        (json(500, text), true),
        (json(500, &rpc(-32603, "$ID")), true),
        (of("text/event-stream", 200, &event), true),
        (json(200, &rpc(-32001, "$ID")), true),
    ]
}

#[test]
fn session_that_a_server_lost_is_replaced_with_the_next_call() {
    for retries in [false, true] {
        for (fault, may_execute) in lost() {
            let script = |rules: &[Value]| {
                let mut script = super::rules("legacy", rules);
                script["tools"] = Chaos::tools_with("echo", |tool| {
                    tool["annotations"] = json!({"readOnlyHint": true});
                });
                script
            };
            let stage = HttpStage::with(&script(&[]), |config| {
                config["tree"][0]["source"]["retry_idempotent"] = json!(retries);
            });
            let rule = json!({"on": {"tool": "echo"}, "nth": 2, "do": fault});
            stage.script(&script(&[rule]));
            assert_eq!(stage.echo("before").status, 200);
            let before = openings(&stage, "initialize");
            let response = stage.echo("lost");
            // The tool is marked as one that only reads.
            let is_repeated = retries || !may_execute;
            if is_repeated {
                assert_eq!(response.status, 200, "{fault}: {}", response.text());
            } else {
                let error = refusal(&response, 502, "source_exited");
                assert_eq!(error["maybe_executed"], true, "{fault}: {error}");
                assert_eq!(error["details"]["cause"], "session_ended", "{error}");
            }
            assert_eq!(stage.echo("after").status, 200, "{fault}");
            let executions = stage.chaos().executions("a", "lost");
            assert_eq!(executions, usize::from(is_repeated), "{fault}");
            assert_eq!(openings(&stage, "initialize"), before + 1, "{fault}");
            wait_until("the source is ready", || stage.state()["state"] == "ready");
            stage.is_as_before();
        }
    }
}
