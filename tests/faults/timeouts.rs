//! Servers that do not answer, do not read, or are slow: timeouts hold, and other callers do not wait.

use std::thread;

use harness::callers::call_and_leave;
use harness::figure::{Watch, figure, shown};
use harness::{processor_time, read, refusal, wait_until};
use serde_json::{Value, json};

use harness::faults::{ECHO, FaultFixture, source};

/// Lines that the server reads before any call.
const LINES_BEFORE_CALLS: u64 = 3;

#[test]
fn calls_that_hang_end_at_their_timeout_and_are_cancelled() {
    let stage = FaultFixture::with(&json!({"on_call": {"slow": "hang"}}), |config| {
        source(config, 0)["max_in_flight"] = json!(100);
    });
    let times = thread::scope(|scope| {
        let hang = || {
            let watch = Watch::start();
            let error = refusal(
                &stage.broker.call("/a/slow", json!({"ms": 0})),
                504,
                "call_timeout",
            );
            assert_eq!(error["maybe_executed"], true, "{error}");
            watch.passed()
        };
        let calls: Vec<_> = (0..100).map(|_| scope.spawn(hang)).collect();
        let times = calls.into_iter().map(|call| call.join().expect("it ends"));
        times.collect::<Vec<_>>()
    });
    let ids = |event: &str| {
        let events = stage.chaos.await_events("a", event, 100);
        let mut ids: Vec<_> = events
            .iter()
            .filter_map(|event| event["id"].as_u64())
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(
        ids("call"),
        ids("cancelled"),
        "each call is cancelled by its own id"
    );
    let earliest = times.iter().min().expect("a hundred");
    let latest = times.iter().max().expect("a hundred");
    assert!(
        earliest.as_millis() >= 1000 && latest.as_secs() < 6,
        "{earliest:?} to {latest:?}"
    );
    figure(
        "F-08",
        &format!(
            "100 of 100 at a deadline of 1 s: {} to {}",
            shown(*earliest),
            shown(*latest)
        ),
    );
    assert_eq!(stage.chaos.pids("a").len(), 1, "the server is kept");
    stage.await_answer();
    stage.is_as_before();
}

#[test]
fn slow_calls_within_their_timeout_succeed() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 0)["tool_overrides"]["slow"]["timeout"] = json!(10);
        source(config, 0)["max_in_flight"] = json!(100);
    });
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| stage.broker.result("/a/slow", json!({"ms": 4000})));
        }
    });
    figure("F-09", "100 of 100 calls of 4 s within a limit of 10 s");
    stage.is_as_before();
}

/// A server that reads only up to a first call, which it answers late with `answer`. Calls may take
/// this many seconds.
fn reads_no_more(answer: Value, line_bytes: usize, timeout: u64) -> FaultFixture {
    let stage = FaultFixture::with(
        &json!({"no_drain_after": LINES_BEFORE_CALLS + 1, "on_call": {"echo": answer}}),
        |config| {
            config["limits"] = json!({"body_bytes": 32 << 20, "line_bytes": line_bytes});
            source(config, 0)["tool_overrides"]["echo"]["timeout"] = json!(timeout);
        },
    );
    assert_eq!(
        stage.chaos.events("a", "stopped-reading"),
        Vec::<Value>::new()
    );
    stage
}

#[test]
fn call_timeout_applies_though_the_server_does_not_read() {
    let stage = reads_no_more(json!("ok"), 1 << 20, 3);
    stage.echo("the last line that it reads");
    stage.chaos.await_events("a", "stopped-reading", 1);
    // After a call, so that the code of a call is in memory.
    let before = harness::ResourceUsage::measure(stage.broker.pid());
    let size = 8 << 20;
    let watch = Watch::start();
    let args = json!({"text": "x".repeat(size)});
    let stuck = call_and_leave(stage.broker.address(), ECHO, &args);
    let behind = call_and_leave(stage.broker.address(), ECHO, &json!({"text": "x"}));
    stage
        .broker
        .result("/b/echo", json!({"text": "another source does not wait"}));
    let stuck = refusal(&read(stuck), 504, "call_timeout");
    let took = watch.passed();
    refusal(&read(behind), 504, "call_timeout");
    assert_eq!(stuck["maybe_executed"], true, "some of it has left");
    assert!(took.as_millis() >= 3000 && took.as_secs() < 10, "{took:?}");
    let now = harness::ResourceUsage::measure(stage.broker.pid());
    let grown = now.peak.saturating_sub(before.resident);
    // As received and as the line that is sent; the rest is buffers.
    let most = 2 * (size as u64 >> 10) + (4 << 10);
    assert!(
        grown <= most,
        "{grown} KiB more for {size} bytes of arguments"
    );
    figure(
        "F-10",
        &format!(
            "deadline of 3 s fired after {}; at most {} MiB more for 8 MiB of arguments",
            shown(took),
            grown >> 10
        ),
    );
    stage.is_as_before();
}

