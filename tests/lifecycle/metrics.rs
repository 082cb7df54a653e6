//! The metrics that a running broker reads from its state when a client scrapes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use harness::access::KEY;
use harness::{
    Broker, Chaos, DirectServer, HttpSources, TlsFront, certificate, contains, get, refusal,
    request, wait_until,
};
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

/// Returns the address of the listener for the metrics, as the log names it.
fn metrics_address(broker: &Broker) -> String {
    let log = broker.stderr();
    let (_, rest) = log.split_once("metrics on http://").expect("the line");
    let (address, _) = rest.split_once("/metrics").expect("an address");
    address.to_owned()
}

#[test]
fn second_listener_has_the_metrics_and_no_other_route() {
    let chaos = Chaos::new();
    let config = changed(&chaos, |config| {
        config["telemetry"] = json!({"metrics_bind": "127.0.0.1:0"});
    });
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0", &config]));
    let address = metrics_address(&broker);
    let shown = get(&address, "/metrics");
    assert_eq!(shown.status, 200);
    assert!(shown.text().contains("mcp_broker_build_info"));
    for route in ["/healthz", "/sources", "/mcp", "/nothing"] {
        refusal(&get(&address, route), 404, "route_not_found");
    }
    let call = request(&address, "POST", "/meta_call", &[], b"{}");
    refusal(&call, 404, "route_not_found");
    assert_eq!(chaos.count("a", "call"), 0);
    // The first listener has it as well.
    assert_eq!(broker.get("/metrics").status, 200);
    assert!(broker.terminate().0.success());
}

#[test]
fn second_listener_follows_the_rules_for_open_addresses() {
    let chaos = Chaos::new();
    let config = changed(&chaos, |config| {
        config["telemetry"] = json!({"metrics_bind": "0.0.0.0:0"});
    });
    for address in ["127.0.0.1:0", "stdio"] {
        let run = chaos.run("chaos-broker", &[address, &config]);
        let output = run.output();
        assert_ne!(output.code, Some(0), "{address}");
        contains(&output.stderr, &["bind_open", "0.0.0.0:0"]);
    }
    // With a secret it needs the secret.
    let secret = chaos.file("secret", "a-long-secret-of-this-test");
    let config = changed(&chaos, |config| {
        config["telemetry"] = json!({"metrics_bind": "127.0.0.1:0"});
    });
    let run = chaos.run("chaos-broker", &["127.0.0.1:0", &config, "--secret-file"]);
    let broker = Broker::start(run.args([secret.as_os_str()]));
    let address = metrics_address(&broker);
    refusal(&get(&address, "/metrics"), 401, "unauthorized");
    let headers = [("Authorization", "Bearer a-long-secret-of-this-test")];
    assert_eq!(
        request(&address, "GET", "/metrics", &headers, b"").status,
        200
    );
}

#[test]
fn broker_over_stdio_shows_its_metrics_at_the_address_of_the_config() {
    let chaos = Chaos::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let config = changed(&chaos, |config| {
        config["telemetry"] = json!({"metrics_bind": address});
    });
    let mut client = DirectServer::start(chaos.run("chaos-broker", &["stdio", &config]));
    client.call(
        "meta_call",
        &json!({"path": "/a/echo", "args": {"text": "x"}}),
    );
    let text = get(&address, "/metrics").text();
    let counted = r#"mcp_broker_calls_total{source="/a",tool="/a/echo",outcome="ok"} 1"#;
    assert!(text.lines().any(|line| line == counted), "{text}");
}

#[test]
fn expiry_of_the_certificate_of_the_client_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key.pem");
    fs::copy(certificate("key"), &key).expect("writable");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("ours");
    // The chain has an expired certificate behind the one of the client.
    let chain = ["trusted", "expired"].map(|name| fs::read_to_string(certificate(name)));
    let chain = chain.map(|text| text.expect("a file")).concat();
    let file = folder.path().join("chain.pem");
    fs::write(&file, chain).expect("writable");
    let sources = HttpSources::with(&json!({}), |config| {
        let source = &mut config["tree"][0]["source"];
        source["url"] = json!("https://127.0.0.1:${TLS_PORT}/mcp");
        source["ca_file"] = json!(certificate("authority"));
        source["client_cert"] = json!(file);
        source["client_key"] = json!(key);
    });
    let front = TlsFront::start("trusted", &sources.a.address);
    let (_, port) = front.address.rsplit_once(':').expect("a port");
    let stage = sources.variable("TLS_PORT", port).serve(&json!({}), &[]);
    let lock = stage.sources.chaos.path().join("c.lock.json");
    let lock = fs::read_to_string(lock).expect("the lock of the stage");
    for absent in ["client_cert", "key.pem", "chain.pem", "PRIVATE KEY"] {
        assert!(!lock.contains(absent), "the lock has `{absent}`");
    }
    let expires = || stage.state()["certificate_expires"].clone();
    let expired = expires();
    assert!(expired.as_str() < Some("2026"), "{expired}");
    // The renewed chain is read before the next connection, and an unused connection is closed after 4 s: a call every
    // 500 looks, 10 ms apart, needs another one.
    fs::copy(certificate("trusted"), &file).expect("writable");
    let mut looks = 0;
    wait_until("the expiry is that of the new certificate", || {
        looks += 1;
        if looks % 500 == 0 {
            stage.broker.call("/a/echo", json!({"text": "x"}));
        }
        expires() == "2120-01-01T00:00:00Z"
    });
}

#[test]
fn expiry_of_the_certificate_of_a_server_is_shown() {
    let sources = HttpSources::with(&json!({}), |config| {
        let source = &mut config["tree"][0]["source"];
        source["url"] = json!("https://127.0.0.1:${TLS_PORT}/mcp");
        source["ca_file"] = json!(certificate("authority"));
    });
    let front = TlsFront::start("trusted", &sources.a.address);
    let (_, port) = front.address.rsplit_once(':').expect("a port");
    let stage = sources.variable("TLS_PORT", port).serve(&json!({}), &[]);
    stage.broker.result("/a/echo", json!({"text": "x"}));
    let expiry = "mcp_broker_certificate_expiry_timestamp_seconds";
    let text = stage.broker.get("/metrics").text();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with(expiry))
        .collect();
    // 2120-01-01, as the certificate says; `/b` has no TLS.
    assert_eq!(lines, [format!("{expiry}{{source=\"/a\"}} 4733510400")]);
    assert_eq!(stage.state()["certificate_expires"], "2120-01-01T00:00:00Z");
}
