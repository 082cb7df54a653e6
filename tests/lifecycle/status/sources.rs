//! `status` of a broker whose sources are down, differ from the lock, or are not checked yet.

use harness::{Broker, Chaos, Run, binary, wait_until};
use serde_json::json;

/// `status` of a running broker, with its exit code.
fn status(broker: &Broker) -> (Option<i32>, String) {
    let output = Run::new(&binary("chaos-broker"))
        .args(["status", broker.address()])
        .output();
    let wide = output.stdout.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{}", output.stdout);
    (output.code, output.stdout)
}

#[test]
fn status_of_a_failed_or_drifted_source_has_cause_and_remedy() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("add")}));
    chaos.script("optional", &json!({"start_exit": 3}));
    let args = ["127.0.0.1:0", "--ignore-broken-tool"];
    let broker = Broker::start_ready(chaos.run("chaos-broker", &args));
    wait_until("the optional one has failed", || {
        broker.source("/optional")["cause"] == "exit_before_ready"
    });
    wait_until("a tool is withdrawn", || {
        broker.source("/a")["withdrawn"] == 1
    });
    let (code, text) = status(&broker);
    assert_eq!(code, Some(1), "{text}");
    for part in [
        " is ready, but degraded\n",
        "\n/optional  ",
        "\n  cause: exit_before_ready: The process ended before it answered.",
        "\n2 of 3 sources need attention\n",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn status_of_a_broker_that_is_not_ready_says_so() {
    let chaos = Chaos::new();
    chaos.script(
        "a",
        &json!({"on_method": {"server/discover": "hang", "initialize": "hang"}}),
    );
    let broker = Broker::start(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let (code, text) = status(&broker);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(" is not ready\n"), "{text}");
    assert!(text.contains("0 of 3 sources need attention"), "{text}");
}
