//! A broker and its guard, on Linux: if one of the two is stopped or killed, no process is left,
//! neither servers nor their orphans.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use harness::{
    Broker, Chaos, Run, binary, guarded_by, is_alive, post, post_bytes, send, wait_until,
};
use serde_json::{Value, json};

const SOURCES: [&str; 3] = ["a", "b", "optional"];

/// A server that ends neither at the end of its input nor after SIGTERM, and has a grandchild.
fn stubborn(grandchild: &str) -> Value {
    json!({"ignore_eof": true, "ignore_sigterm": true, "fork_grandchild": grandchild})
}

/// A folder in which each source leaves another kind of process: one that only its parentage shows, one
/// in another session, one in another group.
fn hard_to_end() -> Chaos {
    let chaos = Chaos::new();
    for (source, grandchild) in SOURCES.iter().zip(["bare", "setsid", "group"]) {
        chaos.script(source, &stubborn(grandchild));
    }
    chaos
}

/// A broker whose sources and grandchildren all run.
fn started(chaos: &Chaos) -> Broker {
    let before = SOURCES.map(|source| chaos.events(source, "grandchild").len());
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    for (source, before) in SOURCES.iter().zip(before) {
        chaos.await_events(source, "grandchild", before + 1);
    }
    broker
}

/// Every process that the sources ever started, grandchildren included.
fn all_pids(chaos: &Chaos) -> Vec<u32> {
    let grandchildren = SOURCES.map(|source| chaos.events(source, "grandchild"));
    let grandchildren = grandchildren.iter().flatten();
    let grandchildren = grandchildren.filter_map(|event| event["child"].as_u64()?.try_into().ok());
    let children = SOURCES.iter().flat_map(|source| chaos.pids(source));
    children.chain(grandchildren).collect()
}

fn alive(pids: &[u32]) -> Vec<u32> {
    let alive = pids.iter().copied().filter(|pid| is_alive(*pid));
    alive.collect()
}

fn signal(name: &str, pids: &[u32]) {
    let pids: Vec<_> = pids.iter().map(ToString::to_string).collect();
    let kill = Run::new(Path::new("/bin/sh"))
        .args(["-c", &format!("kill -{name} {}", pids.join(" "))])
        .output();
    assert_eq!(kill.code, Some(0), "{}", kill.stderr);
}

/// Calls of `/a/echo`, all of which have reached the server.
fn calls_in_flight(
    chaos: &Chaos,
    broker: &Broker,
    count: usize,
) -> Vec<thread::JoinHandle<(u16, String)>> {
    let callers = (0..count).map(|number| {
        let address = broker.address().to_owned();
        thread::spawn(move || {
            let args = json!({"path": "/a/echo", "args": {"text": number.to_string()}});
            let response = post(&address, "/meta_call", &args);
            (response.status, response.text().to_string())
        })
    });
    let callers = callers.collect();
    chaos.await_events("a", "call", count);
    callers
}

#[test]
fn broker_killed_leaves_no_process_through_its_guard() {
    let chaos = hard_to_end();
    let broker = started(&chaos);
    let all = all_pids(&chaos);
    assert_eq!(alive(&all).len(), 6, "three servers with a grandchild each");
    signal("KILL", &[broker.pid()]);
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(137), "{stderr}");
    // The guard ends last.
    assert_eq!(alive(&all), [0; 0]);
}

#[test]
fn guard_killed_leaves_no_process_through_its_broker() {
    let chaos = hard_to_end();
    let broker = started(&chaos);
    let mut all = all_pids(&chaos);
    all.push(broker.pid());
    assert_eq!(alive(&all).len(), 7, "three servers with a grandchild each");
    signal("KILL", &[broker.guard()]);
    wait_until("no process is left", || alive(&all).is_empty());
    // The restarted servers are gone too.
    assert_eq!(alive(&all_pids(&chaos)), [0; 0]);
}

#[test]
fn broker_stopped_and_killed_leaves_no_process() {
    let chaos = hard_to_end();
    let broker = started(&chaos);
    let all = all_pids(&chaos);
    // Neither its threads nor its signal handling run any more.
    signal("STOP", &[broker.pid()]);
    signal("KILL", &[broker.pid()]);
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(137), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
}

#[test]
fn sigterm_ends_servers_and_grandchildren_that_ignore_it() {
    let chaos = hard_to_end();
    let broker = started(&chaos);
    let (all, itself) = (all_pids(&chaos), broker.pid());
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
    assert!(!is_alive(itself));
}

