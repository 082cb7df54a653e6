//! Every mode of `chaos-client` against the broker: the outcome of its connections, and that a plain
//! call is answered meanwhile and afterwards.

use std::thread;

use harness::{Run, access, binary, wait_until};
use serde_json::{Value, json};

use harness::faults::{ECHO, FaultFixture};

/// Runs one mode; returns its report on its connections.
fn misbehave(stage: &FaultFixture, mode: &str, more: &[&str]) -> Value {
    let mut args = vec![mode, stage.broker.address()];
    args.extend(["--path", ECHO]);
    args.extend(more);
    if access::is_on() {
        args.extend(["--key", access::KEY]);
    }
    let run = Run::new(&binary("chaos-client")).args(args);
    let output = thread::scope(|scope| {
        let running = scope.spawn(|| run.output());
        while !running.is_finished() {
            assert_eq!(stage.echo("served beside it").status, 200);
        }
        running.join().expect("it ends")
    });
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).expect("a line of JSON")
}

#[test]
fn chaos_client_in_any_mode_affects_no_other_caller() {
    let stage = FaultFixture::new(&json!({}));
    let flood = misbehave(&stage, "flood", &["--count", "400"]);
    assert_eq!(flood["answered"], json!({"200": 400}), "{flood}");

    let lies = misbehave(&stage, "lies", &["--count", "80"]);
    let answered = lies["answered"].as_object().expect("statuses");
    assert!(
        answered
            .keys()
            .all(|status| status.starts_with('4') || status == "200"),
        "a lie is refused, never a failure of ours: {lies}"
    );
    assert_eq!(
        (&lies["open"], &lies["refused"]),
        (&json!(0), &json!(0)),
        "{lies}"
    );
    // Two of the eight kinds name another host: this check must never be skipped.
    let hosts = answered.get("403").and_then(Value::as_u64).unwrap_or(0);
    assert!(hosts >= 10, "{lies}");

    let big = json!({"text": "x".repeat(100_000)}).to_string();
    let slow = misbehave(
        &stage,
        "slow-reader",
        &["--count", "8", "--seconds", "1", "--args", &big],
    );
    assert_eq!(slow["open"], 8, "each still reads: {slow}");
    let half = misbehave(&stage, "half-open", &["--count", "32", "--seconds", "1"]);
    assert_eq!(half["refused"], 0, "{half}");
    let left = misbehave(&stage, "leave", &["--count", "64"]);
    assert_eq!(left["left"], 64, "{left}");
    wait_until("no call waits for a caller that left", || {
        stage.echo("x").status == 200
    });
    stage.is_as_before();
}
