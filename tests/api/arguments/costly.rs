//! Arguments that are costly to check: other callers are served meanwhile, and the call's timeout
//! holds.

use std::net::TcpStream;

use harness::{
    Broker, Chaos, KeepAlive, post_bytes, raw, read, refusal, send, thread_names, wait_until,
};
use serde_json::json;

const TOOLS: &str = include_str!("../../costly-broker/tools.json");

fn start() -> (Chaos, Broker) {
    let chaos = Chaos::new();
    chaos.raw_script("costly", TOOLS);
    let run = chaos.serve("costly-broker", &["127.0.0.1:0"]);
    let broker = Broker::start_ready(run);
    (chaos, broker)
}

/// `{"not":{"not":…0…}}`: matches none of the alternatives, each of which checks all levels below.
fn nested(name: &str, depth: usize) -> String {
    let begin = format!("{{\"{name}\":");
    format!("{}0{}", begin.repeat(depth), "}".repeat(depth))
}

fn body(tool: &str, args: &str) -> String {
    format!(r#"{{"path":"/costly/{tool}","args":{args}}}"#)
}

/// Filters that take long to check and little memory. The last one does not match.
fn many_filters() -> String {
    let (begin, end) = (r#"{"not":"#.repeat(20), r#","weight":1}"#.repeat(20));
    let all = format!(r#"{begin}{{"eq":"a"}}{end},"#).repeat(4000);
    format!(r#"{{"filters":[{all}{{"eq":0}}]}}"#)
}

/// The number of threads for checks.
fn threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).max(1)
}

fn has_answer(stream: &TcpStream) -> bool {
    let mut byte = [0];
    stream.set_nonblocking(true).expect("it can be asked");
    let answered = stream.peek(&mut byte).is_ok();
    stream.set_nonblocking(false).expect("it can be asked");
    answered
}

/// The threads that read and check long requests.
fn pool(broker: &Broker) -> Vec<String> {
    let mut names = thread_names(broker.pid());
    names.retain(|name| name.starts_with("broker-work"));
    names
}

fn small() -> [(&'static str, String); 3] {
    [
        ("filter", format!("{{\"filter\":{}}}", nested("not", 40))),
        ("chain", nested("x", 41)),
        ("all_of", nested("n", 40)),
    ]
}

#[test]
fn costly_small_arguments_are_refused_with_places() {
    let (_chaos, broker) = start();
    for (tool, args) in small() {
        assert!(args.len() < 400, "{tool}");
        let response = raw(
            broker.address(),
            &post_bytes(broker.address(), "/meta_call", &body(tool, &args)),
        );
        let error = refusal(&response, 422, "args_invalid");
        let places = error["details"]["errors"].as_array();
        assert!(places.is_some_and(|places| !places.is_empty()), "{error}");
        assert_eq!(error["maybe_executed"], false);
    }
}

#[test]
fn costly_arguments_delay_no_other_caller_and_time_out() {
    let (chaos, broker) = start();
    let address = broker.address();
    let long = post_bytes(address, "/meta_call", &body("filters", &many_filters()));
    let mut costly: Vec<TcpStream> = (0..threads() + 8).map(|_| send(address, &long)).collect();
    for (tool, args) in small() {
        costly.push(send(
            address,
            &post_bytes(address, "/meta_call", &body(tool, &args)),
        ));
    }
    let mut kept = KeepAlive::open(address);
    for _ in 0..20 {
        let health = kept.get("/healthz").expect("health is answered");
        assert_eq!(health.status, 200);
        let plain = json!({"path": "/costly/plain", "args": {"word": "x"}});
        let reply = kept.post("/meta_call", &plain).expect("a call is answered");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let waiting = costly.iter().filter(|one| !has_answer(one)).count();
    assert!(
        waiting > 0,
        "all were answered before the others were served"
    );

    // The timeout of this call passes while it waits for the other calls.
    let soon = post_bytes(
        address,
        "/meta_call",
        &body("filters_soon", &many_filters()),
    );
    let late = read(send(address, &soon));
    let error = refusal(&late, 504, "call_timeout");
    assert_eq!(
        (
            &error["maybe_executed"],
            &error["details"]["timeout_seconds"]
        ),
        (&json!(false), &json!(1.0))
    );

    // When callers leave, their work is dropped: the next call does not wait behind it.
    drop(costly);
    let (tool, args) = &small()[0];
    let after = raw(
        address,
        &post_bytes(address, "/meta_call", &body(tool, args)),
    );
    refusal(&after, 422, "args_invalid");
    let sent = chaos.events("costly", "call");
    assert!(
        sent.iter().all(|call| call["tool"] == "plain"),
        "nothing costly was sent"
    );
}

#[test]
fn long_requests_are_checked_by_a_pool_on_half_the_cores() {
    let (_chaos, broker) = start();
    let address = broker.address();
    let plain = post_bytes(address, "/meta_call", &body("plain", r#"{"word":"x"}"#));
    assert_eq!(raw(address, &plain).status, 200);
    assert!(pool(&broker).is_empty(), "a small call needs none of them");

    let half: Vec<String> = (0..threads())
        .map(|number| format!("broker-work-{number}"))
        .collect();
    let long = post_bytes(address, "/meta_call", &body("filters", &many_filters()));
    let mut costly: Vec<TcpStream> = (0..half.len() + 8).map(|_| send(address, &long)).collect();
    wait_until("as many threads as there may be have work", || {
        pool(&broker).len() >= half.len()
    });
    assert_eq!(raw(address, &plain).status, 200);
    assert_eq!(pool(&broker), half);
    let error = refusal(&read(costly.remove(0)), 422, "args_invalid");
    let places = error["details"]["errors"].as_array();
    let last = places.and_then(|places| places.first());
    assert_eq!(
        last.map(|place| &place["pointer"]),
        Some(&json!("/filters/4000"))
    );
    drop(costly);
    // The same threads serve later requests, including short bodies that are costly to check.
    let (tool, args) = &small()[0];
    let costly = post_bytes(address, "/meta_call", &body(tool, args));
    refusal(&raw(address, &costly), 422, "args_invalid");
    assert_eq!(pool(&broker), half);
}

#[test]
fn long_requests_over_the_queue_are_refused_as_overloaded() {
    let (_chaos, broker) = start();
    let address = broker.address();
    // A body that must first be parsed waits behind the checks.
    let long = post_bytes(address, "/meta_call", &body("filters", &many_filters()));
    // So many that they outlast the requests that follow, also on a busy machine; those that wait end with their callers.
    let first: Vec<TcpStream> = (0..threads() + 24).map(|_| send(address, &long)).collect();
    let filler = "x".repeat(70_000);
    let short = post_bytes(
        address,
        "/meta_call",
        &body("plain", &format!("{{\"word\":\"{filler}\"}}")),
    );
    let others: Vec<TcpStream> = (0..120).map(|_| send(address, &short)).collect();
    wait_until("those beyond the queue are refused", || {
        others.iter().filter(|one| has_answer(one)).count() >= 40
    });
    // A request that was accepted is answered once those before it are done.
    drop(first);
    let mut codes = Vec::new();
    for other in others {
        let response = read(other);
        codes.push(response.status);
        if response.status == 429 {
            assert!(response.header("retry-after").is_some());
            refusal(&response, 429, "overloaded");
        }
    }
    assert!(codes.contains(&429), "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(code, 200 | 429)),
        "{codes:?}"
    );
}
