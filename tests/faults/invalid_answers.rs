//! Invalid answers: too long, too deep, not UTF-8, under the wrong id, twice.

use std::time::Duration;

use harness::figure::{Watch, figure, shown};
use harness::{ResourceUsage, refusal, wait_until};
use serde_json::{Value, json};

use harness::faults::{FaultFixture, source};

#[test]
fn line_over_the_limit_fails_its_call_and_keeps_the_server() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": {"big": 17 << 20}}}));
    let error = refusal(&stage.echo("x"), 502, "output_too_large");
    assert_eq!(error["maybe_executed"], true);
    assert_eq!(stage.counter("oversize_lines"), 1);
    stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(stage.chaos.pids("a").len(), 1);
    let peak = stage.is_as_before().peak;
    let grown = peak.saturating_sub(stage.before.resident);
    // The line's limit is 1 MiB here.
    assert!(
        grown <= 9 << 10,
        "{grown} KiB more for a line that is thrown away"
    );
    figure(
        "F-14",
        &format!("17 MiB over a limit of 1 MiB: {grown} KiB more at the peak, server kept"),
    );
}

#[test]
fn line_without_end_restarts_the_server_and_takes_no_memory() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": {"big": 70 << 20}}}));
    refusal(&stage.echo("x"), 502, "output_too_large");
    wait_until("the server is started again", || {
        stage.chaos.pids("a").len() == 2
    });
    stage.await_answer();
    let grown = stage
        .is_as_before()
        .peak
        .saturating_sub(stage.before.resident);
    assert!(grown <= 9 << 10, "{grown} KiB more");
}

#[test]
fn answers_of_up_to_15_mib_arrive_whole() {
    for mib in [1_usize, 4, 15] {
        let size = mib << 20;
        let stage = FaultFixture::with(&json!({"on_call": {"echo": {"big": size}}}), |config| {
            config["limits"]["line_bytes"] = json!(16 << 20);
        });
        let watch = Watch::start();
        let response = stage.echo("x");
        let took = watch.passed();
        assert_eq!(response.status, 200, "{}", response.code());
        let body = response.json();
        let text = body["result"]["content"][0]["text"]
            .as_str()
            .expect("a text");
        assert!(text.len() == size && text.bytes().all(|byte| byte == b'x'));
        let now = stage.is_as_before();
        let (kept, peak) = (
            now.resident.saturating_sub(stage.before.resident),
            now.peak.saturating_sub(stage.before.resident),
        );
        assert!(
            peak <= 4 * (size as u64 >> 10) + (8 << 10),
            "{peak} KiB for {mib} MiB"
        );
        assert!(kept <= 8 << 10, "{kept} KiB are kept after {mib} MiB");
        figure(
            &format!("F-15-{mib}"),
            &format!(
                "{mib} MiB within {} (debug build); {} MiB more at the peak, {} MiB after",
                shown(took),
                peak >> 10,
                kept >> 10
            ),
        );
    }
}

#[test]
fn answer_with_invalid_utf8_is_repaired_and_marked() {
    for (behaviour, marked) in [
        ("bad-utf8", true),
        ("surrogate", false),
        ("bom", false),
        ("crlf", false),
    ] {
        let stage = FaultFixture::new(&json!({"on_call": {"echo": behaviour}}));
        let response = stage.echo("x");
        assert_eq!(response.status, 200, "{behaviour}: {}", response.text());
        let text = response.text();
        assert_eq!(text.contains("\"warnings\""), marked, "{behaviour}: {text}");
        stage.is_as_before();
    }
}

#[test]
fn line_separators_and_nuls_in_strings_are_kept() {
    let stage = FaultFixture::new(&json!({}));
    let text = "one\u{2028}two\u{0}three\u{feff}";
    let echoed = stage.echo(text).json()["result"]["content"][0]["text"].clone();
    let echoed: Value = serde_json::from_str(echoed.as_str().expect("a text")).expect("JSON");
    assert_eq!(echoed["text"], text);
    stage.is_as_before();
}

#[test]
fn answer_nested_20000_deep_fails_at_once() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": {"deep": 20_000}}}));
    let watch = Watch::start();
    let error = refusal(&stage.echo("x"), 502, "source_protocol");
    let took = watch.passed();
    assert_eq!(error["maybe_executed"], true);
    assert!(took < Duration::from_secs(5), "{took:?}");
    stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
    assert_eq!(stage.chaos.pids("a").len(), 1, "the server is kept");
    figure("F-17", &format!("refused after {}", shown(took)));
    stage.is_as_before();
}

#[test]
fn control_characters_reach_the_caller_and_not_the_log() {
    let stage = FaultFixture::new(
        &json!({"on_call": {"echo": "ansi"}, "start_noise": ["\u{1b}[31mred \u{202e}"]}),
    );
    let reply = stage.echo("x").json();
    assert_eq!(
        reply["warnings"],
        json!([
            "the output contains characters that are not visible: 2 control, 1 bidirectional, 1 tag"
        ]),
    );
    let result = reply["result"]["content"][0]["text"].clone();
    let text = result.as_str().expect("a text");
    for kept in ["\u{1b}[31m", "\u{202e}", "\u{e0041}"] {
        assert!(text.contains(kept), "the bytes are the server's: {text:?}");
    }
    let log = stage.broker.stderr();
    assert!(log.contains("red"), "the noise was logged: {log}");
    assert!(!log.contains(['\u{1b}', '\u{202e}']), "{log:?}");
    stage.is_as_before();
}

#[test]
fn answer_that_is_invalid_ends_its_call_at_once_or_at_its_timeout() {
    // An answer under a wrong id is not the answer of this call.
    let stage = FaultFixture::with(&json!({"on_call": {"echo": "wrong-id"}}), |config| {
        source(config, 0)["tool_overrides"]["echo"]["timeout"] = json!(1);
    });
    refusal(&stage.echo("x"), 504, "call_timeout");
    assert_eq!(stage.counter("unknown_ids"), 1);
    let count = |name| stage.counter(name);
    let become_ = |behaviour: &str| {
        stage
            .chaos
            .script("a", &json!({"on_call": {"echo": behaviour}}))
    };
    become_("dup");
    assert_eq!(stage.echo("x").status, 200);
    wait_until("the second answer is counted", || {
        count("late_answers") == 1
    });
    become_("both");
    refusal(&stage.echo("x"), 502, "source_protocol");
    become_("not-object");
    refusal(&stage.echo("x"), 502, "source_protocol");
    for tolerated in ["str-id", "no-jsonrpc"] {
        become_(tolerated);
        let response = stage.echo("x");
        assert_eq!(response.status, 200, "{tolerated}: {}", response.text());
    }
    figure(
        "F-23",
        "deadline, late, at once, at once; an id as text and no `jsonrpc` are taken",
    );
    become_("ok");
    assert_eq!(stage.echo("x").status, 200);
    assert_eq!(stage.chaos.pids("a").len(), 1, "the server is kept");
    let _: ResourceUsage = stage.is_as_before();
}
