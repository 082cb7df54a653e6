//! The end of a broker with calls in progress: their time is a setting.

use std::path::Path;
use std::thread;

use harness::faults::config_args;
use harness::figure::Watch;
use harness::{
    Broker, Chaos, Run, as_process_1, children_of, has_process_namespaces, post, post_bytes, read,
    refusal, send,
};
use serde_json::{Value, json};

/// The time of the longest call, in milliseconds: longer than a broker may take to end without calls.
const LONG_CALL_MS: u64 = 16_500;

/// A broker whose server never answers `/a/echo`.
fn hanging(more: &[&str], change: impl FnOnce(&mut Value)) -> (Chaos, Broker) {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": "hang"}}));
    let args = config_args(&chaos, change);
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &args));
    (chaos, broker)
}

/// Asserts that the end of the broker cuts a call that hangs, and that the log names it.
fn cuts_its_call(chaos: &Chaos, broker: Broker, time: &str) {
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let bytes = post_bytes(broker.address(), "/meta_call", &body);
    let caller = send(broker.address(), &bytes);
    chaos.await_events("a", "call", 1);
    let (status, stderr) = broker.terminate();
    let reply = read(caller);
    let error = refusal(&reply, 503, "shutting_down");
    assert_eq!(error["maybe_executed"], true, "{error}");
    assert_eq!(status.code(), Some(0), "{stderr}");
    let id = reply.header("x-request-id").expect("a request id");
    let line = format!("calls were still running after {time} s and failed: /a/echo ({id})");
    assert!(stderr.contains(&line), "{stderr}");
}

#[test]
fn drain_timeout_of_the_config_ends_calls_in_progress() {
    let (chaos, broker) = hanging(&[], |config| config["drain_timeout"] = json!(0.5));
    cuts_its_call(&chaos, broker, "0.5");
}

#[test]
fn drain_of_the_command_line_counts_before_the_config() {
    let (chaos, broker) = hanging(&["--drain", "0.25"], |config| {
        config["drain_timeout"] = json!(600);
    });
    cuts_its_call(&chaos, broker, "0.25");
}

#[test]
fn drain_timeout_is_that_of_the_config_after_a_reload() {
    let (chaos, broker) = hanging(&[], |config| config["drain_timeout"] = json!(600));
    config_args(&chaos, |config| config["drain_timeout"] = json!(0.125));
    broker.signal("HUP");
    harness::wait_until("the config is reloaded", || {
        broker.stderr().contains("reloaded")
    });
    cuts_its_call(&chaos, broker, "0.125");
}

#[test]
fn drain_timeout_beyond_the_range_is_refused() {
    let chaos = Chaos::new();
    for args in [["--drain", "-1"], ["--drain", "3601"], ["--drain", "x"]] {
        let output = chaos.run("chaos-broker", &["0"]).args(args).output();
        assert_eq!(output.code, Some(2), "{}", output.stderr);
    }
}

/// The call is as long as the broker, its deadline and its guard would wait for an end without calls.
fn long_call_is_answered(start: impl FnOnce(Run) -> Run) {
    let chaos = Chaos::new();
    let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
    let broker = Broker::start_ready(start(run));
    let address = broker.address().to_owned();
    let call = thread::spawn(move || {
        let body = json!({"path": "/b/slow", "args": {"ms": LONG_CALL_MS}});
        post(&address, "/meta_call", &body)
    });
    chaos.await_events("b", "call", 1);
    let (status, stderr) = broker.terminate();
    let response = call.join().expect("the caller gets an answer");
    assert_eq!(response.status, 200, "{}{stderr}", response.text());
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(chaos.events("b", "cancelled"), Vec::<Value>::new());
}

#[test]
fn long_call_in_progress_is_answered_before_the_end() {
    long_call_is_answered(|run| run);
}

/// Containers start a program as process 1, for which a signal without a handler has no effect.
#[test]
fn process_1_of_a_container_answers_its_call_and_ends() {
    if !has_process_namespaces() {
        return;
    }
    let chaos = Chaos::new();
    let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
    let broker = Broker::start_ready(as_process_1(run));
    let address = broker.address().to_owned();
    let call = thread::spawn(move || {
        let body = json!({"path": "/b/slow", "args": {"ms": 1_500}});
        post(&address, "/meta_call", &body)
    });
    chaos.await_events("b", "call", 1);
    let process_1 = children_of(broker.guard())[0];
    let kill = format!("kill -TERM {process_1}");
    let kill = Run::new(Path::new("/bin/sh")).args(["-c", &kill]).output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
    let response = call.join().expect("the caller gets an answer");
    let (status, _, stderr) = broker.finish();
    assert_eq!(response.status, 200, "{}{stderr}", response.text());
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn broker_without_calls_ends_at_once_whatever_its_drain_timeout_is() {
    let (_chaos, idle) = hanging(&["--drain", "3600"], |_| {});
    let watch = Watch::start();
    let (status, stderr) = idle.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(
        watch.passed().as_millis() < u128::from(LONG_CALL_MS),
        "{stderr}"
    );
}
