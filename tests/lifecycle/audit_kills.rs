//! A broker that is killed under load again and again: each executed call that may change something has its begin line.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use harness::faults::scaled;
use harness::{Broker, Chaos, Run, binary, post_bytes, wait_until};
use serde_json::{Value, json};

use crate::audit_shown::with_pointers;

/// The callers that call one after the other.
const CALLERS: usize = 4;

/// Calls with different texts until the broker is gone.
fn call_until_killed(address: &str, round: usize, caller: usize) {
    for number in 0.. {
        let text = format!("{round}-{caller}-{number}");
        let body = json!({"path": "/a/echo", "args": {"text": text}}).to_string();
        let bytes = post_bytes(address, "/meta_call", &body);
        let Ok(mut stream) = TcpStream::connect(address) else {
            return;
        };
        let mut answer = Vec::new();
        let is_answered = stream.write_all(&bytes).is_ok()
            && stream.read_to_end(&mut answer).is_ok()
            && !answer.is_empty();
        if !is_answered {
            return;
        }
    }
}

/// Returns the next number of a sequence that looks random (SplitMix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn killed_broker_has_a_begin_line_for_each_executed_call() {
    let chaos = Chaos::new();
    let config = with_pointers(&chaos, "echo", json!(["/text"]));
    let kills = scaled("MCP_BROKER_AUDIT_KILLS", 20);
    let mut state = 1;
    for round in 0..kills {
        let run = chaos.run("broker-gen", &["serve", "--config", &config, "127.0.0.1:0"]);
        let broker = Broker::start_ready(run);
        let address = broker.address();
        let executed = chaos.count("a", "call");
        let calls = random(&mut state) % 30;
        thread::scope(|scope| {
            for caller in 0..CALLERS {
                scope.spawn(move || call_until_killed(address, round, caller));
            }
            wait_until("some calls are executed", || {
                chaos.count("a", "call") >= executed + calls as usize
            });
            // A point between two steps of a call.
            thread::sleep(Duration::from_micros(random(&mut state) % 3000));
            let kill = format!("kill -KILL {}", broker.pid());
            let killed = Run::new(Path::new("/bin/sh")).args(["-c", &kill]).output();
            assert_eq!(killed.code, Some(0), "{}", killed.stderr);
        });
    }
    let executed: BTreeSet<String> = chaos
        .events("a", "call")
        .iter()
        .filter_map(|call| call["arguments"]["text"].as_str().map(str::to_owned))
        .collect();
    let file = Path::new(&config).with_file_name("audit.jsonl");
    let log = std::fs::read(&file).expect("the log");
    let lines = log
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let begun: BTreeSet<String> = lines
        .filter(|line| line["kind"] == "call_begin")
        .filter_map(|line| line["args"]["shown"]["/text"].as_str().map(str::to_owned))
        .collect();
    let without: Vec<_> = executed.difference(&begun).collect();
    assert_eq!(without, [] as [&String; 0], "of {}", executed.len());
    assert!(executed.len() >= kills, "{} calls", executed.len());
    let args = ["audit", "verify", file.to_str().expect("UTF-8")];
    let verified = Run::new(&binary("mcp-broker")).args(args).output();
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert!(verified.stdout.contains("left open"), "{}", verified.stdout);
}