#[test]
fn calls_in_flight_are_answered_before_the_end() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 700}}}));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    // The server gets as many calls as may be in flight, the others are queued.
    let callers: Vec<_> = (0..50)
        .map(|number| {
            let address = broker.address().to_owned();
            thread::spawn(move || {
                let args = json!({"path": "/a/echo", "args": {"text": number.to_string()}});
                post(&address, "/meta_call", &args).status
            })
        })
        .collect();
    chaos.await_events("a", "call", 32);
    let all = all_pids(&chaos);
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
    let statuses: Vec<_> = callers
        .into_iter()
        .map(|caller| caller.join().expect("each caller gets an answer"))
        .collect();
    let answered = statuses.iter().filter(|status| **status == 200).count();
    assert!(answered >= 32, "{statuses:?}");
    // Calls after the signal were refused.
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 503)),
        "{statuses:?}"
    );
    let calls = chaos.events("a", "call").len();
    assert_eq!(
        calls, answered,
        "none is executed without an answer, or twice"
    );
}

#[test]
fn interrupt_to_both_processes_counts_once() {
    let chaos = Chaos::new();
    chaos.script("a", &json!({"on_call": {"echo": {"delay_ms": 1500}}}));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let callers = calls_in_flight(&chaos, &broker, 1);
    // Like `killall`, some service managers, and Ctrl-C if both are in the terminal's group.
    signal("INT", &[broker.guard(), broker.pid()]);
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("interrupted twice"), "{stderr}");
    for caller in callers {
        let (status, text) = caller.join().expect("the caller gets an answer");
        assert_eq!(status, 200, "{text}");
    }
}

/// A broker with a call that never ends, at a server that only SIGKILL ends.
fn with_an_endless_call(chaos: &Chaos) -> Broker {
    let mut script = stubborn("bare");
    script["on_call"] = json!({"echo": "hang"});
    chaos.script("a", &script);
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    drop(calls_in_flight(chaos, &broker, 1));
    broker
}

#[test]
fn interrupt_twice_to_both_processes_counts_twice() {
    let chaos = Chaos::new();
    let broker = with_an_endless_call(&chaos);
    let all = all_pids(&chaos);
    signal("INT", &[broker.guard(), broker.pid()]);
    wait_until("it begins to stop", || broker.stderr().contains("stopping"));
    signal("INT", &[broker.guard(), broker.pid()]);
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
}

/// The pending stop signals of a process, as bits.
fn pending_orders(pid: u32) -> u64 {
    const INT: u64 = 1 << 1;
    const TERM: u64 = 1 << 14;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = pending.expect("every process has this line").trim();
    u64::from_str_radix(pending, 16).expect("it is hexadecimal") & (INT | TERM)
}

/// Whether every thread of the process is stopped: until then a thread still receives signals.
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        status.contains("\nState:\tT")
    })
}

#[test]
fn interrupts_pending_in_both_processes_are_each_counted() {
    let chaos = Chaos::new();
    let broker = with_an_endless_call(&chaos);
    let (itself, guard) = (broker.pid(), broker.guard());
    // The broker receives neither of the two signals before both are pending.
    let order = |first: u32, second: u32| {
        signal("STOP", &[itself]);
        wait_until("the broker is stopped", || is_stopped(itself));
        for pid in [first, second] {
            signal("INT", &[pid]);
            wait_until("the guard has handed it on", || {
                pending_orders(guard) == 0 && pending_orders(itself) != 0
            });
        }
        signal("CONT", &[itself]);
    };
    order(itself, guard);
    wait_until("it begins to stop", || broker.stderr().contains("stopping"));
    order(guard, itself);
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(130), "{stderr}");
}

#[test]
fn stop_signal_before_the_start_is_followed_later() {
    for name in ["TERM", "INT"] {
        let chaos = Chaos::new();
        let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
        let mut guard = run.spawn_with_input();
        // Its broker has just been started and has done nothing yet.
        let broker = guarded_by(guard.id());
        signal(name, &[guard.id()]);
        let status = guard.wait().expect("it can be waited for");
        assert_eq!(status.code(), Some(0), "{status}");
        assert!(!is_alive(broker));
        assert_eq!(alive(&all_pids(&chaos)), [0; 0]);
    }
}

