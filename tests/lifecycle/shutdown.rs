//! The end of a broker and its sources: draining, signals, used ports, servers that die. No process is
//! ever left.

use std::net::TcpListener;
use std::thread;

use harness::{
    Broker, Chaos, Run, children_of, is_alive, post, post_bytes, read, refusal, send, wait_until,
};
use serde_json::{Value, json};

fn ready(chaos: &Chaos) -> Broker {
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]))
}

fn kill(pid: u32) {
    let kill = Run::new("/bin/sh".as_ref())
        .args(["-c", &format!("kill -9 {pid}")])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
}

/// Every process that the sources started, grandchildren included.
fn all_pids(chaos: &Chaos) -> Vec<u32> {
    let grandchildren = ["a", "b", "optional"].map(|source| chaos.events(source, "grandchild"));
    let grandchildren = grandchildren
        .iter()
        .flatten()
        .filter_map(|event| event["child"].as_u64()?.try_into().ok());
    let children = ["a", "b", "optional"].map(|source| chaos.pids(source));
    children
        .into_iter()
        .flatten()
        .chain(grandchildren)
        .collect()
}

/// The counters of the source at this index in `/sources`.
fn counters(broker: &Broker, at: usize) -> Value {
    broker.get("/sources").json()["sources"][at]["counters"].clone()
}

fn none_is_left(chaos: &Chaos, descendants: &[u32]) {
    let known = all_pids(chaos);
    assert!(!known.is_empty(), "something was started");
    for pid in known.iter().chain(descendants) {
        assert!(!is_alive(*pid), "process {pid} is left");
    }
}

#[test]
fn call_in_flight_is_finished_before_the_end() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    wait_until("all sources are up", || {
        children_of(broker.pid()).len() >= 3
    });
    let address = broker.address().to_owned();
    let call = thread::spawn(move || {
        post(
            &address,
            "/meta_call",
            &json!({"path": "/b/slow", "args": {"ms": 2000}}),
        )
    });
    chaos.await_events("b", "call", 1);
    let descendants = children_of(broker.pid());
    let (status, stderr) = broker.terminate();
    let response = call.join().expect("the caller gets an answer");
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(chaos.events("b", "cancelled"), Vec::<Value>::new());
    none_is_left(&chaos, &descendants);
}

/// Asserts that SIGTERM to a broker with this source `/a` leaves no process.
fn leaves_nothing(script: Value) {
    let chaos = Chaos::new();
    chaos.script("a", &script);
    let broker = ready(&chaos);
    let descendants = children_of(broker.pid());
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    none_is_left(&chaos, &descendants);
}

#[test]
fn grandchild_ends_with_the_broker() {
    leaves_nothing(json!({"fork_grandchild": true}));
}

#[test]
fn server_that_ignores_the_end_of_its_input_ends_with_the_broker() {
    leaves_nothing(json!({"ignore_eof": true}));
}

#[test]
fn server_that_ignores_sigterm_ends_with_the_broker() {
    leaves_nothing(json!({"ignore_eof": true, "ignore_sigterm": true, "fork_grandchild": true}));
}

#[test]
fn grandchild_in_another_group_or_session_ends_with_the_broker() {
    leaves_nothing(json!({"fork_grandchild": "group"}));
    leaves_nothing(
        json!({"ignore_eof": true, "ignore_sigterm": true, "fork_grandchild": "setsid"}),
    );
}

#[test]
fn grandchild_of_a_crashed_server_is_ended() {
    for kind in [json!(true), json!("group"), json!("setsid")] {
        let chaos = Chaos::new();
        chaos.script("a", &json!({"fork_grandchild": kind}));
        let broker = ready(&chaos);
        let first = all_pids(&chaos);
        chaos.script("a", &json!({}));
        kill(chaos.pids("a")[0]);
        let left = chaos.events("a", "grandchild")[0]["child"].as_u64();
        let left = left.and_then(|pid| pid.try_into().ok());
        let left = left.expect("a process has a number");
        assert!(first.contains(&left));
        wait_until("the grandchild is gone", || !is_alive(left));
        broker.result("/a/add", json!({"a": 1, "b": 2}));
        broker.result("/b/add", json!({"a": 1, "b": 2}));
    }
}

