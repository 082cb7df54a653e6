//! The metrics that a running broker reads from its state when a client scrapes.

use std::fs;

use harness::access::KEY;
use harness::{Broker, Chaos, request, wait_until};
use serde_json::{Value, json};

use crate::config::changed;

/// The digest of [`KEY`].
const DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
/// The metric with the next expiry of a key.
const KEY_EXPIRY: &str = "mcp_broker_key_expiry_timestamp_seconds";

/// Returns the value of a metric without labels, as a caller with [`KEY`] sees it.
fn value(broker: &Broker, name: &str) -> Option<String> {
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", bearer.as_str())];
    let answer = request(broker.address(), "GET", "/metrics", &headers, b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(metric, _)| *metric == name);
    found.map(|(_, value)| value.to_owned())
}

/// Returns the entry of a key of this number; its caller is never used.
fn entry(number: u64, not_after: &str) -> Value {
    json!({"name": format!("k{number}"), "sha256": format!("{number:064x}"), "not_after": not_after})
}

#[test]
fn next_expiry_of_the_keys_in_force_is_shown_also_after_a_reload() {
    let chaos = Chaos::new();
    let keys_file = chaos.file("keys.json", &json!({"keys": []}).to_string());
    let config = changed(&chaos, |config| {
        let used = json!({"name": "used", "sha256": DIGEST});
        let keys = [used, entry(1, "2090-01-01T00:00:00Z")];
        config["identities"] = json!({"keys": keys, "keys_file": keys_file});
    });
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    assert_eq!(value(&broker, KEY_EXPIRY).as_deref(), Some("3786912000"));
    let reload = || {
        let reloads = || broker.stderr().matches("reloaded; ").count();
        let before = reloads();
        broker.signal("HUP");
        wait_until("the broker has reloaded", || reloads() > before);
    };
    // A key of the file expires earlier, and one has expired.
    let keys = [
        entry(2, "2080-01-01T00:00:00Z"),
        entry(3, "2001-01-01T00:00:00Z"),
    ];
    chaos.file("keys.json", &json!({"keys": keys}).to_string());
    reload();
    assert_eq!(value(&broker, KEY_EXPIRY).as_deref(), Some("3471292800"));
    chaos.file("keys.json", &json!({"keys": []}).to_string());
    let text = fs::read_to_string(&config).expect("the config");
    let mut without: Value = serde_json::from_str(&text).expect("JSON");
    without["identities"]["keys"]
        .as_array_mut()
        .expect("keys")
        .truncate(1);
    fs::write(&config, without.to_string()).expect("writable");
    reload();
    assert_eq!(value(&broker, KEY_EXPIRY), None);
}
