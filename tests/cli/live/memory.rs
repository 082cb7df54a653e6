//! Tool lists that take much more memory than their text: the memory that `lock` and `check` use, and the
//! lists that they refuse.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use harness::{Bench, contains};
use serde_json::{Value, json};

/// Objects in a tool of the worst shape: 140 KB of text that take 14 MiB once parsed.
const OBJECTS: usize = 20_000;

/// A server whose list has tools of the worst shape after the one that the config names. Parsed together,
/// they would take 14 MiB each.
fn of_the_worst_shape(tools: usize) -> Value {
    json!({"bulk": {"tools": tools, "text": r#"{"":0}"#, "times": OBJECTS}, "page_size": 20})
}

/// The exit code of the verb, and its peak of memory in KiB.
fn run_watched(bench: &Bench, verb: &str) -> (Option<i32>, u64) {
    let mut child = bench
        .verb_command(&[verb], &[])
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
    (status.code(), peak)
}

#[test]
fn tool_list_of_the_worst_shape_stays_within_the_memory_limit() {
    let bench = Bench::new();
    bench.configure([("a", json!({"tool_filter": ["echo"]}))]);
    bench.script("a", &of_the_worst_shape(30));
    for verb in ["lock", "check"] {
        let (code, peak) = run_watched(&bench, verb);
        assert_eq!(code, Some(0), "{verb}");
        assert!(peak > 0 && peak <= 160 << 10, "{verb}: {peak} KiB");
    }
}

#[test]
fn check_parses_at_most_as_many_tools_as_a_lock_may_hold() {
    let bench = Bench::new();
    bench.configure([("a", json!({}))]);
    bench.script("a", &json!({}));
    bench.lock();
    bench.script("a", &of_the_worst_shape(30));
    let (code, peak) = run_watched(&bench, "check");
    assert_eq!(code, Some(4));
    assert!(peak > 0 && peak <= 160 << 10, "{peak} KiB");
    let errors = bench.verb(&["check"]).stderr;
    contains(
        &errors,
        &[
            "the exposed tools of `/a` would take",
            "so its texts were not linted",
        ],
    );
}

#[test]
fn lock_over_the_memory_limit_is_refused_with_the_figures() {
    let bench = Bench::new();
    bench.configure([("a", json!({}))]);
    let bulk = json!({"tools": 3, "text": r#"{"":0}"#, "times": OBJECTS});
    bench.script("a", &json!({"bulk": bulk}));
    let errors = bench.lock_fails(4);
    contains(
        &errors,
        &["bytes of memory, and a lock holds at most 33554432"],
    );
}