#[test]
fn second_signal_ends_the_broker_at_once() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"on_call": {"echo": "hang"}, "ignore_eof": true, "ignore_sigterm": true}),
    );
    let broker = ready(&chaos);
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let _in_flight = send(
        broker.address(),
        &post_bytes(broker.address(), "/meta_call", &body),
    );
    chaos.await_events("a", "call", 1);
    broker.signal("INT");
    wait_until("it begins to stop", || broker.stderr().contains("stopping"));
    broker.signal("TERM");
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(130), "{stderr}");
    wait_until("the children go with it", || {
        all_pids(&chaos).into_iter().all(|pid| !is_alive(pid))
    });
}

#[test]
fn call_left_after_the_drain_fails_with_shutting_down() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": "hang"}}));
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", "--drain", "2"]);
    let broker = Broker::start_ready(run);
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let caller = send(
        broker.address(),
        &post_bytes(broker.address(), "/meta_call", &body),
    );
    chaos.await_events("a", "call", 1);
    let (status, stderr) = broker.terminate();
    let error = refusal(&read(caller), 503, "shutting_down");
    assert_eq!(
        (&error["maybe_executed"], &error["retryable"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(status.code(), Some(0), "{stderr}");
    none_is_left(&chaos, &[]);
}

#[test]
fn sigterm_during_the_start_leaves_no_process() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"start_delay_ms": 600_000, "fork_grandchild": true}),
    );
    chaos.script("b", &json!({"on_method": {"tools/list": "hang"}}));
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    chaos.await_events("a", "grandchild", 1);
    chaos.await_events("b", "list", 1);
    let descendants = children_of(broker.pid());
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    none_is_left(&chaos, &descendants);
}

#[test]
fn port_in_use_is_refused_before_any_server_starts() {
    let chaos = Chaos::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    let output = chaos.run("chaos-broker", &[&address]).output();
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(7), ""),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains(&address), "{}", output.stderr);
    for source in ["a", "b", "optional"] {
        assert_eq!(chaos.raw_journal(source), "", "nothing was started");
    }
}

#[test]
fn server_that_is_killed_fails_its_calls_and_is_restarted() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"on_call": {"echo": "hang"}, "stderr_lines": ["loading", "last words"]}),
    );
    let broker = ready(&chaos);
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let bytes = post_bytes(broker.address(), "/meta_call", &body);
    let callers: Vec<_> = (0..3).map(|_| send(broker.address(), &bytes)).collect();
    chaos.await_events("a", "call", 3);
    kill(chaos.pids("a")[0]);
    for caller in callers {
        let error = refusal(&read(caller), 502, "source_exited");
        assert_eq!(
            (&error["maybe_executed"], &error["retryable"]),
            (&json!(true), &json!(false))
        );
        let details = &error["details"];
        assert_eq!(
            (&details["cause"], &details["signal"]),
            (&json!("exited"), &json!(9)),
            "{error}"
        );
        assert!(details.get("stderr").is_none(), "{error}");
    }
    wait_until("its last words are in the log", || {
        broker.stderr().contains("loading | last words")
    });
    broker.result("/b/echo", json!({"text": "x"}));
    wait_until("the next call works", || {
        let response = broker.call("/a/add", json!({"a": 1, "b": 2}));
        assert!(matches!(response.status, 200 | 503), "{}", response.text());
        response.status == 200
    });
    assert_eq!(
        chaos
            .events("a", "call")
            .iter()
            .filter(|call| call["tool"] == "echo")
            .count(),
        3,
        "nothing is repeated"
    );
    assert_eq!(broker.get("/readyz").status, 200);
}

#[test]
fn call_after_a_crash_waits_for_the_restart() {
    let chaos = Chaos::new();
    let broker = ready(&chaos);
    refusal(
        &broker.call("/a/die", json!({"code": 1})),
        502,
        "source_exited",
    );
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(chaos.pids("a").len(), 2);
    let counters = counters(&broker, 0);
    assert_eq!(
        (
            &counters["calls"],
            &counters["failures"],
            &counters["restarts"]
        ),
        (&json!(2), &json!(1), &json!(1))
    );
}

#[test]
fn answer_after_the_timeout_reaches_no_caller() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"ignore_cancel": true}));
    let broker = ready(&chaos);
    refusal(
        &broker.call("/a/slow", json!({"ms": 1500})),
        504,
        "call_timeout",
    );
    wait_until("the late answer is counted", || {
        counters(&broker, 0)["late_answers"] == 1
    });
    assert_eq!(counters(&broker, 0)["failures"], 1);
    for n in 0..20 {
        let text = broker.result("/a/add", json!({"a": n, "b": 1}))["content"][0]["text"].clone();
        assert_eq!(text, json!((n + 1).to_string()));
    }
    assert_eq!(chaos.pids("a").len(), 1, "the server is kept");
}
