//! Servers that print lines that are not messages to stdout, or floods to stderr.

use harness::figure::{Watch, figure, quantiles, shown};
use serde_json::json;

use harness::faults::FaultFixture;

fn warnings(stage: &FaultFixture) -> usize {
    let log = stage.broker.stderr();
    let lines = log.lines().filter(|line| line.contains("are not messages"));
    lines.filter(|line| line.contains("WARN")).count()
}

#[test]
fn noise_on_stdout_is_skipped_counted_and_logged_once() {
    let stage = FaultFixture::new(&json!({"start_noise": 100, "on_call": {"echo": {"noise": 20}}}));
    for n in 0..10 {
        let text = stage.echo(&n.to_string()).text();
        assert!(text.contains("seq"), "{text}");
    }
    assert_eq!(stage.counter("noise_lines"), 100 + 10 * 20);
    assert_eq!(warnings(&stage), 1, "{}", stage.broker.stderr());
    figure(
        "F-12",
        "10 of 10 calls answered between 300 lines of noise, each counted, 1 warning",
    );
    stage.is_as_before();
}

#[test]
fn noise_in_json_from_a_server_that_does_not_read_is_skipped() {
    let noise = "{\"level\":\"info\"}\n".repeat(20_000);
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"resultType":"complete"}}"#;
    let stage = FaultFixture::new(&json!({
        "no_drain_after": 4,
        "on_call": {"echo": {"delay_ms": 300, "then": {"raw_line": format!("{noise}{answer}")}}},
    }));
    let watch = Watch::start();
    let response = stage.echo("x");
    assert_eq!(response.status, 200, "{}", response.text());
    let took = watch.passed();
    assert_eq!(stage.chaos.events("a", "stopped-reading").len(), 1);
    assert_eq!(stage.counter("noise_lines"), 20_000);
    assert_eq!(
        stage.chaos.events("a", "response"),
        Vec::<serde_json::Value>::new()
    );
    figure(
        "F-13",
        &format!(
            "answered after {}, 300 ms of it the server's own",
            shown(took)
        ),
    );
    stage.is_as_before();
}

#[test]
fn stderr_flood_is_drained_and_not_logged() {
    let times = |script| {
        let stage = FaultFixture::new(&script);
        let mut times = Vec::new();
        for _ in 0..200 {
            let watch = Watch::start();
            stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
            times.push(watch.passed());
        }
        let log = stage.broker.stderr().len();
        let held = stage.is_as_before();
        (quantiles(&mut times), log, held.resident)
    };
    let ((quiet, _), quiet_log, quiet_memory) = times(json!({}));
    // 20 MB each second: more would only slow down the machine.
    let ((flooded, worst), log, memory) = times(json!({"stderr_flood": 20_000}));
    assert!(log <= quiet_log + 10_000, "{log} bytes of log");
    assert!(
        memory <= quiet_memory + (8 << 10),
        "{quiet_memory} to {memory} KiB"
    );
    assert!(
        flooded <= quiet * 50 && worst.as_secs() < 5,
        "{quiet:?} to {flooded:?}, {worst:?}"
    );
    figure(
        "F-24",
        &format!(
            "call p50 {} quiet, {} beside 20 MB/s; {log} bytes of log",
            shown(quiet),
            shown(flooded)
        ),
    );
}
