//! Several processes of one source: which process gets a call, and the effects between them.

use std::thread;

use harness::{Broker, Chaos, refusal, wait_until};
use serde_json::{Value, json};

/// A broker with these settings of the sources `/a` and `/b`.
fn start(chaos: &Chaos, a: &Value, b: &Value) -> Broker {
    let compiled = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    );
    let file = chaos.config(compiled, |config| {
        for (at, more) in [a, b].into_iter().enumerate() {
            let source = config["tree"][at]["source"].as_object_mut();
            let more = more.as_object().expect("members").clone();
            source.expect("a source").extend(more);
        }
    });
    Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &file]))
}

fn of_source(broker: &Broker, path: &str) -> Value {
    let sources = broker.get("/sources").json()["sources"].clone();
    let all = sources.as_array().expect("a list");
    let one = all.iter().find(|source| source["path"] == path);
    one.expect("it is configured").clone()
}

fn all_ready(broker: &Broker, path: &str, count: usize) -> bool {
    let instances = of_source(broker, path)["instances"].clone();
    let instances = instances.as_array().expect("a list");
    instances.len() == count && instances.iter().all(|one| one["state"] == "ready")
}

#[test]
fn calls_of_a_sequential_server_go_to_a_free_instance() {
    let chaos = Chaos::new();
    let broker = start(&chaos, &json!({}), &json!({"instances": 3}));
    wait_until("all are up", || all_ready(&broker, "/b", 3));
    assert_eq!(chaos.pids("b").len(), 3);
    thread::scope(|scope| {
        let slow = || broker.call("/b/slow", json!({"ms": 10_000}));
        let calls = [(); 3].map(|()| scope.spawn(slow));
        // None of them waits for another: each has reached a process before any has ended.
        wait_until("all three run at one time", || {
            chaos.events("b", "call").len() == 3
        });
        let early = calls.iter().filter(|call| call.is_finished()).count();
        for call in calls {
            let reply = call.join().expect("it ended");
            assert_eq!((reply.status, early), (200, 0), "{}", reply.text());
        }
    });
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    for pid in chaos.pids("b") {
        wait_until("it is gone", || !harness::is_alive(pid));
    }
}

#[test]
fn calls_go_to_other_instances_while_one_is_down() {
    let chaos = Chaos::new();
    let broker = start(&chaos, &json!({"instances": 2}), &json!({}));
    wait_until("both are up", || all_ready(&broker, "/a", 2));
    refusal(&broker.call("/a/die", json!({})), 502, "source_exited");
    for _ in 0..20 {
        broker.result("/a/echo", json!({"text": "x"}));
    }
    assert_eq!(of_source(&broker, "/a")["state"], "ready");
    wait_until("it is up again", || all_ready(&broker, "/a", 2));
    let source = of_source(&broker, "/a");
    assert_eq!(source["counters"]["restarts"], 1);
    assert_eq!(source["counters"]["calls"], 21);
    assert_eq!(source["counters"]["failures"], 1);
}

#[test]
fn tool_missing_in_one_instance_is_withdrawn_from_all() {
    let chaos = Chaos::new();
    let broker = start(&chaos, &json!({"instances": 2}), &json!({}));
    wait_until("both are up", || all_ready(&broker, "/a", 2));
    // Only processes that start later offer other tools.
    let tools = Chaos::tools_asking_more("echo");
    chaos.script("a", &json!({"tools": tools}));
    refusal(&broker.call("/a/die", json!({})), 502, "source_exited");
    wait_until("the tool is withdrawn", || {
        broker.source("/a")["withdrawn"] == 1
    });
    for _ in 0..10 {
        refusal(
            &broker.call("/a/echo", json!({"text": "x"})),
            409,
            "tool_withdrawn",
        );
        broker.result("/a/add", json!({"a": 1, "b": 2}));
    }
    // And back, once the last of them offers the reviewed tools.
    chaos.script("a", &json!({"generation": 1}));
    wait_until("the tool is back", || broker.source("/a")["withdrawn"] == 0);
    broker.result("/a/echo", json!({"text": "x"}));
}

#[test]
fn instance_of_another_server_withdraws_the_source() {
    let chaos = Chaos::new();
    let broker = start(&chaos, &json!({"instances": 2}), &json!({}));
    wait_until("both are up", || all_ready(&broker, "/a", 2));
    // Instructions are read when a process starts: only the next process has hidden text in them.
    chaos.script(
        "a",
        &json!({"instructions": "Use it well\u{200b}\u{e0041}"}),
    );
    refusal(&broker.call("/a/die", json!({})), 502, "source_exited");
    wait_until("the source is withdrawn", || {
        of_source(&broker, "/a")["state"] == "withdrawn"
    });
    let instances = of_source(&broker, "/a")["instances"].clone();
    let states: Vec<_> = instances.as_array().expect("a list").iter().collect();
    assert!(
        states.iter().any(|one| one["state"] == "ready"),
        "{instances}"
    );
    assert!(
        states.iter().any(|one| one["cause"] == "drift_source"),
        "{instances}"
    );
    for _ in 0..10 {
        let call = broker.call("/a/add", json!({"a": 1, "b": 2}));
        refusal(&call, 409, "tool_withdrawn");
    }
    chaos.script("a", &json!({}));
    let last = chaos.pids("a").pop().expect("it was started");
    let kill = harness::Run::new("/bin/sh".as_ref()).args(["-c", &format!("kill -KILL {last}")]);
    assert_eq!(kill.output().code, Some(0));
    wait_until("both are up again", || all_ready(&broker, "/a", 2));
    broker.result("/a/add", json!({"a": 1, "b": 2}));
}
