//! Callers that keep connections, send heads slowly, send garbage, or disconnect: other callers are
//! served.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use harness::callers::{drain, drip, garbage, half_a_body, half_a_head, idle, is_closed};
use harness::figure::{Watch, figure, quantiles, shown};
use harness::{KeepAlive, ResourceUsage, Run, Tally, refusal, request, send, wait_until};
use serde_json::json;

use harness::faults::{ECHO, FaultFixture, scaled};

/// The broker with at most this many open files.
fn with_files(files: usize) -> impl FnOnce(Run) -> Run {
    move |run| {
        run.through(
            "/bin/sh",
            &["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")],
        )
    }
}

fn times(kept: &mut KeepAlive) -> Vec<Duration> {
    let call = |_| {
        let watch = Watch::start();
        let body = json!({"path": "/a/add", "args": {"a": 1, "b": 2}});
        let response = kept
            .post("/meta_call", &body)
            .expect("the connection is kept");
        assert_eq!(response.status, 200, "{}", response.text());
        watch.passed()
    };
    (0..200).map(call).collect()
}

#[test]
fn idle_connections_and_endless_heads_are_closed() {
    let stage = FaultFixture::begin(&json!({}), |_| {}, with_files(256));
    let address = stage.broker.address();
    let mut kept = KeepAlive::open(address);
    let (quiet, _) = quantiles(&mut times(&mut kept));
    let watch = Watch::start();
    let mut heads: Vec<TcpStream> = (0..150).filter_map(|_| half_a_head(address)).collect();
    let idlers: Vec<TcpStream> = (0..150).filter_map(|_| idle(address)).collect();
    wait_until(
        "those that waited longest are closed for the others",
        || heads.iter().filter(|stream| is_closed(stream)).count() >= 50,
    );
    assert!(!is_closed(idlers.last().expect("there are some")));
    let held = ResourceUsage::measure(stage.broker.pid()).files;
    assert!(held <= stage.before.files + 192, "{held} files");
    let (busy, _) = quantiles(&mut times(&mut kept));
    assert!(busy <= quiet * 50, "{quiet:?} to {busy:?}");
    // Sending a byte now and then does not extend the time of a head.
    wait_until("the heads are given up", || {
        heads.retain_mut(drip);
        heads.is_empty()
    });
    let took = watch.passed();
    assert!(took >= Duration::from_secs(9), "given up after {took:?}");
    wait_until("all connections are gone", || {
        ResourceUsage::measure(stage.broker.pid()).files <= stage.before.files + 2
    });
    figure(
        "F-34",
        &format!(
            "call p50 {} quiet, {} beside 300 connections; {held} files of 256; heads given up after {}",
            shown(quiet),
            shown(busy),
            shown(took)
        ),
    );
    stage.is_as_before();
}

#[test]
fn connection_over_the_limit_is_refused_and_health_answered() {
    let stage = FaultFixture::begin(&json!({}), |_| {}, with_files(64));
    let address = stage.broker.address().to_owned();
    let mut taken: Vec<TcpStream> = Vec::new();
    let mut refused = None;
    wait_until("a call is refused", || {
        taken.push(half_a_body(&address));
        let mut kept = KeepAlive::open(&address);
        let answer = kept.post("/meta_tree", &json!({}));
        // No answer: there was no slot for a refusal, as the previous one is not free yet.
        refused = answer.filter(|answer| answer.status != 200);
        refused.is_some()
    });
    let refused = refused.expect("it was waited for");
    assert_eq!(refused.header("connection"), Some("close"));
    let error = refusal(&refused, 429, "overloaded");
    assert_eq!(error["retryable"], true);
    wait_until("health is answered", || {
        KeepAlive::open(&address)
            .get("/healthz")
            .is_some_and(|health| health.status == 200)
    });
    wait_until("the log says so", || {
        stage.broker.stderr().contains("too many connections")
    });
    drop(taken);
    wait_until("there is room again", || {
        let answer = KeepAlive::open(&address).post("/meta_tree", &json!({}));
        answer.is_some_and(|answer| answer.status == 200)
    });
    stage.is_as_before();
}

/// Connections that this process may open in addition to its files.
fn openable(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    files.map_or(500, |files: usize| wanted.min(files.saturating_sub(100)))
}

#[test]
fn half_open_connections_leave_room_for_callers() {
    let _machine = harness::whole_machine();
    // About 1000 places, which are far fewer than the connections.
    let stage = FaultFixture::begin(&json!({}), |_| {}, with_files(1450));
    let address = stage.broker.address();
    let wanted = openable(scaled("MCP_BROKER_HALF_OPEN", 3000));
    let mut kept = KeepAlive::open(address);
    times(&mut kept);
    let watch = Watch::start();
    let mut open = Vec::new();
    let mut served = 0;
    while open.len() < wanted {
        open.extend((0..100).filter_map(|_| half_a_head(address)));
        let body = json!({"path": "/a/add", "args": {"a": 1, "b": 2}});
        let reply = KeepAlive::open(address).post("/meta_call", &body);
        assert!(
            reply.is_some_and(|reply| reply.status == 200),
            "a new caller is served beside {} half-open connections",
            open.len()
        );
        served += 1;
    }
    let took = watch.passed();
    // The connection of a caller that keeps using it is not closed for another.
    times(&mut kept);
    let held = ResourceUsage::measure(stage.broker.pid()).files;
    let left = open.iter().filter(|stream| !is_closed(stream)).count();
    assert!(left < 1100, "{left} are still open");
    drop(open);
    drop(kept);
    stage.is_as_before();
    figure(
        "F-34-half-open",
        &format!(
            "{wanted} half-open connections within {}: {served} of {served} new callers served beside them, {held} files",
            shown(took)
        ),
    );
}

