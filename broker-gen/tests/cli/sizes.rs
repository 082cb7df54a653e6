//! Tool lists that take much more memory than their text: what `lock` holds of them, and what it refuses.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::bench::{Bench, contains};

/// Objects in a tool of the worst shape: 140 KB of text that take 14 MiB once parsed.
const OBJECTS: usize = 20_000;

#[test]
fn a_list_of_the_worst_shape_is_locked_within_bounds_of_memory() {
    let bench = Bench::empty();
    bench.configure([("a", json!({"tool_filter": ["echo"]}))]);
    let bulk = json!({"tools": 30, "text": r#"{"":0}"#, "times": OBJECTS});
    bench.script("a", &json!({"bulk": bulk, "page_size": 20}));
    let mut child = bench
        .command(&["lock"], &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("broker-gen starts");
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        let file = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = file.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or_default());
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0));
    // Parsed together, the tools would take 420 MiB.
    assert!(peak > 0 && peak <= 160 << 10, "{peak} KiB");
}

#[test]
fn exposed_tools_that_would_take_too_much_memory_are_refused_with_the_figures() {
    let bench = Bench::empty();
    bench.configure([("a", json!({}))]);
    let bulk = json!({"tools": 3, "text": r#"{"":0}"#, "times": OBJECTS});
    bench.script("a", &json!({"bulk": bulk}));
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &["bytes once parsed, and at most 33554432 go into a lock"],
    );
}
