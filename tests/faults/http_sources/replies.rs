//! The reply to a caller for each fault of a server over HTTP, and the state of its source.

use harness::figure::figure;
use harness::{ChaosServer, HttpStage, Response, http_script, on_echo, refusal, wait_until};
use serde_json::{Value, json};

use super::rules;

const ERAS: [&str; 2] = ["legacy", "modern"];

fn short_timeout(config: &mut Value) {
    config["tree"][0]["source"]["tool_overrides"] = json!({"echo": {"timeout": 5}});
}

/// The error of a refusal, its `maybe_executed`, and its details.
fn error_of(response: &Response, status: u16, code: &str) -> (bool, Value) {
    let error = refusal(response, status, code);
    let executed = error["maybe_executed"].as_bool().expect("it says so");
    (executed, error["details"].clone())
}

#[test]
fn call_of_a_server_over_http_with_a_fault_has_its_code() {
    for era in ERAS {
        let stage = HttpStage::with(&http_script(era, &json!({})), short_timeout);
        let of = |fault: Value, status, code| {
            stage.script(&rules(era, &[on_echo(&fault)]));
            error_of(&stage.echo("x"), status, code)
        };
        for (fault, status, code, executed, details) in [
            (
                json!({"endless": {"kind": "event"}}),
                502,
                "output_too_large",
                true,
                json!({"limit_bytes": 1 << 20}),
            ),
            (
                json!({"endless": {"kind": "comments"}}),
                502,
                "source_protocol",
                true,
                Value::Null,
            ),
            (
                json!({"endless": {"kind": "events", "text": "noise"}}),
                502,
                "source_protocol",
                true,
                Value::Null,
            ),
            (
                json!("hang"),
                504,
                "call_timeout",
                true,
                json!({"timeout_seconds": 5.0}),
            ),
            (
                json!("reset"),
                502,
                "source_exited",
                true,
                json!({"cause": "unreachable"}),
            ),
            (
                json!({"cut": "body"}),
                502,
                "source_exited",
                true,
                json!({"cause": "unreachable"}),
            ),
            (
                json!({"headers": {"Content-Type": "text/html"}}),
                502,
                "source_protocol",
                true,
                Value::Null,
            ),
            (
                json!({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}),
                502,
                "upstream_http",
                false,
                json!({"status": 302}),
            ),
            (
                json!({"status": 500}),
                502,
                "upstream_http",
                true,
                json!({"status": 500}),
            ),
            (
                json!({"status": 413}),
                502,
                "upstream_http",
                false,
                json!({"status": 413}),
            ),
        ] {
            let shown = fault.to_string();
            assert_eq!(
                of(fault, status, code),
                (executed, details),
                "{era}: {shown}"
            );
        }
        let rpc =
            json!({"status": 500, "body": {"code": -32050, "message": "why", "data": {"x": 1}}});
        stage.script(&rules(era, &[on_echo(&rpc)]));
        let error = refusal(&stage.echo("x"), 502, "source_error");
        assert_eq!(error["details"]["rpc"]["data"], json!({"x": 1}), "{error}");
        // Messages of the call have no limit in number.
        let logs = json!({"endless": {"kind": "events", "bytes": 2 << 20}});
        stage.script(&rules(era, &[on_echo(&logs)]));
        assert_eq!(stage.echo("after 20 000 log messages").status, 200);
        stage.script(&http_script(era, &json!({})));
        assert_eq!(stage.echo("again").status, 200);
        assert_eq!(stage.state()["counters"]["restarts"], 0);
        stage.is_as_before();
    }
    figure(
        "F-25",
        "codes by fault; two broken connections of five, the source stayed ready",
    );
}

#[test]
fn session_that_ends_under_calls_loses_and_repeats_none() {
    let stage = HttpStage::new(&http_script("legacy", &json!({})));
    let mut answered = 0;
    for round in 1..=3 {
        stage.script(&http_script("legacy", &json!({"end_sessions": round})));
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8)
                .map(|at| {
                    let stage = &stage;
                    scope.spawn(move || {
                        let text = format!("{round}-{at}");
                        (stage.echo(&text), text)
                    })
                })
                .collect();
            for call in calls {
                let (response, text) = call.join().expect("a caller does not panic");
                assert_eq!(
                    stage.chaos().executions("a", &text),
                    usize::from(response.status == 200)
                );
                if response.status == 200 {
                    answered += 1;
                } else {
                    // A session that ended soon after the last one is replaced after a delay.
                    let error = response.json()["error"].clone();
                    assert_eq!(error["maybe_executed"], false, "{error}");
                }
            }
        });
        wait_until("the source is ready", || stage.state()["state"] == "ready");
    }
    assert!(
        answered >= 8,
        "the first end is noticed by no caller: {answered}"
    );
    stage.is_as_before();
}

#[test]
fn server_that_asks_for_a_pause_is_named_to_callers_with_the_rest_of_it() {
    let busy = json!({"status": 429, "headers": {"Retry-After": "30"}, "body": "SERVER TEXT"});
    let stage = HttpStage::new(&http_script("modern", &json!({})));
    stage.script(&rules("modern", &[on_echo(&busy)]));
    let sent = || stage.chaos().requests("a", &json!({"tool": "echo"})).len();
    for _ in 0..10 {
        let response = stage.echo("x");
        let (executed, details) = error_of(&response, 503, "source_unavailable");
        assert_eq!(
            (executed, &details["cause"]),
            (false, &json!("unreachable"))
        );
        let rest: u64 = response
            .header("retry-after")
            .expect("it is set")
            .parse()
            .expect("a number");
        assert!((25..=30).contains(&rest), "{rest}");
        assert!(!response.text().contains("SERVER TEXT"));
    }
    assert_eq!(sent(), 1);
    let state = stage.state();
    assert_eq!(state["state"], "ready");
    assert!(state["instances"][0]["next_attempt"].is_string(), "{state}");
    figure(
        "F-26",
        "10 calls within a pause of 30 s: 1 request, 10 refusals with Retry-After, source ready",
    );
    stage.is_as_before();
}