#[test]
fn garbage_and_incomplete_bodies_affect_no_other_caller() {
    let stage = FaultFixture::new(&json!({}));
    let address = stage.broker.address();
    for seed in 1..=50 {
        let mut stream = send(address, &garbage(seed, 2000));
        drop(stream.write_all(b"\r\n\r\n"));
        drain(&mut stream, Duration::from_secs(20));
        drop(half_a_body(address));
    }
    let tally = Tally::flood(address, 4, 25, ECHO);
    tally.is_clean();
    tally.agrees_with(&stage.chaos, "a");
    assert_eq!(tally.answered(), 100);
    stage.is_as_before();
}

#[test]
fn broker_without_free_files_refuses_connections_and_recovers() {
    let stage = FaultFixture::begin(&json!({}), |_| {}, with_files(64));
    let address = stage.broker.address();
    let mut kept = KeepAlive::open(address);
    times(&mut kept);
    let connections: Vec<TcpStream> = (0..200).filter_map(|_| idle(address)).collect();
    // Files are reserved for sources: a server that dies meanwhile is started again.
    harness::faults::signal(stage.chaos.pids("a")[0], "KILL");
    let watch = Watch::start();
    wait_until("the server is back", || {
        let body = json!({"path": "/a/add", "args": {"a": 1, "b": 2}});
        kept.post("/meta_call", &body)
            .expect("the connection is kept")
            .status
            == 200
    });
    let back = watch.passed();
    let late = json!({"path": "/a/slow", "args": {"ms": 5000}});
    let late = kept.post("/meta_call", &late).expect("it is kept");
    refusal(&late, 504, "call_timeout");
    let held = ResourceUsage::measure(stage.broker.pid()).files;
    assert!(held < 64, "{held} files");
    drop(connections);
    drop(kept);
    // The broker needs a moment to notice that they are gone.
    wait_until("connections are taken again", || {
        let tree = json!({"path": "/"});
        KeepAlive::open(address).post("/meta_tree", &tree).is_some()
    });
    stage.is_as_before();
    figure(
        "F-50",
        &format!(
            "64 files, 200 connections: {held} in use, a dead server back after {}",
            shown(back)
        ),
    );
}

#[test]
fn wrong_secrets_in_a_flood_are_refused_and_logged_once() {
    let right = "the right secret";
    let stage = FaultFixture::begin(
        &json!({}),
        |_| {},
        |run| run.env("MCP_BROKER_SECRET", right),
    );
    let ask = |secret: &str| {
        let authorization = format!("Bearer {secret}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
        ];
        request(
            stage.broker.address(),
            "POST",
            "/meta_tree",
            &headers,
            b"{}",
        )
    };
    let watch = Watch::start();
    // After a hundred within a minute, the address is asked to wait.
    let limited: usize = std::thread::scope(|scope| {
        let callers = (0..4).map(|caller| {
            scope.spawn(move || {
                let is_limited = |n: &i32| {
                    let reply = ask(&format!("{right} {caller} {n}"));
                    let is_limited = reply.status == 429;
                    match is_limited {
                        true => refusal(&reply, 429, "overloaded"),
                        false => refusal(&reply, 401, "unauthorized"),
                    };
                    is_limited
                };
                (0..250).filter(is_limited).count()
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let took = watch.passed();
    assert!(
        (1..=900).contains(&limited),
        "{limited} of 1000 are limited"
    );
    assert_eq!(ask(right).status, 200);
    let log = stage.broker.stderr();
    let reported = log
        .lines()
        .filter(|line| line.contains("wrong credential"))
        .count();
    assert!((1..=3).contains(&reported), "{reported} warnings: {log}");
    assert!(!log.contains(right));
    figure(
        "F-44",
        &format!(
            "1000 of 1000 refused within {}, {reported} warning; no caller is locked out",
            shown(took)
        ),
    );
}

#[test]
fn request_head_over_the_limit_is_refused() {
    let stage = FaultFixture::new(&json!({}));
    let ask = |length: usize| {
        let long = "x".repeat(length);
        let headers = [
            ("X-Long", long.as_str()),
            ("Content-Type", "application/json"),
        ];
        request(
            stage.broker.address(),
            "POST",
            "/meta_tree",
            &headers,
            b"{}",
        )
        .status
    };
    assert_eq!((ask(16 << 10), ask(33 << 10)), (200, 431));
    stage.is_as_before();
}

#[test]
fn broker_of_a_measurement_is_found_without_its_shell() {
    // Otherwise the measurement above would count a shell.
    let stage = FaultFixture::begin(&json!({}), |_| {}, with_files(256));
    // The broker is found by its name, since only root can see which file it executes.
    let name = std::fs::read_to_string(format!("/proc/{}/comm", stage.broker.pid()));
    assert_eq!(name.ok().as_deref(), Some("chaos-broker\n"));
}
