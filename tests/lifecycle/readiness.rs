//! `/readyz`: whether the broker serves any source, and whether it serves all of them.

use harness::{Broker, Chaos, raw, wait_until};
use serde_json::{Value, json};

const SOURCES: [&str; 3] = ["a", "b", "optional"];

/// The status of `/readyz`, and its members `ready` and `degraded`.
fn readiness(broker: &Broker) -> (u16, Value, Value) {
    let reply = broker.get("/readyz");
    let body = reply.json();
    (
        reply.status,
        body["ready"].clone(),
        body["degraded"].clone(),
    )
}

fn echo(broker: &Broker, source: &str) -> u16 {
    let path = format!("/{source}/echo");
    broker.call(&path, json!({"text": "x"})).status
}

#[test]
fn refused_host_has_a_line_and_a_flood_of_them_no_more() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    for route in ["/healthz", "/mcp"] {
        for _ in 0..50 {
            let head = format!(
                "GET {route} HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n"
            );
            let answer = raw(broker.address(), head.as_bytes());
            assert_eq!(answer.status, 403, "{route}");
        }
    }
    let log = broker.stderr();
    let lines = log.lines().filter(|line| line.contains("rebound.example"));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("host_forbidden") && lines[0].contains("allowed_hosts"));
}

#[test]
fn readyz_is_503_while_no_source_is_ready_and_degraded_until_all_are() {
    let chaos = Chaos::new();
    for source in SOURCES {
        chaos.script(source, &json!({"start_exit": 1}));
    }
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", "--ignore-broken-tool"]);
    let broker = Broker::start(run);
    wait_until("every source has failed", || {
        let is_down = |source: &&str| broker.source(&format!("/{source}"))["state"] == "backoff";
        SOURCES.iter().all(is_down)
    });
    let not_ready = (503, json!(false), json!(true));
    assert_eq!(readiness(&broker), not_ready);
    chaos.script("b", &json!({}));
    wait_until("a call wakes it", || echo(&broker, "b") == 200);
    assert_eq!(readiness(&broker), (200, json!(true), json!(true)));
    for source in ["a", "optional"] {
        chaos.script(source, &json!({}));
        wait_until("a call wakes it", || echo(&broker, source) == 200);
    }
    let ready = (200, json!(true), json!(false));
    assert_eq!(readiness(&broker), ready);
    let log = broker.stderr();
    for source in SOURCES {
        let line = log.lines().find(|line| {
            line.contains("source is up again") && line.contains(&format!("/{source}"))
        });
        assert!(line.is_some(), "{source}: {log}");
    }

    // A withdrawn tool, while every source is ready.
    let tools = Chaos::tools_asking_more("echo");
    chaos.script("a", &json!({"tools": tools, "generation": 1}));
    wait_until("a tool is withdrawn", || readiness(&broker).2 == true);
    assert_eq!(broker.source("/a")["state"], "ready");
    assert_eq!(readiness(&broker), (200, json!(true), json!(true)));
    chaos.script("a", &json!({"generation": 2}));
    wait_until("it is restored", || readiness(&broker) == ready);
}
