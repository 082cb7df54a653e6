//! Logs that nobody reads or that cannot be written.

use std::net::TcpListener;

use harness::figure::figure;
use harness::{Chaos, Tally, get, wait_until};
use serde_json::json;

use crate::stage::{ECHO, Stage, config_args};

#[test]
fn f_49_a_closed_log_pipe_stops_nothing() {
    let stage = Stage::begin(&json!({}), |_| {}, |run| run.args(["--log-level", "debug"]));
    stage.broker.close_log();
    let tally = Tally::flood(stage.broker.address(), 4, 100, ECHO);
    tally.is_clean();
    tally.agrees_with(&stage.chaos, "a");
    assert_eq!(tally.answered(), 400, "{:?}", tally.codes());
    figure(
        "F-49",
        "400 of 400 calls answered with nobody at the log's pipe",
    );
    // Its children go on and go down as ever.
    let (status, _) = stage.broker.terminate();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn f_49_a_full_disk_under_the_log_stops_nothing() {
    let chaos = Chaos::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a port is free").to_string();
    let mut args = config_args(&chaos, |_| {});
    args[0].clone_from(&address);
    let run = chaos.run(
        "chaos-broker",
        &[&args[0], &args[1], "--log-level", "debug"],
    );
    let script = "exec \"$0\" \"$@\" 2>/dev/full";
    let broker = harness::Daemon::start(run.through("/bin/sh", &["-c", script]));
    wait_until("it is ready", || {
        std::net::TcpStream::connect(&address).is_ok() && get(&address, "/readyz").status == 200
    });
    let tally = Tally::flood(&address, 4, 100, ECHO);
    tally.is_clean();
    assert_eq!(tally.answered(), 400, "{:?}", tally.codes());
    drop(broker);
}
