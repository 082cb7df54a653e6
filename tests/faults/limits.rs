//! Too many calls, callers that disconnect, callers that do not read: none affects other callers.

use std::thread;
use std::time::Duration;

use harness::callers::{call_and_leave, drain};
use harness::figure::{Watch, figure, shown};
use harness::{ResourceUsage, Tally, nonce, read, wait_until};
use serde_json::json;

use harness::faults::{ECHO, FaultFixture, scaled, source};

#[test]
fn call_beyond_limit_and_queue_is_refused_at_once() {
    let _machine = harness::whole_machine();
    let slow = json!({"on_call": {"echo": {"delay_ms": 6000}}});
    let stage = FaultFixture::with(&slow, |config| {
        source(config, 0)["max_in_flight"] = json!(16);
    });
    let callers = scaled("MCP_BROKER_CALLERS", 600);
    let calls: Vec<_> = (0..callers)
        .map(|_| {
            let nonce = nonce();
            let stream = call_and_leave(stage.broker.address(), ECHO, &json!({"text": nonce}));
            (nonce, stream)
        })
        .collect();
    wait_until("everything is taken or refused", || {
        stage.counter("calls") as usize == callers
    });
    // None of the sixteen has been answered so far.
    assert_eq!(stage.chaos.await_events("a", "call", 16).len(), 16);
    stage.chaos.script("a", &json!({}));
    let mut tally = Tally::default();
    for (nonce, stream) in calls {
        tally.note(&nonce, Some(&read(stream)));
    }
    tally.is_clean();
    tally.agrees_with(&stage.chaos, "a");
    let (answered, refused) = (tally.answered(), tally.refused("overloaded"));
    assert_eq!(
        (answered, refused),
        (16 + 256, callers - 272),
        "{:?}",
        tally.codes()
    );
    // Each call behind the first sixteen had to wait.
    assert_eq!(stage.counter("waited"), 256);
    assert!(stage.counter("waited_ms") > 0);
    figure(
        "F-36",
        &format!("{callers} calls: 16 at the server, 256 queued, all answered; {refused} refused"),
    );
    stage.is_as_before();
}

#[test]
fn client_that_does_not_read_is_dropped_and_delays_no_other() {
    let size = 15 << 20;
    let stage = FaultFixture::with(&json!({"on_call": {"echo": {"big": size}}}), |config| {
        config["limits"]["line_bytes"] = json!(16 << 20);
    });
    let address = stage.broker.address();
    let watch = Watch::start();
    let mut stuck = call_and_leave(address, ECHO, &json!({"text": "x"}));
    stage.chaos.await_events("a", "call", 1);
    wait_until("the answer is on its way", || stage.counter("calls") == 1);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
                }
            });
        }
    });
    let grown = ResourceUsage::measure(stage.broker.pid())
        .peak
        .saturating_sub(stage.before.resident);
    assert!(grown <= 64 << 10, "{grown} KiB for one answer of 15 MiB");
    // While the connection is open, there is one more file than before.
    stage.is_as_before();
    wait_until("the connection is given up", || {
        ResourceUsage::measure(stage.broker.pid()).files <= stage.before.files
    });
    let took = watch.passed();
    let read = drain(&mut stuck, Duration::from_secs(10));
    assert!(
        read < size as u64,
        "{read} bytes were sent to a caller that did not read"
    );
    figure(
        "F-35",
        &format!(
            "dropped after {}; {} MiB more at the peak for an answer of 15 MiB",
            shown(took),
            grown >> 10
        ),
    );
}
