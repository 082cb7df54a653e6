//! What operators learn about refused hosts, and files of secrets that editors of Windows wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use harness::faults::config_args;
use harness::{Broker, Chaos, raw, request, wait_until};
use serde_json::json;

#[test]
fn log_names_the_refused_host_and_the_key_that_allows_it() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let head = "GET /healthz HTTP/1.1\r\nHost: tools.example:8443\r\nConnection: close\r\n\r\n";
    let reply = raw(broker.address(), head.as_bytes());
    assert_eq!((reply.status, &*reply.code()), (403, "host_forbidden"));
    assert!(!reply.text().contains("tools.example"), "{}", reply.text());
    wait_until("the line is written", || {
        broker.stderr().contains("tools.example")
    });
    let log = broker.stderr();
    let line = log.lines().find(|line| line.contains("tools.example"));
    let line = line.expect("a line");
    for part in [
        "host_forbidden",
        "`tools.example:8443`",
        "`allowed_hosts`",
        "`--allow-host`",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn secret_file_with_a_byte_order_mark_has_the_secret_without_it() {
    const SECRET: &str = "a-secret-of-many-characters";
    let chaos = Chaos::new();
    let file = chaos.file("secret", &format!("\u{feff}{SECRET}\r\n"));
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&file, private).expect("the mode can be set");
    let file = file.to_str().expect("the path is text");
    let [address, config] = config_args(&chaos, |_| {});
    let run = chaos.run("chaos-broker", &[&address, &config, "--secret-file", file]);
    let broker = Broker::start_ready(run);
    let call = json!({"path": "/a/add", "args": {"a": 1, "b": 2}}).to_string();
    for (key, status) in [(SECRET, 200), ("another", 401)] {
        let headers = [("Content-Type", "application/json"), ("X-API-Key", key)];
        let reply = request(
            broker.address(),
            "POST",
            "/meta_call",
            &headers,
            call.as_bytes(),
        );
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}