#[test]
fn large_answers_are_read_while_large_arguments_are_blocked() {
    let size = 15 << 20;
    let stage = reads_no_more(
        json!({"delay_ms": 700, "then": {"big": size}}),
        32 << 20,
        10,
    );
    let first = call_and_leave(stage.broker.address(), ECHO, &json!({"text": "x"}));
    stage.chaos.await_events("a", "stopped-reading", 1);
    let args = json!({"text": "y".repeat(size)});
    let stuck = call_and_leave(stage.broker.address(), ECHO, &args);
    let answer = read(first);
    assert_eq!(answer.status, 200, "{}", answer.code());
    assert!(answer.body.len() > size);
    refusal(&read(stuck), 504, "call_timeout");
    stage.is_as_before();
}

#[test]
fn large_arguments_and_answers_are_transferred_unchanged() {
    let size = 15 << 20;
    let stage = FaultFixture::with(&json!({}), |config| {
        config["limits"] = json!({"body_bytes": 32 << 20, "line_bytes": 64 << 20});
    });
    let text = "äb".repeat(size / 3);
    let watch = Watch::start();
    let result = stage.broker.result(ECHO, json!({ "text": text }));
    let took = watch.passed();
    let echoed = result["content"][0]["text"].as_str().expect("a text");
    let echoed: Value = serde_json::from_str(echoed).expect("JSON");
    assert!(
        echoed["text"] == text.as_str(),
        "what came back is what was sent"
    );
    figure(
        "F-11",
        &format!("15 MiB there and back within {} (debug build)", shown(took)),
    );
    stage.is_as_before();
}

#[test]
fn slow_answer_is_awaited_without_using_cpu() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": {"drip": {"bytes": 1, "ms": 10}}}}));
    let used = processor_time(stage.broker.pid());
    let watch = Watch::start();
    let response = stage.echo("slowly");
    let took = watch.passed();
    let used = processor_time(stage.broker.pid()) - used;
    assert_eq!(response.status, 200, "{}", response.text());
    let share = used as f64 / (took.as_secs_f64() * 100.0) * 100.0;
    assert!(
        share < 20.0,
        "{share} % of a processor for a byte each 10 ms"
    );
    figure(
        "F-19",
        &format!("{share:.1} % of a processor for a byte each 10 ms"),
    );
    stage.is_as_before();
}

#[test]
fn list_without_end_is_ended_with_a_warning_or_given_up() {
    for (kind, script, pages, cause) in [
        ("loop", json!({"page_size": 2, "list_loop": true}), 4, None),
        (
            "endless",
            json!({"page_size": 1, "list_endless": true}),
            30,
            None,
        ),
        (
            "slow",
            json!({"page_size": 1, "list_delay_ms": 3000}),
            20,
            Some("startup_timeout"),
        ),
    ] {
        let stage = FaultFixture::with(&json!({}), |config| {
            source(config, 2)["startup_timeout"] = json!(5);
        });
        stage.chaos.script("optional", &script);
        harness::faults::signal(stage.chaos.pids("optional")[0], "KILL");
        let watch = Watch::start();
        let mut found = Value::Null;
        wait_until("the list is given up", || {
            found = stage.broker.source_details("/optional");
            match cause {
                Some(_) => found["state"] == "backoff" && found["cause"] != "exited",
                None => found["state"] == "ready" && found["warnings"][0].is_string(),
            }
        });
        let lists = stage.chaos.events("optional", "list").len();
        assert_eq!(found["cause"].as_str(), cause, "{kind}");
        assert!(lists <= pages + 4, "{lists} pages: {kind}");
        figure(
            &format!("F-53-{kind}"),
            &format!(
                "{kind}: given up after {lists} pages and {}",
                shown(watch.passed())
            ),
        );
        stage.chaos.script("optional", &json!({}));
        wait_until("it is back", || {
            stage.broker.source("/optional")["state"] == "ready"
        });
        stage.is_as_before();
    }
}
