//! Callers that make the broker hold as much as it can: bodies that do not end, results that are not
//! read, arguments that take a hundred times their text. Memory stays within its budget, and others
//! are served.

use std::net::TcpStream;
use std::thread;

use harness::callers::call_and_leave;
use harness::figure::{Watch, figure, shown};
use harness::{Broker, Census, Kept, post_bytes, read, refusal, send, wait_until};
use serde_json::json;

use crate::stage::{ECHO, Stage, scaled};

/// Memory that the process may take beyond the budget: its code, the stacks and heaps of its threads,
/// connections.
const BESIDE: u64 = 128 << 20;

/// A body of a call that lacks its last byte.
fn open_body(address: &str, bytes: usize) -> TcpStream {
    let text = "x".repeat(bytes);
    let body = json!({"path": ECHO, "args": {"text": text}}).to_string();
    let request = post_bytes(address, "/meta_call", &body);
    send(address, &request[..request.len() - 1])
}

/// A call whose arguments take a hundred times their text.
fn many_values(address: &str, bytes: usize) -> TcpStream {
    let items = vec![r#"{"":0}"#; bytes / 7].join(",");
    let body = format!(r#"{{"path":"{ECHO}","args":{{"text":"x","more":[{items}]}}}}"#);
    send(address, &post_bytes(address, "/meta_call", &body))
}

fn is_served(broker: &Broker) {
    let call = json!({"path": "/b/add", "args": {"a": 1, "b": 2}});
    let reply = Kept::open(broker.address()).post("/meta_call", &call);
    let reply = reply.expect("another caller is answered");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(broker.get("/healthz").status, 200);
}

#[test]
fn a_thousand_callers_of_the_worst_mixture_stay_within_the_memory_budget() {
    // As many as a loaded machine does in seconds; 1000 by hand.
    let callers = scaled("MCP_BROKER_MEMORY_CALLERS", 120);
    let full = callers >= 1000;
    let (budget, result, values) = if full {
        (512 << 20, 15 << 20, 1_200_000)
    } else {
        (96 << 20, 6 << 20, 180_000)
    };
    let stage = Stage::with(&json!({"on_call": {"echo": {"big": result}}}), |config| {
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
    let peak = Census::take(stage.broker.pid()).peak << 10;
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
    // The charged memory is given back.
    wait_until("there is room for a large result again", || {
        stage.echo("x").status == 200
    });
    stage.is_as_before();
}
