//! Tool lists that are too large, or built to take much more memory than their text.

use std::time::Duration;

use harness::figure::figure;
use harness::{ResourceUsage, wait_until, wait_within};
use serde_json::{Value, json};

use harness::faults::{FaultFixture, scaled, signal, source};

/// Memory that a listing may add to the process at its peak, in KiB.
const MAX_GROWTH: u64 = 128 << 10;
/// Objects in a tool of the worst shape: slightly less than the limit of parsed bytes.
const OBJECTS: usize = 20_000;

/// The broker, after `/optional` was restarted with this script.
fn listed_again(script: &Value) -> FaultFixture {
    let stage = FaultFixture::with(&json!({}), |config| {
        config["limits"]["line_bytes"] = json!(16 << 20);
        source(config, 2)["startup_timeout"] = json!(600);
    });
    stage.chaos.script("optional", script);
    signal(stage.chaos.pids("optional")[0], "KILL");
    stage
}

fn grown(stage: &FaultFixture) -> u64 {
    let peak = ResourceUsage::measure(stage.broker.pid()).peak;
    peak.saturating_sub(stage.before.resident)
}

#[test]
fn list_of_the_worst_shape_stays_within_the_memory_limit() {
    let _machine = harness::whole_machine();
    // 200 are 31 MiB, which take more than a minute in a debug build.
    let tools = scaled("MCP_BROKER_LISTED", 60);
    let bulk = json!({"tools": tools, "text": r#"{"":0}"#, "times": OBJECTS});
    let stage = listed_again(&json!({"bulk": bulk, "page_size": 50}));
    wait_until("the list is there", || {
        stage.chaos.pids("optional").len() == 2
    });
    wait_within(Duration::from_secs(600), "the list is checked", || {
        stage.broker.source("/optional")["state"] == "ready"
    });
    let grown = grown(&stage);
    let mib = (tools * OBJECTS * 7) >> 20;
    assert!(grown <= MAX_GROWTH, "{grown} KiB for a list of {mib} MiB");
    figure(
        "F-53-worst",
        &format!(
            "worst shape, {mib} MiB: {} MiB more at the peak",
            grown >> 10
        ),
    );
    stage.is_as_before();
}

#[test]
fn list_over_a_limit_is_cut_or_given_up_with_the_figures() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let bulk = |tools: usize, text: &str, times: usize| json!({"tools": tools, "text": text, "times": times});
    let kib = text(1 << 10);
    for (kind, script, cause, part) in [
        (
            "tool",
            json!({"bulk": bulk(40, &kib, 15 << 10), "page_size": 1}),
            None,
            "`limits.listing_bytes`",
        ),
        (
            "bytes",
            json!({"bulk": bulk(60, &kib, 900), "page_size": 10}),
            None,
            "`limits.listing_bytes`",
        ),
        (
            "parsed",
            json!({"bulk": bulk(1, r#"{"":0}"#, 100_000)}),
            None,
            "",
        ),
        (
            "cursor",
            json!({"cursor_bytes": 5000, "page_size": 2}),
            None,
            "`nextCursor` has 5000 bytes",
        ),
        (
            "page",
            json!({"list_hang_after": 1, "page_size": 2}),
            Some("list_failed"),
            "page 2 of the tool list did not arrive within 10 s",
        ),
    ] {
        let stage = listed_again(&script);
        let mut found = Value::Null;
        wait_until("the list is given up", || {
            found = stage.broker.source("/optional");
            match cause {
                Some(_) => found["state"] == "backoff" && found["cause"] != "exited",
                // Its hidden tools cost nothing, and what was listed before the limit is served.
                None => stage.chaos.pids("optional").len() == 2 && found["state"] == "ready",
            }
        });
        assert_eq!(found["cause"].as_str(), cause, "{kind}: {found}");
        wait_until("the log says why", || stage.broker.stderr().contains(part));
        let grown = grown(&stage);
        assert!(grown <= MAX_GROWTH, "{kind}: {grown} KiB");
        figure(
            &format!("F-53-{kind}"),
            &format!(
                "over the bound ({kind}): {} MiB more at the peak",
                grown >> 10
            ),
        );
    }
}
