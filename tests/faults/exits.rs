//! Servers that die: in the middle of a call, before a call reached them, again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use harness::callers::call_and_leave;
use harness::figure::{Watch, figure, shown};
use harness::{CallOutcome, Tally, is_alive, nonce, processor_time, read, refusal, wait_until};
use serde_json::{Value, json};

use harness::faults::{ECHO, FaultFixture, scaled, signal, source};

#[test]
fn server_death_fails_each_call_with_code_and_signal() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": "hang", "slow": "exit:9"}}));
    let waiting = || {
        let args = json!({"text": "x"});
        call_and_leave(stage.broker.address(), ECHO, &args)
    };
    let mut slowest = std::time::Duration::ZERO;
    for (round, ends) in ["code", "signal"].into_iter().enumerate() {
        let callers: Vec<_> = (0..10).map(|_| waiting()).collect();
        wait_until("ten calls wait", || {
            let calls = stage.chaos.events("a", "call");
            calls.iter().filter(|call| call["tool"] == "echo").count() == 10 * (round + 1)
        });
        let pid = *stage.chaos.pids("a").last().expect("it was started");
        let watch = Watch::start();
        let mut errors = Vec::new();
        if ends == "code" {
            errors.push(refusal(
                &stage.broker.call("/a/slow", json!({"ms": 0})),
                502,
                "source_exited",
            ));
        } else {
            signal(pid, "ABRT");
        }
        errors.extend(
            callers
                .into_iter()
                .map(|caller| refusal(&read(caller), 502, "source_exited")),
        );
        slowest = slowest.max(watch.passed());
        let wanted = match ends {
            "code" => json!([9, null]),
            _ => json!([null, 6]),
        };
        for error in &errors {
            let details = &error["details"];
            assert_eq!(json!([details["exit_code"], details["signal"]]), wanted);
            assert_eq!(error["maybe_executed"], true, "{error}");
        }
        let back = Watch::start();
        stage.await_answer();
        figure(
            &format!("F-06-{ends}"),
            &format!(
                "all answered {} after the order to die, back after {}",
                shown(slowest),
                shown(back.passed())
            ),
        );
    }
    assert!(slowest.as_secs() < 5, "{slowest:?}");
    assert_eq!(stage.counter("restarts"), 2);
    stage.is_as_before();
}

/// Kills of one source of one broker. The supervisor waits between restarts, so many kills are spread
/// over brokers that run side by side.
const KILLS_OF_A_BROKER: usize = 125;
/// Two brokers with half of the kills each wait less than one broker with all of them.
const MIN_BROKERS: usize = 2;

#[test]
fn server_death_under_load_executes_no_call_twice() {
    let machine = harness::whole_machine();
    let kills = scaled("MCP_BROKER_KILLS", 4);
    let brokers = kills.div_ceil(KILLS_OF_A_BROKER).max(MIN_BROKERS);
    let outcomes: Vec<CallOutcomes> = thread::scope(|scope| {
        let runs: Vec<_> = (0..brokers)
            .map(|at| {
                let share = kills / brokers + usize::from(at < kills % brokers);
                let machine = &machine;
                scope.spawn(move || {
                    machine.share();
                    killed_under_load(share)
                })
            })
            .collect();
        runs.into_iter()
            .map(|run| run.join().expect("a run does not panic"))
            .collect()
    });
    let sum = |of: fn(&CallOutcomes) -> usize| outcomes.iter().map(of).sum::<usize>();
    figure(
        "F-07",
        &format!(
            "{kills} deaths, {} calls: {} answered, {} surely not executed, 0 executed twice",
            sum(|outcomes| outcomes.calls),
            sum(|outcomes| outcomes.answered),
            sum(|outcomes| outcomes.not_executed),
        ),
    );
}

/// The outcomes of the calls to one source that was killed repeatedly.
struct CallOutcomes {
    calls: usize,
    answered: usize,
    /// Refused with the statement that the server did not execute them.
    not_executed: usize,
}

