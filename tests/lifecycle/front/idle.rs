//! Idle connections: they stay open longer than proxies keep theirs, and a setting changes that.

use harness::faults::{FaultFixture, config_args, source};
use harness::mcp_http::{EventReader, send_modern};
use harness::{KeepAlive, Proxy, Tap, access, get, wait_until};
use serde_json::json;

/// Longer than the time for a first head.
const LONG_MS: u64 = 11_000;

#[test]
fn connection_that_had_a_request_stays_open_longer_than_one_without() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 1)["timeout"] = json!(60);
    });
    let address = stage.broker.address();
    let mut used = KeepAlive::open(address);
    assert_eq!(used.get("/readyz").map(|reply| reply.status), Some(200));
    let mut unused = KeepAlive::open(address);
    // The time passes.
    stage.broker.result("/b/slow", json!({"ms": LONG_MS}));
    assert_eq!(used.get("/readyz").map(|reply| reply.status), Some(200));
    assert!(unused.get("/readyz").is_none());
}

#[test]
fn idle_timeout_of_the_config_closes_connections() {
    let stage = FaultFixture::with(&json!({}), |config| {
        config["limits"]["idle_timeout"] = json!(1);
    });
    let mut connection = KeepAlive::open(stage.broker.address());
    assert_eq!(
        connection.get("/readyz").map(|reply| reply.status),
        Some(200)
    );
    wait_until("the idle connection is closed", || connection.is_closed());
}

#[test]
fn open_idle_connection_follows_a_reload_in_both_directions() {
    let stage = FaultFixture::with(&json!({}), |config| {
        config["limits"]["idle_timeout"] = json!(3);
    });
    let reloaded = || stage.broker.stderr().matches("reloaded; ").count();
    let idle_timeout = |seconds: u32| {
        let before = reloaded();
        config_args(&stage.chaos, |config| {
            config["limits"]["idle_timeout"] = json!(seconds);
        });
        stage.broker.signal("HUP");
        wait_until("the broker has reloaded", || reloaded() > before);
    };
    let mut connection = KeepAlive::open(stage.broker.address());
    let status = |connection: &mut KeepAlive| connection.get("/readyz").map(|reply| reply.status);
    assert_eq!(status(&mut connection), Some(200));
    idle_timeout(60);
    // The time passes.
    stage.broker.result("/b/slow", json!({"ms": 6_000}));
    assert_eq!(
        status(&mut connection),
        Some(200),
        "it is open after the time of its start"
    );
    idle_timeout(1);
    wait_until("the idle connection is closed", || connection.is_closed());
}

#[test]
fn nginx_uses_its_idle_connection_again_after_a_pause() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 1)["timeout"] = json!(60);
    });
    let tap = Tap::start(stage.broker.address());
    // A pool without other settings, as many ingresses have it: its connections are kept for 60 s.
    let upstream = format!(
        "upstream broker {{\nserver {};\nkeepalive 16;\n}}",
        tap.address()
    );
    let location = "location / {\nproxy_pass http://broker;\nproxy_http_version 1.1;\n\
                    proxy_set_header Connection \"\";\nproxy_set_header Host $http_host;\n}";
    let proxy = Proxy::nginx(&upstream, location);
    access::listens(proxy.address());
    for pause in [LONG_MS, 0] {
        let reply = get(proxy.address(), "/readyz");
        assert_eq!(reply.status, 200, "{}", proxy.log());
        // The time passes.
        stage.broker.result("/b/slow", json!({"ms": pause}));
    }
    let counts = tap.counts(&format!("Host: {}", proxy.address()));
    assert_eq!(counts, [(2, 2)], "one connection: {}", proxy.log());
}

/// The read timeout of nginx in this test, in seconds, and a call that takes longer.
const READ_TIMEOUT_S: u64 = 20;
const CALL_MS: u64 = 31_000;

#[test]
fn call_longer_than_the_read_timeout_of_nginx_is_answered() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 1)["timeout"] = json!(60);
    });
    // Without a directive for streams: nginx buffers what it may.
    let location = format!(
        "location / {{\nproxy_pass http://{};\nproxy_read_timeout {READ_TIMEOUT_S}s;\n}}",
        stage.broker.address()
    );
    let proxy = Proxy::nginx("", &location);
    access::listens(proxy.address());
    let params = json!({"name": "b-slow", "arguments": {"ms": CALL_MS}});
    let call = send_modern(
        proxy.address(),
        "/mcp/direct",
        &json!(1),
        "tools/call",
        &params,
    );
    let mut events = EventReader::open(call);
    let answer = events.next_message().expect("an answer");
    assert!(
        answer["result"]["content"].is_array(),
        "{answer}{}",
        proxy.log()
    );
}
