//! Replies that are cut to their limit.

use std::fs;

use harness::Broker;
use serde_json::{Value, json};

use crate::results::started;

/// Peak and current resident memory, in KiB.
fn memory(broker: &Broker) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{}/status", broker.pid())).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse().ok()).expect("a figure")
    };
    (field("VmHWM:"), field("VmRSS:"))
}

#[test]
fn reply_over_its_limit_is_cut_and_marked() {
    let (_chaos, broker) = started(
        &json!({"echo": {"max_output_chars": 1000}}),
        &json!({"plain": true}),
    );
    let reply = broker.call("/a/echo", json!({"text": "é".repeat(5000)}));
    assert_eq!(reply.status, 200);
    assert!(reply.text().chars().count() <= 1000, "{}", reply.text());
    let reply = reply.json();
    assert_eq!(reply["truncated"]["limit"], 1000);
    assert_eq!(reply["truncated"]["cuts"][0]["kind"], "string");
    // The text of the server is JSON, and stays JSON.
    assert_eq!(
        reply["truncated"]["cuts"][0]["pointer"],
        "/content/0/text/text"
    );
    let text = reply["result"]["content"][0]["text"].as_str();
    let text: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
    assert!(
        text["text"]
            .as_str()
            .is_some_and(|kept| kept.ends_with("é…")),
        "{text}"
    );
    let short = broker.call("/a/echo", json!({"text": "x"})).json();
    assert_eq!(short.get("truncated"), None);
}

#[test]
fn small_limit_counts_the_result_alone() {
    let (_chaos, broker) = started(
        &json!({"echo": {"max_output_chars": 120}}),
        &json!({"plain": true}),
    );
    let reply = broker.call("/a/echo", json!({"text": "é".repeat(500)}));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = reply.json();
    let result = reply["result"].to_string();
    let chars = result.chars().count();
    assert!((60..=120).contains(&chars), "{chars}: {result}");
    assert_eq!(reply["truncated"]["limit"], 120);
    let short = broker.call("/a/echo", json!({"text": "x"})).json();
    assert_eq!(short.get("truncated"), None, "{short}");
}

#[test]
fn cut_of_15_mib_takes_at_most_four_times_its_size() {
    const SIZE: u64 = 15 << 20;
    let (_chaos, broker) = started(
        &json!({"echo": {"max_output_chars": 10000}}),
        &json!({"on_call": {"echo": {"big": SIZE}}}),
    );
    broker.result("/a/add", json!({"a": 1, "b": 2}));
    let (_, before) = memory(&broker);
    let reply = broker.call("/a/echo", json!({"text": "x"}));
    let (peak, _) = memory(&broker);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.text().chars().count() <= 10000);
    let original = reply.json()["truncated"]["original_chars"].as_u64();
    assert!(original.is_some_and(|chars| chars >= SIZE), "{original:?}");
    let used = (peak - before) * 1024;
    assert!(used <= 4 * SIZE, "{} MiB were used", used >> 20);
}
