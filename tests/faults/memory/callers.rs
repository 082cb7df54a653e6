//! Callers that make the broker use as much memory as possible: endless bodies, unread results,
//! arguments that take a hundred times the memory of their text. Memory stays within its budget, and
//! other callers are served.

use std::io::Read as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use harness::callers::{call_and_leave, drain};
use harness::figure::{Watch, figure, shown};
use harness::{Broker, KeepAlive, ResourceUsage, post_bytes, read, refusal, send, wait_until};
use serde_json::json;

use harness::faults::{ECHO, FaultFixture, scaled};

/// Memory that the process may use in addition to the budget: its code, the stacks and heaps of its
/// threads, connections.
const BESIDE: u64 = 128 << 20;

/// A body of a call that lacks its last byte.
fn open_body(address: &str, bytes: usize) -> TcpStream {
    let text = "x".repeat(bytes);
    let body = json!({"path": ECHO, "args": {"text": text}}).to_string();
    let request = post_bytes(address, "/meta_call", &body);
    send(address, &request[..request.len() - 1])
}

/// A call whose arguments take a hundred times the memory of their text.
fn many_values(address: &str, bytes: usize) -> TcpStream {
    let items = vec![r#"{"":0}"#; bytes / 7].join(",");
    let body = format!(r#"{{"path":"{ECHO}","args":{{"text":"x","more":[{items}]}}}}"#);
    send(address, &post_bytes(address, "/meta_call", &body))
}

fn is_served(broker: &Broker) {
    let call = json!({"path": "/b/add", "args": {"a": 1, "b": 2}});
    let reply = KeepAlive::open(broker.address()).post("/meta_call", &call);
    let reply = reply.expect("another caller is answered");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(broker.get("/healthz").status, 200);
}

#[test]
fn memory_of_many_callers_stays_within_its_budget() {
    let _machine = harness::whole_machine();
    // The number that a loaded machine handles in seconds; 1000 by hand.
    let callers = scaled("MCP_BROKER_MEMORY_CALLERS", 120);
    let full = callers >= 1000;
    let (budget, result, values) = if full {
        (512 << 20, 15 << 20, 1_200_000)
    } else {
        (96 << 20, 6 << 20, 180_000)
    };
    let stage = FaultFixture::with(&json!({"on_call": {"echo": {"big": result}}}), |config| {
        config["limits"] = json!({"memory_bytes": budget, "line_bytes": 16 << 20});
    });
    let address = stage.broker.address();
    let watch = Watch::start();
    let open: Vec<TcpStream> = thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                scope.spawn(move || {
                    let mine = (0..callers).filter(|caller| caller % 6 == thread);
                    mine.map(|caller| match caller % 3 {
                        0 => open_body(address, (4 << 20) - 100),
                        1 => call_and_leave(address, ECHO, &json!({"text": "x"})),
                        _ => many_values(address, values),
                    })
                    .collect::<Vec<_>>()
                })
            })
            .collect();
        while !threads.iter().all(|one| one.is_finished()) {
            is_served(&stage.broker);
        }
        let joined = threads.into_iter().map(|one| one.join().expect("it sends"));
        joined.flatten().collect()
    });
    for _ in 0..20 {
        is_served(&stage.broker);
    }
    let took = watch.passed();
    let peak = ResourceUsage::measure(stage.broker.pid()).peak << 10;
    assert!(
        peak <= budget as u64 + BESIDE,
        "{} MiB at the peak of a budget of {} MiB",
        peak >> 20,
        budget >> 20
    );
    figure(
        "F-35-memory",
        &format!(
            "{callers} callers within {}: {} MiB at the peak of a budget of {} MiB",
            shown(took),
            peak >> 20,
            budget >> 20
        ),
    );
    drop(open);
    // A request that can never get enough memory gets an error that says so, with both figures.
    let never = many_values(address, 3 << 20);
    let error = refusal(&read(never), 413, "body_too_large");
    let figures = ["needed_bytes", "limit_bytes"].map(|name| error["details"][name].as_u64());
    assert!(
        figures[0] > figures[1] && figures[1] == Some(budget as u64 / 4),
        "{error}"
    );
    // The charged memory is released.
    wait_until("there is room for a large result again", || {
        stage.echo("x").status == 200
    });
    stage.is_as_before();
}

/// A caller that takes one byte of its reply at a time.
fn take_a_byte(caller: &mut TcpStream) {
    // A closed connection has nothing to read.
    let _ = caller.read(&mut [0]);
}

