//! Memory that a server can make the broker use by one line or by its requests: batches, ids, answers
//! that the server does not read.

use harness::figure::figure;
use harness::{ResourceUsage, refusal, wait_until};
use serde_json::json;

use harness::faults::{FaultFixture, source};

/// The line limit, in bytes.
const LINE_BYTES: usize = 16 << 20;

fn stage() -> FaultFixture {
    FaultFixture::with(&json!({}), |config| {
        config["limits"]["line_bytes"] = json!(LINE_BYTES);
        source(config, 0)["tool_overrides"]["echo"]["timeout"] = json!(60);
    })
}

/// The difference between peak and initial memory, in KiB.
fn grown(stage: &FaultFixture) -> u64 {
    let peak = ResourceUsage::measure(stage.broker.pid()).peak;
    peak.saturating_sub(stage.before.resident)
}

#[test]
fn batch_of_16_mib_without_messages_takes_at_most_twice_its_size() {
    let stage = stage();
    let flood = json!({"before": "[", "text": "1,", "times": LINE_BYTES / 2 - 8, "after": "1]\n"});
    stage
        .chaos
        .script("a", &json!({"on_call": {"echo": {"flood": flood}}}));
    assert_eq!(stage.echo("x").status, 200);
    assert_eq!(stage.counter("noise_lines"), 101);
    let grown = grown(&stage);
    let most = 2 * LINE_BYTES as u64 / 1024 + (4 << 10);
    assert!(grown <= most, "{grown} KiB for a line of 16 MiB");
    figure(
        "batch-noise",
        &format!("a batch of 16 MiB: {} MiB more at the peak", grown >> 10),
    );
    stage.is_as_before();
}

#[test]
fn batch_of_many_messages_loses_no_answer() {
    let stage = stage();
    let message = r#"{"method":"notifications/x"},"#;
    let before = format!("[{}", message.repeat(300_000));
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"resultType":"complete"}}]"#;
    let line = format!("{before}{answer}");
    stage
        .chaos
        .script("a", &json!({"on_call": {"echo": {"raw_line": line}}}));
    let reply = stage.echo("x");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(stage.counter("noise_lines"), 0);
    let grown = grown(&stage);
    let most = 2 * line.len() as u64 / 1024 + (4 << 10);
    assert!(grown <= most, "{grown} KiB for a line of {}", line.len());
    stage.is_as_before();
}

#[test]
fn server_requests_with_long_ids_are_dropped_and_hold_no_memory() {
    let stage = stage();
    let flood = json!({
        "before": r#"{"jsonrpc":"2.0","id":""#, "text": "x", "times": 15 << 20,
        "after": "\",\"method\":\"ping\"}\n", "rounds": 20,
    });
    stage.chaos.script(
        "a",
        &json!({"no_drain_after": 4, "on_call": {"echo": {"flood": flood}}}),
    );
    assert_eq!(stage.echo("x").status, 200);
    assert_eq!(stage.counter("server_requests"), 20);
    assert_eq!(stage.counter("unanswered_requests"), 20);
    let grown = grown(&stage);
    assert!(grown <= 48 << 10, "{grown} KiB for ids of 15 MiB");
    figure(
        "long-ids",
        &format!("20 ids of 15 MiB: {} MiB more at the peak", grown >> 10),
    );
    assert_eq!(stage.chaos.pids("a").len(), 1, "the server is kept");
}

#[test]
fn server_that_reads_no_answers_is_ended_as_stalled() {
    let stage = stage();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let flood = json!({"text": format!("{request}\n"), "times": 1000, "rounds": 1000});
    stage.chaos.script(
        "a",
        &json!({"no_drain_after": 4, "on_call": {"echo": {"flood": flood}}}),
    );
    let reply = stage.echo("x");
    let error = refusal(&reply, 502, "source_exited");
    assert_eq!(error["details"]["cause"], "stdin_stalled", "{error}");
    wait_until("it is started again", || stage.chaos.pids("a").len() == 2);
    let grown = grown(&stage);
    assert!(grown <= 64 << 10, "{grown} KiB for answers that wait");
    figure(
        "stdin-stalled",
        &format!("ended as stalled; {} MiB more at the peak", grown >> 10),
    );
    stage.chaos.script("a", &json!({}));
    stage.await_answer();
    stage.is_as_before();
}
