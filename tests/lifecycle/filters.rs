//! Filters of a config that is given at the start: a narrower one hides tools, a wider one is refused.

use harness::{Broker, Chaos, refusal};
use serde_json::{Value, json};

use crate::config::{changed, codes, refused, started};

#[test]
fn config_with_a_narrower_filter_hides_tools() {
    let (chaos, broker) = started(|config| {
        config["tree"][0]["source"]["tool_filter"] = json!(["ech*"]);
        config["tree"][1]["source"]["tool_filter"] =
            json!(["echo", "add", "slow", "structured", "!add"]);
    });
    refusal(
        &broker.call("/a/add", json!({"a": 1, "b": 2})),
        404,
        "path_not_found",
    );
    refusal(
        &broker.call("/b/add", json!({"a": 1, "b": 2})),
        404,
        "path_not_found",
    );
    refusal(
        &broker.post("/meta_desc", &json!({"path": "/a/add"})),
        404,
        "path_not_found",
    );
    broker.result("/a/echo", json!({"text": "x"}));
    let tree = broker.post("/meta_tree", &json!({"depth": 2})).json();
    let paths = |at: usize| -> Vec<&Value> {
        tree["children"][at]["children"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|tool| &tool["path"])
            .collect()
    };
    assert_eq!(paths(0), ["/a/echo"]);
    assert_eq!(paths(1), ["/b/echo", "/b/slow", "/b/structured"]);
    assert_eq!(broker.source("/a")["tools"], 1);
    assert_eq!(chaos.events("a", "call").len(), 1);
}

#[test]
fn config_that_hides_a_drifted_tool_starts() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"tools": Chaos::tools_without("fail")}));
    let config = changed(&chaos, |config| {
        config["tree"][0]["source"]["tool_filter"] = json!(["!fail"])
    });
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    broker.result("/a/echo", json!({"text": "x"}));
}

#[test]
fn config_with_a_wider_filter_is_refused() {
    let found = refused(|config| {
        config["tree"][1]["source"]["tool_filter"] =
            json!(["echo", "add", "slow", "structured", "env_dump"])
    });
    assert_eq!(codes(&found), ["lock_widen"]);
    let widen = &found[0];
    assert_eq!(widen["pointer"], "/tree/1/source/tool_filter");
    assert!(
        widen["message"]
            .as_str()
            .is_some_and(|message| message.contains("env_dump")),
        "{widen}"
    );
    assert!(
        widen["help"].is_string() && widen["line"].is_number() && widen["file"].is_string(),
        "{widen}"
    );
}