#[test]
fn server_that_refuses_the_credentials_fails_its_source() {
    for era in ERAS {
        let stage = HttpStage::new(&http_script(era, &json!({})));
        let challenge = json!({"WWW-Authenticate": "Bearer realm=\"SERVER TEXT\""});
        let refused =
            json!({"on": {"http_method": "POST"}, "do": {"status": 401, "headers": challenge}});
        stage.script(&rules(era, &[refused]));
        for _ in 0..10 {
            let response = stage.echo("x");
            let (executed, details) = error_of(&response, 503, "source_unavailable");
            assert_eq!((executed, &details["cause"]), (false, &json!("needs_auth")));
            assert!(!response.text().contains("SERVER TEXT"));
        }
        let calls = stage.chaos().requests("a", &json!({"tool": "echo"}));
        // None, if the refusal of another request was first.
        assert!(calls.len() <= 1, "{era}: {calls:?}");
        wait_until("it has failed", || stage.state()["state"] == "failed");
        let all = [
            stage.broker.get("/sources").text(),
            stage.broker.get("/readyz").text(),
        ];
        assert!(
            all.iter().all(|text| !text.contains("SERVER TEXT")),
            "{all:?}"
        );
        wait_until("the log has it", || {
            stage.broker.stderr().contains("SERVER TEXT")
        });
        stage.broker.result("/b/add", json!({"a": 1, "b": 2}));
    }
}

#[test]
fn server_that_breaks_connections_is_down_and_comes_back() {
    let stage = HttpStage::new(&http_script("modern", &json!({})));
    stage.script(&rules("modern", &[json!({"on": {}, "do": "reset"})]));
    for _ in 0..5 {
        let response = stage.echo("x");
        // The reset of another request of the source may be noticed before that of a call.
        if response.status == 503 {
            break;
        }
        let (executed, details) = error_of(&response, 502, "source_exited");
        assert_eq!((executed, &details["cause"]), (true, &json!("unreachable")));
    }
    wait_until("the source is down", || stage.state()["state"] == "backoff");
    let (executed, _) = error_of(&stage.echo("x"), 503, "source_unavailable");
    assert!(!executed);
    stage.script(&http_script("modern", &json!({})));
    wait_until("it is back", || stage.echo("back").status == 200);
    stage.is_as_before();
}

#[test]
fn drift_that_a_server_over_http_announces_is_applied_while_it_runs() {
    for era in ERAS {
        let script = |tools: Value, notify: u64| {
            let mut script = http_script(era, &json!({}));
            script["notify"] = json!(notify);
            if !tools.is_null() {
                script["tools"] = tools;
            }
            script
        };
        let stage = HttpStage::new(&script(Value::Null, 0));
        assert_eq!(stage.echo("x").status, 200);
        stage.script(&script(harness::Chaos::tools_asking_more("echo"), 1));
        wait_until("the changed tool is withdrawn", || {
            let response = stage.echo("x");
            response.status == 409 && response.code() == "tool_withdrawn"
        });
        stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
        stage.script(&script(Value::Null, 2));
        wait_until("it is served again", || stage.echo("x").status == 200);
        stage.is_as_before();
    }
}

#[test]
fn server_over_http_that_moves_to_another_process_is_used_again() {
    for era in ERAS {
        let mut stage = HttpStage::new(&http_script(era, &json!({})));
        assert_eq!(stage.echo("before").status, 200);
        let address = stage.sources.a.address.clone();
        let before = stage.sources.a.pid();
        let other = ChaosServer::start(stage.chaos(), "unused");
        drop(std::mem::replace(&mut stage.sources.a, other));
        let moved = ChaosServer::start_at(stage.chaos(), "a", &address);
        assert_ne!(before, moved.pid());
        stage.sources.a = moved;
        let mut failed = 0;
        wait_until("it answers", || {
            let response = stage.echo("after");
            failed += usize::from(response.status != 200);
            response.status == 200
        });
        assert!(failed <= 2, "{era}: {failed} calls failed");
        assert!(stage.chaos().executions("a", "after") <= 1 + failed);
        stage.is_as_before();
    }
}

#[test]
fn source_whose_connections_broke_is_tried_with_one_call() {
    for era in ERAS {
        let stage = HttpStage::with(&http_script(era, &json!({})), short_timeout);
        let broken = rules(era, &[on_echo(&json!("reset"))]);
        stage.script(&broken);
        for _ in 0..5 {
            refusal(&stage.echo("broken"), 502, "source_exited");
        }
        let await_state = |state: &str| {
            wait_until(&format!("{era}: the source is {state}"), || {
                stage.state()["state"] == state
            });
        };
        await_state("backoff");
        assert_eq!(stage.state()["cause"], "unreachable");
        // The server opens a session and lists its tools, and breaks every call.
        await_state("ready");
        refusal(&stage.echo("broken"), 502, "source_exited");
        await_state("backoff");
        stage.script(&http_script(era, &json!({})));
        wait_until("it answers again", || stage.echo("x").status == 200);
        stage.script(&broken);
        for _ in 0..4 {
            refusal(&stage.echo("broken"), 502, "source_exited");
        }
        assert_eq!(stage.state()["state"], "ready", "an answer ended the trial");
        stage.script(&http_script(era, &json!({})));
        assert_eq!(stage.echo("x").status, 200);
        stage.is_as_before();
    }
}
