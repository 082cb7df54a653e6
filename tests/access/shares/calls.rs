//! The queue of a source, and calls that their callers abandoned.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use harness::faults::scaled;
use harness::figure::{figure, shown};
use harness::{Response, refusal, wait_until};
use serde_json::json;

use super::{Flood, Shared, keep_asking, percentile, times};
use crate::caller::Caller;

const ECHO: &str = "/a/echo";
/// The time of a call.
const CALL_MS: u64 = 200;

fn echo(caller: &Caller) -> Response {
    caller.call(ECHO, &json!({"text": "x"}))
}

#[test]
fn flood_of_three_callers_leaves_turns_for_the_fourth() {
    let _machine = harness::whole_machine();
    let script = json!({"plain": true, "on_call": {"echo": {"delay_ms": CALL_MS}}});
    let shared = Shared::with(
        &script,
        |config| config["tree"][0]["source"]["max_in_flight"] = json!(8),
        |run| run,
    );
    let [ada, bob, cy, dee] = &shared.callers;
    let calls = scaled("MCP_BROKER_FAIR_CALLS", 15);
    let ask = || times(calls, || assert_eq!(echo(dee).status, 200));
    let alone = ask();
    let connections = match calls > 15 {
        true => &[8, 32, 128, 300][..],
        false => &[8, 32],
    };
    for each in connections {
        let (is_over, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
        let beside = thread::scope(|scope| {
            let _flood = Flood::new(&is_over);
            let (is_over, refused) = (&is_over, &refused);
            for caller in [ada, bob, cy] {
                for _ in 0..*each {
                    scope.spawn(move || {
                        keep_asking(is_over, || {
                            let status = echo(caller).status;
                            refused.fetch_add(usize::from(status != 200), Ordering::Relaxed);
                        });
                    });
                }
            }
            shared.stage.await_journal("a", "call", calls + 24);
            ask()
        });
        let (quiet, busy) = (percentile(&alone, 95), percentile(&beside, 95));
        figure(
            &format!("shares-source-{each}"),
            &format!(
                "calls of {CALL_MS} ms, p95 {} alone, {} beside three callers with {each} connections each ({} refused)",
                shown(quiet),
                shown(busy),
                refused.load(Ordering::Relaxed)
            ),
        );
        // Without turns a call waits behind those of all connections: 6.6 s where the queue is full. With so many
        // connections that most calls are refused at once, the machine has more to do than the queue.
        let most = if *each > 32 { 10 } else { 3 };
        assert!(busy < quiet * most, "{each}: {quiet:?} to {busy:?}");
    }
}

#[test]
fn calls_that_a_caller_abandoned_count_against_this_caller_alone() {
    let hanging = json!({"plain": true, "ignore_cancel": true, "on_call": {"echo": "hang"}});
    let shared = Shared::with(
        &hanging,
        |config| config["tree"][0]["source"]["max_in_flight"] = json!(4),
        |run| run,
    );
    let [ada, bob, ..] = &shared.callers;
    for count in 1..=4 {
        let call = ada.begin_call(ECHO, &json!({"text": "x"}));
        shared.stage.await_journal("a", "call", count);
        drop(call);
    }
    let add = json!({"a": 1, "b": 2});
    wait_until("the broker knows that the callers left", || {
        ada.call("/a/add", &add).status == 429
    });
    let error = refusal(&ada.call("/a/add", &add), 429, "overloaded");
    assert_eq!(error["details"]["abandoned"], 4, "{error}");
    assert_eq!(error["maybe_executed"], false, "{error}");
    assert_eq!(bob.call("/a/add", &add).status, 200, "another caller");
    assert_eq!(ada.call("/b/add", &add).status, 200, "another source");
}

#[test]
fn late_answer_of_an_abandoned_call_makes_room_for_its_caller() {
    let slow =
        json!({"plain": true, "ignore_cancel": true, "on_call": {"echo": {"delay_ms": 1500}}});
    let shared = Shared::with(
        &slow,
        |config| config["tree"][0]["source"]["max_in_flight"] = json!(1),
        |run| run,
    );
    let ada = &shared.callers[0];
    let call = ada.begin_call(ECHO, &json!({"text": "x"}));
    shared.stage.await_journal("a", "call", 1);
    drop(call);
    let add = json!({"a": 1, "b": 2});
    wait_until("the call counts as abandoned", || {
        ada.call("/a/add", &add).status == 429
    });
    wait_until("its answer makes room", || {
        ada.call("/a/add", &add).status == 200
    });
}
