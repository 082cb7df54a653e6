//! What an audit log does when its disk fills, and what floods of callers without a key add to it.

use std::net::SocketAddr;
use std::time::Duration;

use harness::faults::scaled;
use harness::figure::Watch;
use harness::{Broker, has_mount_namespaces, in_mount_namespace, refusal, request, wait_within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::audit::AuditStage;

/// A small disk: its audit log fills it within minutes at the rate of a test.
const SMALL_DISK: &str = "mount -t tmpfs -o size=12m none \"$DISK\" && exec \"$0\" \"$@\"";
const KEY: &str = "mbk_kqwklyfhlzomvdsoalv2dfumpepwnx3p";
const DIGEST: &str = "4d261f8d9d76cd9d1b954b97e010a476f548a358d86a15e6f14a8a7723cd61a7";
/// The maximum size of the lines that a flood adds in 10 minutes.
const MAX_FLOOD_BYTES: usize = 1 << 20;
/// The connections of the flood at one time.
const FLOODERS: u8 = 8;
const FILLING: &str =
    "at the current rate the file system of the audit log is full within 10 minutes";

#[test]
fn disk_that_is_full_within_10_minutes_is_shown_and_logged() {
    if !has_mount_namespaces() {
        return;
    }
    let stage = AuditStage::new(|config| config["audit"]["file"] = json!("disk/audit.jsonl"));
    let disk = stage.file().with_file_name("disk");
    std::fs::create_dir(&disk).expect("a folder can be made");
    let run = stage.run().env("DISK", &disk);
    let broker = Broker::start_ready(in_mount_namespace(run, SMALL_DISK));
    let readiness = broker.get("/readyz").json();
    assert_eq!(readiness["audit"], Value::Null, "{readiness}");
    assert!(!broker.stderr().contains(FILLING));
    // The rate is measured every 10 seconds.
    let mut shown = Value::Null;
    wait_within(Duration::from_secs(60), "the state is shown", || {
        broker.result("/a/echo", json!({"text": "x"}));
        shown = broker.get("/readyz").json()["audit"].clone();
        shown != Value::Null
    });
    assert_eq!(shown["available"], true, "calls are taken: {shown}");
    let left = shown["space_left_s"].as_u64().expect("a number of seconds");
    assert!(left < 600, "{shown}");
    let (_, log) = broker.terminate();
    assert_eq!(log.matches(FILLING).count(), 1, "{log}");
}

/// Sends requests with invalid credentials until the time is over, each from another address. Returns their number.
async fn flood(flooder: u8, broker: SocketAddr, seconds: u64) -> usize {
    let watch = Watch::start();
    let mut sent = 0usize;
    while watch.passed() < Duration::from_secs(seconds) {
        let [.., high, low] = (sent / 2 % 60_000 + 1).to_be_bytes();
        let from = SocketAddr::from(([127, 1 + flooder, high, low], 0));
        let credential = match sent % 2 {
            0 => format!("Authorization: Bearer mbk_{flooder}_{sent}\r\n"),
            _ => String::new(),
        };
        let head = format!(
            "POST /meta_call HTTP/1.1\r\nHost: {broker}\r\nContent-Type: application/json\r\n{credential}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        );
        let socket = TcpSocket::new_v4().expect("a socket can be made");
        socket.bind(from).expect("each address of 127/8 is local");
        let mut stream = socket.connect(broker).await.expect("the broker listens");
        let mut answer = Vec::new();
        // The broker may close a connection before it reads the body.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let is_refused = answer.is_empty()
            || answer.starts_with("HTTP/1.1 401")
            || answer.starts_with("HTTP/1.1 429");
        assert!(is_refused, "{answer}");
        sent += 1;
    }
    sent
}

#[test]
fn flood_without_a_key_adds_less_than_a_mebibyte_and_refuses_no_call() {
    let seconds = scaled("MCP_BROKER_AUDIT_FLOOD_SECONDS", 20);
    let stage = AuditStage::new(|config| {
        config["access"] =
            json!({"groups": ["reader"], "rules": [{"allow": ["/a/**"], "to": ["reader"]}]});
        config["identities"] =
            json!({"keys": [{"name": "ci", "sha256": DIGEST, "groups": ["reader"]}]});
    });
    let broker = Broker::start_ready(stage.run());
    let address: SocketAddr = broker.address().parse().expect("an address");
    let flood = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        let flooders = async {
            let flooders: Vec<_> = (0..FLOODERS)
                .map(|flooder| tokio::spawn(flood(flooder, address, seconds as u64)))
                .collect();
            let mut sent = 0;
            for flooder in flooders {
                sent += flooder.await.expect("the flooder ends");
            }
            sent
        };
        runtime.block_on(flooders)
    });
    let bearer = format!("Bearer {KEY}");
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", bearer.as_str()),
    ];
    let body = json!({"path": "/a/echo", "args": {"text": "x"}}).to_string();
    let mut calls = 0;
    while !flood.is_finished() {
        let answer = request(
            broker.address(),
            "POST",
            "/meta_call",
            &headers,
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "call {calls}: {}", answer.text());
        calls += 1;
    }
    let sent = flood.join().expect("the flood ends");
    let without = request(
        broker.address(),
        "POST",
        "/meta_call",
        &headers[..1],
        body.as_bytes(),
    );
    refusal(&without, 401, "unauthorized");
    drop(broker);
    assert!(calls >= seconds && sent >= 100 * seconds, "{calls}, {sent}");
    let text = stage.text();
    let added = text
        .lines()
        .filter(|line| !line.contains(r#""subject":"ci""#));
    let added: usize = added.map(|line| line.len() + 1).sum();
    assert!(added < MAX_FLOOD_BYTES, "{added} bytes by {sent} requests");
    assert_eq!(stage.lines("call_end").len(), calls);
    let failed = stage.lines("identify_failed");
    let counted: u64 = failed
        .iter()
        .filter_map(|line| line["count"].as_u64())
        .sum();
    // The last window has no line yet.
    assert!(counted > 0 && counted <= sent as u64, "{counted} of {sent}");
}
