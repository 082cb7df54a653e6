//! Servers over HTTP that send without end: other sources are served as before, within bounds of memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::figure::{Watch, figure, quantiles, shown};
use harness::{HttpStage, KeepAlive, http_script, on_echo};
use serde_json::{Value, json};

use super::rules;

/// Callers of the source under attack.
const CALLERS: usize = 8;
/// Limit of an answer, in KiB.
const ANSWER_KIB: u64 = 1 << 10;

/// The times of calls of `/b`.
fn latencies(stage: &HttpStage, calls: usize) -> Vec<Duration> {
    let mut connection = KeepAlive::open(stage.broker.address());
    let body = json!({"path": "/b/add", "args": {"a": 1, "b": 2}});
    let call = |_| {
        let watch = Watch::start();
        let response = connection.post("/meta_call", &body).expect("an answer");
        assert_eq!(response.status, 200, "{}", response.text());
        watch.passed()
    };
    (0..calls).map(call).collect()
}

#[test]
fn server_over_http_that_sends_without_end_delays_no_other_source() {
    let event = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let mut shown_rows = Vec::new();
    for (name, fault) in [
        (
            "events",
            json!({"endless": {"kind": "events", "text": event}}),
        ),
        (
            "noise",
            json!({"endless": {"kind": "events", "text": "noise"}}),
        ),
        ("comments", json!({"endless": {"kind": "comments"}})),
        ("an event", json!({"endless": {"kind": "event"}})),
        ("spaces", json!({"endless": {"kind": "spaces"}})),
        ("interim heads", json!({"endless": {"kind": "interim"}})),
        (
            "heads",
            json!({"header_flood": {"count": 2, "bytes": 1 << 20}}),
        ),
        ("gzip", json!({"gzip_bomb": 64 << 20})),
    ] {
        let era = "modern";
        let stage = HttpStage::with(&http_script(era, &json!({})), |config| {
            config["tree"][0]["source"]["tool_overrides"] = json!({"echo": {"timeout": 1}});
        });
        let (quiet, _) = quantiles(&mut latencies(&stage, 20));
        stage.script(&rules(era, &[on_echo(&fault)]));
        let stop = AtomicBool::new(false);
        let mut busy = thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let watch = Watch::start();
                        let response = stage.echo("x");
                        assert_ne!(response.status, 200);
                        assert!(watch.passed() < Duration::from_secs(20), "{name}");
                    }
                });
            }
            let attacked = Watch::start();
            let mut times = Vec::new();
            while attacked.passed() < Duration::from_millis(1500) {
                times.extend(latencies(&stage, 5));
            }
            stop.store(true, Ordering::Relaxed);
            times
        });
        let (median, _) = quantiles(&mut busy);
        let slowest = busy.iter().max().copied().unwrap_or_default();
        // No call of another source waits for the timeout of the attacked one.
        assert!(median < Duration::from_secs(1), "{name}: {median:?}");
        let now = stage.is_as_before();
        let grown = now.peak.saturating_sub(stage.before.resident);
        // Twice the limit for each answer, since a buffer grows by doubling, and 16 MiB of everything else.
        let most = 2 * CALLERS as u64 * ANSWER_KIB + (16 << 10);
        assert!(grown <= most, "{name}: {grown} KiB more at the peak");
        shown_rows.push(format!(
            "{name}: p50 {} (quiet {}), at most {}, {} MiB more",
            shown(median),
            shown(quiet),
            shown(slowest),
            grown >> 10
        ));
    }
    figure("F-25-attack", &shown_rows.join("; "));
}

#[test]
fn stream_of_announcements_without_end_delays_no_other_source() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let flood = json!({"endless": {"kind": "events", "text": changed}});
    for (era, on) in [
        ("legacy", json!({"http_method": "GET"})),
        ("modern", json!({"method": "subscriptions/listen"})),
    ] {
        let stage = HttpStage::new(&http_script(era, &json!({})));
        let lists = || stage.chaos().count("a", "list");
        let before = lists();
        stage.script(&rules(era, &[json!({"on": on, "do": flood})]));
        let opened: Vec<Value> = stage.chaos().requests("a", &json!({}));
        assert!(!opened.is_empty());
        // The stream that is open ends with its server; the next one is the flood.
        let watch = Watch::start();
        let mut times = Vec::new();
        while watch.passed() < Duration::from_secs(2) {
            times.extend(latencies(&stage, 5));
        }
        let (median, _) = quantiles(&mut times);
        assert!(median < Duration::from_secs(1), "{era}: {median:?}");
        let allowed = 3 + usize::try_from(watch.passed().as_secs()).expect("a few seconds");
        assert!(
            lists() - before <= allowed,
            "{era}: {} listings",
            lists() - before
        );
    }
}