#[test]
fn callers_that_read_slowly_are_closed_and_their_memory_released() {
    let result = (78 << 20) / 10;
    let stage = FaultFixture::with(&json!({"on_call": {"echo": {"big": result}}}), |config| {
        config["limits"] = json!({"memory_bytes": 32 << 20, "line_bytes": 16 << 20});
    });
    let address = stage.broker.address();
    // The next caller starts when the reply of the previous one has begun.
    let ask = || {
        let mut caller = call_and_leave(address, ECHO, &json!({"text": "x"}));
        take_a_byte(&mut caller);
        caller
    };
    let watch = Watch::start();
    let mut slow = [ask(), ask()];
    let mut status = 0;
    wait_until(
        "two replies that are not taken leave no room for a third",
        || {
            slow.iter_mut().for_each(take_a_byte);
            status = stage.echo("x").status;
            status != 200
        },
    );
    assert_eq!(status, 502);
    wait_until("both are closed and there is room again", || {
        slow.iter_mut().for_each(take_a_byte);
        let files = ResourceUsage::measure(stage.broker.pid()).files;
        files <= stage.before.files && stage.echo("x").status == 200
    });
    let took = watch.passed();
    let taken = slow
        .each_mut()
        .map(|caller| drain(caller, Duration::from_secs(10)));
    assert!(
        taken.iter().sum::<u64>() < 2 * result,
        "{taken:?} of {result}"
    );
    figure(
        "F-35-slow",
        &format!(
            "two callers of a byte at a time: closed, and their memory given back after {}",
            shown(took)
        ),
    );
    stage.is_as_before();
}

/// Uses memory until none is left for a request that is not small. Returns the connections that use it.
fn fill(stage: &FaultFixture) -> Vec<TcpStream> {
    let address = stage.broker.address();
    let sizes = [vec![7 << 20; 6], vec![1 << 20; 12]].concat();
    let mut held: Vec<_> = sizes
        .iter()
        .map(|bytes| open_body(address, *bytes))
        .collect();
    wait_until("there is no room for a request that is not small", || {
        held.push(open_body(address, 70 << 10));
        let refused = stage.echo(&"x".repeat(70 << 10));
        refused.status != 200
    });
    held
}

#[test]
fn small_requests_and_health_are_served_while_memory_is_used_up() {
    let _machine = harness::whole_machine();
    let big = 400 << 10;
    let stage = FaultFixture::with(&json!({"on_call": {"fail": {"big": big}}}), |config| {
        config["limits"] =
            json!({"memory_bytes": 32 << 20, "line_bytes": 16 << 20, "body_bytes": 16 << 20});
    });
    let address = stage.broker.address();
    let mut held = fill(&stage);
    // Small requests together use more than was left, but less than is reserved for them.
    held.extend((0..20).map(|_| open_body(address, 60 << 10)));
    let small = stage.echo(&"x".repeat(40 << 10));
    assert_eq!(small.status, 200, "{}", small.text());
    is_served(&stage.broker);
    let large = refusal(&stage.echo(&"x".repeat(200 << 10)), 429, "overloaded");
    assert_eq!(
        (&large["retryable"], &large["maybe_executed"]),
        (&json!(true), &json!(false))
    );
    let calls = stage.chaos.events("a", "call").len();
    let big_result = || stage.broker.call("/a/fail", json!({"message": "x"}));
    let result = refusal(&big_result(), 502, "output_too_large");
    assert_eq!(result["maybe_executed"], json!(true));
    stage.chaos.await_events("a", "call", calls + 1);
    for route in ["/healthz", "/readyz", "/sources"] {
        assert_eq!(stage.broker.get(route).status, 200, "{route}");
    }
    drop(held);
    wait_until("the memory is given back", || big_result().status == 200);
    stage.is_as_before();
}

#[test]
fn caller_holds_at_most_a_quarter_of_the_memory() {
    let quarter = 8 << 20;
    let stage = FaultFixture::with(&json!({"on_call": {"echo": {"big": 9 << 20}}}), |config| {
        config["limits"] =
            json!({"memory_bytes": 4 * quarter, "line_bytes": 16 << 20, "body_bytes": 16 << 20});
    });
    let error = refusal(&stage.echo("x"), 502, "output_too_large");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("the requests of this caller"), "{message}");
    let small = stage.broker.call("/a/slow", json!({"ms": 0}));
    assert_eq!(small.status, 200, "{}", small.text());
    // A request that can never fit gets an error with both figures.
    let error = refusal(&stage.echo(&"x".repeat(quarter)), 413, "body_too_large");
    let figures = ["needed_bytes", "limit_bytes"].map(|name| error["details"][name].as_u64());
    assert!(figures[0] > figures[1], "{error}");
    assert_eq!(figures[1], Some(quarter as u64));
    stage.is_as_before();
}
