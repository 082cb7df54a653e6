//! Logs that are not read or cannot be written.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;

use harness::figure::figure;
use harness::{
    Chaos, ResourceUsage, Tally, UnreadPipe, access, get, guarded_by, is_alive, post, wait_until,
};
use serde_json::json;

use harness::faults::{ECHO, FaultFixture, config_args, signal};

/// A fixed address for a broker that cannot print its address.
fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a port is free").to_string()
}

fn await_ready(address: &str) {
    // `config_args` has written the rules, if there are any.
    access::listens(address);
    wait_until("it is ready", || {
        TcpStream::connect(address).is_ok() && get(address, "/readyz").status == 200
    });
}

fn await_end(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_until("it ends", || {
        status = child.try_wait().expect("its state can be read");
        status.is_some()
    });
    status.expect("it ended")
}

/// A broker that is ready, whose log goes into a full pipe.
fn start_unread(chaos: &Chaos, level: &str, address: &str) -> (Child, UnreadPipe) {
    let pipe = UnreadPipe::new();
    let run = chaos.run("chaos-broker", &[address, "--log-level", level]);
    let child = run.spawn_with_outputs(Stdio::null(), pipe.stdio());
    await_ready(address);
    (child, pipe)
}

#[test]
fn log_that_is_not_read_blocks_neither_calls_nor_shutdown() {
    for level in ["info", "debug"] {
        let (chaos, address) = (Chaos::new(), free_address());
        let (mut child, _pipe) = start_unread(&chaos, level, &address);
        let before = ResourceUsage::measure(child.id());
        let tally = Tally::flood(&address, 4, 750, ECHO);
        tally.is_clean();
        assert_eq!(tally.answered(), 3000, "{level}: {:?}", tally.codes());
        let more = ResourceUsage::measure(child.id())
            .resident
            .saturating_sub(before.resident);
        assert!(more < 16 << 10, "{level}: {more} KiB");
        signal(child.id(), "TERM");
        let status = await_end(&mut child);
        assert_eq!(status.code(), Some(0), "{level}: {status}");
        figure(
            &format!("F-49-unread-{level}"),
            &format!("`{level}`: 3000 of 3000 calls answered before a full pipe, {more} KiB more"),
        );
    }
}

#[test]
fn log_lines_dropped_are_reported_once_it_is_read_again() {
    let (chaos, address) = (Chaos::new(), free_address());
    let (mut child, pipe) = start_unread(&chaos, "debug", &address);
    // Each refusal is a line with its path: together more than 1 MiB.
    let body = json!({"path": format!("/a/{}", "x".repeat(120)), "args": {}});
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1500 {
                    assert_eq!(post(&address, "/meta_call", &body).status, 404);
                }
            });
        }
    });
    pipe.read_to("lines of the log were dropped here");
    // The pipe is closed by now; the exit code must not depend on that.
    signal(child.id(), "TERM");
    assert_eq!(await_end(&mut child).code(), Some(0));
}

#[test]
fn refused_start_with_an_unread_report_keeps_its_exit_code() {
    let (chaos, pipe) = (Chaos::new(), UnreadPipe::new());
    chaos.script("a", &json!({"tools": Chaos::tools_without("echo")}));
    let usual = chaos.run("chaos-broker", &["127.0.0.1:0"]).output();
    let run = chaos.run("chaos-broker", &["127.0.0.1:0"]);
    let mut child = run.spawn_with_outputs(Stdio::null(), pipe.stdio());
    assert_eq!(await_end(&mut child).code(), usual.code);
    assert_eq!(usual.code, Some(3), "{}", usual.stderr);
}

#[test]
fn guard_death_with_an_unread_log_ends_every_process() {
    let (chaos, address) = (Chaos::new(), free_address());
    let (mut child, _pipe) = start_unread(&chaos, "debug", &address);
    let mut all: Vec<_> = ["a", "b", "optional"]
        .iter()
        .flat_map(|name| chaos.pids(name))
        .collect();
    all.push(guarded_by(child.id()));
    signal(child.id(), "KILL");
    await_end(&mut child);
    wait_until("nothing of it is left", || {
        !all.iter().any(|pid| is_alive(*pid))
    });
}

#[test]
fn log_file_at_its_size_limit_stops_no_call() {
    let (chaos, address) = (Chaos::new(), free_address());
    // The limit applies to all files of the broker and its servers: this one has reached it.
    let log = File::create(chaos.path().join("full")).expect("the folder can be written to");
    log.set_len(64 << 20).expect("a file may have holes");
    let script = "ulimit -f 8192; exec \"$0\" \"$@\" 2>> \"$CHAOS/full\"";
    let run = chaos.run("chaos-broker", &[&address, "--log-level", "debug"]);
    let run = run.through("/bin/sh", &["-c", script]);
    let mut child = run.spawn_with_outputs(Stdio::null(), Stdio::null());
    await_ready(&address);
    let tally = Tally::flood(&address, 4, 100, ECHO);
    tally.is_clean();
    assert_eq!(tally.answered(), 400, "{:?}", tally.codes());
    signal(child.id(), "TERM");
    assert_eq!(await_end(&mut child).code(), Some(0));
    assert_eq!(log.metadata().expect("it is there").len(), 64 << 20);
}

#[test]
fn log_pipe_that_is_closed_stops_no_call() {
    let stage = FaultFixture::begin(&json!({}), |_| {}, |run| run.args(["--log-level", "debug"]));
    stage.broker.close_log();
    let tally = Tally::flood(stage.broker.address(), 4, 100, ECHO);
    tally.is_clean();
    tally.agrees_with(&stage.chaos, "a");
    assert_eq!(tally.answered(), 400, "{:?}", tally.codes());
    figure(
        "F-49",
        "400 of 400 calls answered while the log's pipe is not read",
    );
    // Its children run and end as usual.
    let (status, _) = stage.broker.terminate();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn log_on_a_full_disk_stops_no_call() {
    let chaos = Chaos::new();
    let address = free_address();
    let mut args = config_args(&chaos, |_| {});
    args[0].clone_from(&address);
    let run = chaos.run(
        "chaos-broker",
        &[&args[0], &args[1], "--log-level", "debug"],
    );
    let script = "exec \"$0\" \"$@\" 2>/dev/full";
    let broker = harness::Daemon::start(run.through("/bin/sh", &["-c", script]));
    await_ready(&address);
    let tally = Tally::flood(&address, 4, 100, ECHO);
    tally.is_clean();
    assert_eq!(tally.answered(), 400, "{:?}", tally.codes());
    drop(broker);
}