#[test]
fn zombies_of_orphans_are_reaped() {
    let chaos = Chaos::new();
    chaos.script("a", &stubborn("bare"));
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let orphan = chaos.events("a", "grandchild")[0]["child"].to_string();
    chaos.script("a", &json!({}));
    signal("KILL", &chaos.pids("a"));
    let parent = || {
        let stat = fs::read_to_string(format!("/proc/{orphan}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
        let parent = fields.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parent.unwrap_or(0)
    };
    wait_until("it is left to the broker", || parent() == broker.pid());
    signal("KILL", &[orphan.parse().expect("a number")]);
    wait_until("not even a zombie is left", || {
        !Path::new("/proc").join(&orphan).exists()
    });
    broker.result("/b/add", json!({"a": 1, "b": 2}));
    assert_eq!(broker.terminate().0.code(), Some(0));
}

#[test]
fn children_from_before_the_start_are_left_running() {
    let chaos = Chaos::new();
    // It also starts with SIGCHLD ignored, and still notices the end of its broker.
    let script = r#"sleep 1000 < /dev/null > /dev/null 2>&1 & echo $! > "$CHAOS/sleeper"
trap "" CHLD; exec "$0" 127.0.0.1:0"#;
    let run = Run::new(Path::new("/bin/sh"))
        .args([Path::new("-c"), Path::new(script), &binary("chaos-broker")])
        .env("CHAOS", chaos.path())
        .env("A_TOKEN", "a-token-for-tests");
    let broker = Broker::start_ready(run);
    let sleeper = fs::read_to_string(chaos.path().join("sleeper")).expect("the shell wrote it");
    let sleeper = sleeper.trim().parse().expect("a number");
    signal("KILL", &[broker.pid()]);
    let (status, _, stderr) = broker.finish();
    let survived = is_alive(sleeper);
    signal("KILL", &[sleeper]);
    assert_eq!(status.code(), Some(137), "{stderr}");
    assert_eq!(alive(&all_pids(&chaos)), [0; 0]);
    assert!(survived);
}

#[test]
fn exit_code_of_a_killed_broker_is_128_plus_the_signal() {
    for (name, code) in [("USR1", 138), ("USR2", 140)] {
        let chaos = Chaos::new();
        let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
        // Forwarded by the guard, which survives it.
        broker.signal(name);
        let (status, _, stderr) = broker.finish();
        assert_eq!(status.code(), Some(code), "{stderr}");
        assert_eq!(alive(&all_pids(&chaos)), [0; 0]);
    }
}

#[test]
fn signal_masks_of_guard_and_broker_reach_no_server() {
    let chaos = Chaos::new();
    let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
    let blocked = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(line.expect("a line").trim(), 16).expect("a number")
    };
    assert_eq!(blocked(chaos.pids("a")[0]), 0);
    // The broker itself blocks the signals that its thread reads (HUP, INT and TERM), the signals by
    // which a terminal would stop it (TTIN and TTOU), and the signal that ends the writer of a file at
    // its size limit (XFSZ).
    let bits = [1, 2, 15, 21, 22, 25].map(|signal| 1_u64 << (signal - 1));
    assert_eq!(blocked(broker.pid()), bits.iter().sum::<u64>());
}

#[test]
fn guard_variable_set_by_hand_has_no_effect() {
    let ourselves = std::process::id();
    let cookie = "0123456789abcdef0123456789abcdef";
    for value in ["off", "1", "1:x", &format!("{ourselves}:{cookie}")] {
        let chaos = Chaos::new();
        let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
        let broker = Broker::start_ready(run.env("MCP_BROKER_GUARD", value));
        assert_ne!(guarded_by(broker.guard()), broker.guard(), "{value}");
        let all = all_pids(&chaos);
        signal("KILL", &[broker.pid()]);
        assert_eq!(broker.finish().0.code(), Some(137), "{value}");
        assert_eq!(alive(&all), [0; 0]);
    }
    let chaos = Chaos::new();
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/chaos-broker/config.json"
    ));
    let mut config: Value = serde_json::from_str(&text.expect("it is there")).expect("it is JSON");
    config["tree"][0]["source"]["env"]["A_TOKEN"] = json!("${MCP_BROKER_GUARD}");
    let file = chaos.file("given.json", &config.to_string());
    let args = ["127.0.0.1:0", file.to_str().expect("the path is text")];
    let refused = chaos.run("chaos-broker", &args).output();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("`${MCP_BROKER_GUARD}` is a variable of the broker itself"),
        "{}",
        refused.stderr
    );
}

#[test]
fn stdio_broker_killed_leaves_no_process() {
    for kill_guard in [true, false] {
        let chaos = hard_to_end();
        let mut run = chaos.run("chaos-broker", &["stdio"]).spawn_with_input();
        for source in SOURCES {
            chaos.await_events(source, "grandchild", 1);
        }
        let broker = guarded_by(run.id());
        let mut all = all_pids(&chaos);
        all.push(broker);
        assert_eq!(alive(&all).len(), 7);
        signal("KILL", &[if kill_guard { run.id() } else { broker }]);
        // Its input stays open, so the death does not look like an end of input.
        let input = run.stdin.take();
        let status = run.wait().expect("it can be waited for");
        assert_eq!(status.code(), (!kill_guard).then_some(137));
        wait_until("no process is left", || alive(&all).is_empty());
        drop(input);
    }
}

