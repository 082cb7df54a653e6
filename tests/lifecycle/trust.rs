//! Trust levels of a config that is given at the start or read again: a lower one hides tools, a higher one is
//! refused.

use harness::{Broker, Chaos, contains, refusal, wait_until};
use serde_json::{Value, json};

use crate::config::{changed, codes, refused, started};

/// Words that are in names of the scripted tools.
fn words() -> Value {
    json!({"sensitive": ["env_dump", "add"]})
}

#[test]
fn config_with_a_lower_level_hides_sensitive_names() {
    let (chaos, broker) = started(|config| {
        config["trust"] = words();
        config["tree"][0]["source"]["trust"] = json!("untrusted");
        // This one names its tools, so none is hidden.
        config["tree"][1]["source"]["trust"] = json!("untrusted");
    });
    let numbers = json!({"a": 1, "b": 2});
    refusal(
        &broker.call("/a/add", numbers.clone()),
        404,
        "path_not_found",
    );
    refusal(
        &broker.call("/a/env_dump", json!({})),
        404,
        "path_not_found",
    );
    broker.result("/a/echo", json!({"text": "x"}));
    broker.result("/b/add", numbers);
    let tree = broker.post("/meta_tree", &json!({"depth": 2})).text();
    assert!(
        !tree.contains("/a/add") && tree.contains("/b/add"),
        "{tree}"
    );
    assert_eq!(chaos.events("a", "call").len(), 1);
}

#[test]
fn config_with_a_level_that_needs_a_list_hides_every_tool() {
    let (_chaos, broker) = started(|config| {
        config["tree"][0]["source"]["trust"] = json!("verified");
    });
    refusal(
        &broker.call("/a/echo", json!({"text": "x"})),
        404,
        "path_not_found",
    );
    assert_eq!(broker.source("/a")["tools"], 0);
    broker.result("/b/echo", json!({"text": "x"}));
}

#[test]
fn drift_of_a_tool_that_a_lower_level_hides_does_not_refuse_a_start() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_asking_more("add")}));
    let config = changed(&chaos, |config| {
        config["trust"] = words();
        config["tree"][0]["source"]["trust"] = json!("untrusted");
    });
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    broker.result("/a/echo", json!({"text": "x"}));
}

#[test]
fn config_with_a_wrong_level_is_refused() {
    let found = refused(|config| config["tree"][0]["source"]["trust"] = json!("none"));
    assert_eq!(codes(&found), ["config_range"]);
    assert_eq!(found[0]["pointer"], "/tree/0/source/trust");
}

/// A folder with a config whose first source has this level, and the lock of it.
fn locked(level: &str) -> (Chaos, String) {
    let chaos = Chaos::new();
    let config = at_level(&chaos, level);
    let output = chaos
        .run("broker-gen", &["lock", "--config", &config])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    (chaos, config)
}

fn at_level(chaos: &Chaos, level: &str) -> String {
    changed(chaos, |config| {
        config["trust"] = words();
        config["tree"][0]["source"]["trust"] = json!(level);
    })
}

#[test]
fn level_of_a_running_broker_can_be_lowered_and_not_raised() {
    let (chaos, config) = locked("untrusted");
    // Its config is the one that was locked; a reload has the rules of a start.
    let broker = Broker::start_ready(chaos.run("broker-gen", &["serve", "0", "--config", &config]));
    let add = || broker.call("/a/add", json!({"a": 1, "b": 2}));
    refusal(&add(), 404, "path_not_found");
    broker.result("/a/echo", json!({"text": "x"}));
    let reload = |level: &str, outcome: &str| {
        let count = || broker.stderr().matches(outcome).count();
        let before = count();
        at_level(&chaos, level);
        broker.signal("HUP");
        wait_until("the reload has ended", || count() > before);
    };
    for level in ["trusted", "verified"] {
        reload(level, "not reloaded");
        let cause = format!(
            "error[lock_widen]: the trust level of `/a` is `{level}`, higher than `untrusted`, with which it was locked"
        );
        wait_until("the log has the cause", || {
            let log = broker.stderr();
            log.contains(&cause) && log.contains(" at /tree/0/source/trust")
        });
        refusal(&add(), 404, "path_not_found");
        broker.result("/a/echo", json!({"text": "x"}));
    }
    reload("untrusted", "reloaded; every source keeps its process");

    let (chaos, config) = locked("trusted");
    let broker = Broker::start_ready(chaos.run("broker-gen", &["serve", "0", "--config", &config]));
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    at_level(&chaos, "untrusted");
    broker.signal("HUP");
    wait_until("the reload has ended", || {
        broker
            .stderr()
            .contains("reloaded; every source keeps its process")
    });
    refusal(
        &broker.call("/a/add", json!({"a": 1, "b": 2})),
        404,
        "path_not_found",
    );
    broker.result("/a/echo", json!({"text": "x"}));
}

#[test]
fn start_with_the_config_of_a_higher_level_than_the_lock_is_refused() {
    let (chaos, config) = locked("untrusted");
    at_level(&chaos, "trusted");
    let output = chaos
        .run("broker-gen", &["serve", "0", "--config", &config])
        .output();
    assert_eq!(output.code, Some(5), "{}", output.stderr);
    contains(
        &output.stderr,
        &[
            "error[lock_stale]",
            "the trust level was raised from `untrusted` to `trusted`",
        ],
    );
}