fn killed_under_load(kills: usize) -> CallOutcomes {
    let stage = FaultFixture::with(&json!({"on_call": {"echo": {"delay_ms": 2}}}), |config| {
        source(config, 0)["max_in_flight"] = json!(2);
    });
    let over = AtomicBool::new(false);
    let tally = thread::scope(|scope| {
        // Most of these are queued behind two calls in flight, so that a death affects calls in every
        // state.
        let flood = scope.spawn(|| {
            let done = || over.load(Ordering::Acquire);
            Tally::flood_until(stage.broker.address(), 16, ECHO, &done)
        });
        for round in 0..kills {
            stage.chaos.await_count("a", "start", round + 1);
            let calls = stage.chaos.count("a", "call");
            stage.chaos.await_count("a", "call", calls + 50);
            signal(stage.chaos.last_pid("a").expect("it runs"), "KILL");
        }
        stage.chaos.await_count("a", "start", kills + 1);
        stage.await_answer();
        over.store(true, Ordering::Release);
        flood.join().expect("the callers do not panic")
    });
    tally.is_clean();
    tally.agrees_with(&stage.chaos, "a");
    let not_executed = tally.count(
        |fate| matches!(fate, CallOutcome::Refused(code, Some(false)) if code == "source_exited"),
    );
    assert!(not_executed > 0, "no call was waiting: {:?}", tally.codes());
    stage.is_as_before();
    CallOutcomes {
        calls: tally.calls(),
        answered: tally.answered(),
        not_executed,
    }
}

#[test]
fn answer_cut_off_by_an_exit_fails_its_call() {
    let stage = FaultFixture::new(&json!({"on_call": {"echo": "partial-eof"}}));
    let error = refusal(&stage.echo("x"), 502, "source_exited");
    assert_eq!(
        (&error["maybe_executed"], &error["details"]["exit_code"]),
        (&json!(true), &json!(0))
    );
    stage.await_answer();
    stage.is_as_before();
}

#[test]
fn crash_loop_uses_little_cpu_and_calls_restart_it_once() {
    let stage = FaultFixture::new(&json!({}));
    let script = json!({"start_exit": 3, "stderr_lines": ["no licence"]});
    stage.chaos.script("optional", &script);
    let optional = || stage.broker.source("/optional");
    signal(stage.chaos.pids("optional")[0], "KILL");
    wait_until("it backs off", || {
        optional()["state"] == "backoff" && optional()["cause"] == "exit_before_ready"
    });
    let used = processor_time(stage.broker.pid());
    let watch = Watch::start();
    // All callers call at once, and again: one start serves all of them.
    for _ in 0..3 {
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    let args = json!({"text": nonce()});
                    let error = refusal(
                        &stage.broker.call("/optional/echo", args),
                        503,
                        "source_unavailable",
                    );
                    assert_eq!(error["details"]["cause"], "exit_before_ready", "{error}");
                });
            }
        });
    }
    stage.chaos.await_events("optional", "start", 5);
    let took = watch.passed();
    let used = processor_time(stage.broker.pid()) - used;
    let starts = stage.chaos.pids("optional").len();
    let allowed = 6 + usize::try_from(took.as_secs() / 2).expect("a few seconds");
    assert!(starts <= allowed, "{starts} starts within {took:?}");
    figure(
        "F-27",
        &format!(
            "{starts} starts and 30 calls within {}, {used}0 ms of processor time",
            shown(took)
        ),
    );
    stage.chaos.script("optional", &json!({}));
    wait_until("it is back", || optional()["state"] == "ready");
    stage.is_as_before();
}

#[test]
fn health_requests_do_not_restart_a_busy_server() {
    let stage = FaultFixture::with(&json!({}), |config| {
        source(config, 0)["tool_overrides"]["slow"]["timeout"] = json!(60);
    });
    let pid = stage.chaos.pids("a")[0];
    let looks = thread::scope(|scope| {
        let call = scope.spawn(|| stage.broker.result("/a/slow", json!({"ms": 4000})));
        let mut looks = 0;
        while !call.is_finished() {
            for route in ["/readyz", "/sources", "/healthz"] {
                assert_eq!(stage.broker.get(route).status, 200);
                looks += 1;
            }
        }
        let result = call.join().expect("the call is answered");
        assert!(result["isError"] != true, "{result}");
        looks
    });
    assert!(looks > 3);
    assert_eq!((stage.chaos.pids("a"), is_alive(pid)), (vec![pid], true));
    assert_eq!(stage.counter("restarts"), 0);
    figure(
        "F-55",
        &format!("{looks} looks during one call of 4 s, no restart"),
    );
    let _: Value = stage.broker.result("/a/add", json!({"a": 1, "b": 2}));
    stage.is_as_before();
}