/// A broker whose only worker of the runtime is blocked, and the caller that caused it.
fn blocked(chaos: &Chaos) -> (Broker, TcpStream) {
    for source in SOURCES {
        chaos.script(source, &stubborn("setsid"));
    }
    let run = chaos.run("blocked-broker", &["127.0.0.1:0"]);
    // With more workers, chance decides whether a free worker still has work to do.
    let broker = Broker::start_ready(run.env("TOKIO_WORKER_THREADS", "1"));
    for source in SOURCES {
        chaos.await_events(source, "grandchild", 1);
    }
    let request = post_bytes(broker.address(), "/nowhere", "{}");
    let caller = send(broker.address(), &request);
    wait_until("the worker is blocked", || {
        broker.stderr().contains("refused")
    });
    (broker, caller)
}

#[test]
fn sigterm_ends_a_broker_whose_workers_are_blocked() {
    let chaos = Chaos::new();
    let (broker, _caller) = blocked(&chaos);
    let (all, itself) = (all_pids(&chaos), broker.pid());
    assert_eq!(alive(&all).len(), 6, "three servers with a grandchild each");
    let (status, stderr) = broker.terminate();
    // The broker ended itself: the exit code would be 137 if its guard had ended it.
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
    assert!(!is_alive(itself));
}

#[test]
fn second_interrupt_ends_a_blocked_broker_at_once() {
    let chaos = Chaos::new();
    let (broker, _caller) = blocked(&chaos);
    let all = all_pids(&chaos);
    broker.signal("INT");
    // The main thread is not a worker: it still logs the stop signal.
    wait_until("it begins to stop", || broker.stderr().contains("stopping"));
    broker.signal("INT");
    let (status, _, stderr) = broker.finish();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
}

#[test]
fn guard_kills_a_broker_that_ignores_sigterm() {
    let chaos = hard_to_end();
    let broker = started(&chaos);
    let (all, itself) = (all_pids(&chaos), broker.pid());
    assert_eq!(alive(&all).len(), 6, "three servers with a grandchild each");
    // No thread of the broker runs now, not even its deadline thread.
    signal("STOP", &[itself]);
    let (status, stderr) = broker.terminate();
    assert_eq!(status.code(), Some(137), "{stderr}");
    assert_eq!(alive(&all), [0; 0]);
    assert!(!is_alive(itself));
}

/// MCP_BROKER_RESTARTS sets the number of restarts; 1000 takes minutes.
#[test]
fn restarts_of_a_broker_leave_no_process() {
    let _machine = harness::whole_machine();
    let restarts = std::env::var("MCP_BROKER_RESTARTS");
    let restarts = restarts.map_or(51, |count| count.parse().expect("a number"));
    let chaos = Chaos::new();
    chaos.script("b", &json!({"fork_grandchild": "setsid"}));
    let mut brokers = Vec::new();
    for restart in 0..restarts {
        let broker = Broker::start_ready(chaos.run("chaos-broker", &["127.0.0.1:0"]));
        brokers.extend([broker.pid(), broker.guard()]);
        match restart % 3 {
            0 => {
                assert_eq!(broker.terminate().0.code(), Some(0));
            }
            1 => {
                signal("KILL", &[broker.pid()]);
                assert_eq!(broker.finish().0.code(), Some(137));
            }
            _ => {
                signal("KILL", &[broker.guard()]);
                assert_eq!(broker.finish().0.code(), None);
            }
        }
    }
    wait_until("no broker is left", || alive(&brokers).is_empty());
    let all = all_pids(&chaos);
    assert!(all.len() >= 2 * restarts, "{} were started", all.len());
    assert_eq!(alive(&all), [0; 0]);
    wait_until(
        "nothing of them is left that the journal does not know",
        || !has_a_process(chaos.path()),
    );
    // No file is left except scripts and journals.
    for entry in fs::read_dir(chaos.path())
        .expect("the folder is there")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(name.ends_with(".json") || name.ends_with(".log"), "{name}");
    }
}

/// Whether the environment of any process names this folder.
fn has_a_process(folder: &Path) -> bool {
    let folder = folder.to_str().expect("the path is text").as_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("environ")).ok())
        .any(|environment| environment.windows(folder.len()).any(|part| part == folder))
}
