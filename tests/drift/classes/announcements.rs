//! Thousands of announcements: at most one listing is in progress and one follows it, and calls
//! continue.

use harness::{Broker, Chaos, wait_until};
use serde_json::{Value, json};

const STORM: usize = 1000;

/// A server of the legacy era, whose announcements are plain lines; a call of `fail` is answered after
/// this many of them, in one write.
fn script(tools: &Value, generation: u64) -> Value {
    let announced = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#;
    let storm = format!("{announced}\n").repeat(STORM) + answer;
    json!({
        "era": "legacy",
        "tools": tools,
        "generation": generation,
        "list_delay_ms": 2000,
        "on_call": {"fail": {"raw_line": storm}},
    })
}

#[test]
fn announcements_during_a_listing_cause_one_more_listing() {
    let chaos = Chaos::new();
    let tools = json!(Chaos::tools());
    chaos.script("a", &script(&tools, 0));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let lists = || chaos.events("a", "list").len();
    let before = lists();
    // One announcement, and thousands while its listing is in progress.
    chaos.script("a", &script(&tools, 1));
    chaos.await_events("a", "list", before + 1);
    for _ in 0..3 {
        broker.result("/a/fail", json!({}));
    }
    broker.result("/a/echo", json!({"text": "x"}));
    wait_until("they are checked", || lists() > before + 1);
    // The last of them counts: its change is seen.
    chaos.script("a", &script(&Chaos::tools_asking_more("echo"), 2));
    wait_until("the change is known", || {
        broker.source("/a")["withdrawn"] == 1
    });
    let checks = lists() - before;
    assert!(
        (3..=5).contains(&checks),
        "{checks} listings for {} announcements",
        3 * STORM + 2
    );
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    chaos.script("a", &script(&tools, 3));
    wait_until("it is back", || broker.source("/a")["withdrawn"] == 0);
    broker.result("/a/echo", json!({"text": "x"}));
    assert_eq!(chaos.pids("a").len(), 1, "the server went on");
}
