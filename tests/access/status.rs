//! `status` of a broker with access rules: a health check without a right, callers with a key, operators.

use harness::{Broker, Output, Run, assert_inert, binary, contains};
use serde_json::{Value, json};

use crate::caller::Key;
use crate::stage::{Stage, locked, scripted, serve};

fn access() -> Value {
    json!({
        "groups": ["reader", "admin"],
        "rules": [{"allow": ["/**"], "to": ["reader", "admin"]}],
        "operators": ["admin"],
    })
}

fn status(program: &str, address: &str, secret: &str, more: &[&str]) -> Output {
    let run = Run::new(&binary(program)).args([&["status", address], more].concat());
    let output = match secret {
        "" => run.output(),
        secret => run.env("MCP_BROKER_SECRET", secret).output(),
    };
    assert_inert("stdout", &output.stdout);
    assert_inert("stderr", &output.stderr);
    output
}

#[test]
fn status_without_a_right_exits_with_the_health_of_the_broker() {
    let (ada, root) = (Key::new("ada", &["reader"]), Key::new("root", &["admin"]));
    let stage = Stage::new(access(), &[&ada, &root]);
    let address = stage.broker.address();
    for program in ["mcp-broker", "broker-gen"] {
        for secret in ["", &ada.text] {
            let output = status(program, address, secret, &[]);
            assert_eq!(output.code, Some(0), "{}", output.stderr);
            contains(&output.stdout, &[" is ready\n", "`access.operators`"]);
            assert!(!output.stdout.contains("/a"), "{}", output.stdout);
            let output = status(program, address, secret, &["--format", "json"]);
            assert_eq!(output.code, Some(0), "{}", output.stderr);
            let ready: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
            assert_eq!(ready, json!({"ready": true}));
        }
        let output = status(program, address, &root.text, &[]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        contains(&output.stdout, &["/a", "0 of 2 sources need attention"]);
        // A credential that is not valid is a fault of the check.
        let output = status(program, address, "wrong", &[]);
        assert_eq!(output.code, Some(1), "{}", output.stdout);
        contains(&output.stderr, &["401"]);
    }
}

#[test]
fn status_without_a_right_fails_while_the_broker_is_not_ready() {
    let bench = locked(&scripted(access()));
    for server in ["a", "b"] {
        bench.script(server, &json!({"plain": true, "start_delay_ms": 600_000}));
    }
    let broker = Broker::start(serve(&bench));
    let output = status("mcp-broker", broker.address(), "", &[]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    contains(&output.stdout, &[" is not ready\n", "`access.operators`"]);
}
